//! `/prefixes`: what queries need not declare.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/prefixes` | | `{"prefixes":[{"name":"foaf","iri":"...","origin":"well known"}]}`, by name |
//! | POST `/prefixes?name=ex&iri=...` | gives one; with `replace=true` also where it stands for another IRI | the commit |
//! | POST `/prefixes?remove=ex` | removes one | the commit |
//!
//! A change is a commit of its own, in the log before it is acknowledged. Who gives a prefix another IRI changes what queries mean, so
//! that is refused (422) without `replace=true`.

use crate::edge::around;
use crate::request::conditions::etag_of_commit;
use crate::request::parameters::{self, flag, unknown, url_parameters};
use crate::routes::updates::{CommitRequest, answer as answer_of_commit, who};
use crate::state::HttpState;
use axum::Json;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use orrery_service::errors::ServiceError;
use orrery_storage::Transaction;
use orrery_term::PrefixError;

/// All prefixes.
pub(crate) fn list(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
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

/// What becomes of a prefix.
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

/// Gives a prefix, or removes one.
pub(crate) async fn change(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    let writes = state.writes(parts)?;
    around::require_all_graphs(parts)?;
    around::require_administrator(parts, "change prefixes")?;
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
