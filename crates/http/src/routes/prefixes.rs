//! `/prefixes`: the prefixes that queries need not declare.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/prefixes` | | `{"prefixes":[{"name":"foaf","iri":"...","origin":"well known"}]}`, by name |
//! | POST `/prefixes?name=ex&iri=...` | sets one; with `replace=true` also if it has another IRI | the commit |
//! | POST `/prefixes?remove=ex` | removes one | the commit |
//!
//! A change is a commit of its own, in the log before it is acknowledged. Another IRI for a known
//! prefix changes what queries mean, so that is refused (422) without `replace=true`.

use crate::request::conditions::etag_of_commit;
use crate::request::parameters::{self, flag, unknown, url_parameters};
use crate::route_table::HttpRequest;
use crate::routes::updates::{CommitRequest, answer as answer_of_commit, who};
use axum::Json;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use orrery_service::errors::ServiceError;
use orrery_storage::Transaction;
use orrery_term::PrefixError;

/// Lists all prefixes.
pub(crate) async fn list(request: HttpRequest) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    parameters::none(parts.uri.query())?;
    let snapshot = state.engine.database().snapshot();
    let prefixes: Vec<_> = snapshot
        .prefixes()
        .iter()
        .map(|(name, iri, origin)| {
            serde_json::json!({ "name": name, "iri": iri, "origin": origin.name() })
        })
        .collect();
    let headers = [(header::ETAG, etag_of_commit(snapshot.commit()))];
    Ok((headers, Json(serde_json::json!({ "prefixes": prefixes }))).into_response())
}

/// The change that a request asks for.
enum Wanted {
    Given {
        name: String,
        iri: String,
        is_replaced: bool,
    },
    Removed {
        name: String,
    },
}

impl Wanted {
    fn of(parts: &Parts) -> Result<Self, ServiceError> {
        let (mut name, mut iri, mut removed, mut is_replaced) = (None, None, None, false);
        for (parameter, value) in url_parameters(parts.uri.query())? {
            match parameter.as_str() {
                "name" => name = Some(value),
                "iri" => iri = Some(value),
                "remove" => removed = Some(value),
                "replace" => is_replaced = flag(&parameter, &value)?,
                _ => return Err(unknown(&parameter, "name, iri, replace, remove")),
            }
        }
        let plain = |name: String| name.strip_suffix(':').map(str::to_owned).unwrap_or(name);
        match (name, iri, removed) {
            (Some(name), Some(iri), None) => Ok(Self::Given {
                name: plain(name),
                iri,
                is_replaced,
            }),
            (None, None, Some(name)) => Ok(Self::Removed { name: plain(name) }),
            _ => Err(ServiceError::bad_request(
                "give a prefix by the parameters `name` and `iri`, or remove one by `remove`",
            )),
        }
    }

    fn apply(&self, transaction: &mut Transaction) -> Result<(), ServiceError> {
        let prefixes = transaction.prefixes_mut();
        match self {
            Self::Given {
                name,
                iri,
                is_replaced,
            } => prefixes.give(name, iri, *is_replaced).map(drop),
            Self::Removed { name } => prefixes.remove(name),
        }
        .map_err(refusal)
    }
}

fn refusal(error: PrefixError) -> ServiceError {
    match error {
        PrefixError::Taken { .. } => ServiceError::Unprocessable {
            message: format!(
                "{error}; with `replace=true` it stands for the other IRI from now on"
            ),
        },
        PrefixError::TooMany => ServiceError::Unprocessable {
            message: error.to_string(),
        },
        PrefixError::Name(_)
        | PrefixError::Iri(_)
        | PrefixError::Unknown(_)
        | PrefixError::WellKnown(_) => ServiceError::bad_request(error.to_string()),
    }
}

/// Sets a prefix, or removes one.
pub(crate) async fn change(request: HttpRequest) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    let writes = state.writes(parts)?;
    let wanted = Wanted::of(parts)?;
    let commit_request = CommitRequest::new(&parts.headers, false)?;
    let who = who(parts);
    let committed = writes
        .make(Box::new(move |transaction, _| {
            commit_request.check(transaction, true)?;
            wanted.apply(transaction)?;
            Ok(commit_request.options(&who))
        }))
        .await?;
    Ok(answer_of_commit(StatusCode::OK, committed))
}
