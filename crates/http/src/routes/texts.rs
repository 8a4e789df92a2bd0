//! `/text`: reports, builds and drops the text index of literals while the server runs.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/text` | | `{"index":{"properties":[],"classes":[],"graphs":[],"languages":[],"grams":false,"texts":17,"texts_since":0,"bytes":1000,"memory_bytes":0}}`; `{"index":null}` where there is none |
//! | POST `/text?property=...&class=...&graph=...&language=...&grams=true` | builds one in place of the present one; each parameter may be repeated or left out | as GET, with `seconds` |
//! | POST `/text?rebuild=true` | rebuilds it by its rules | as GET, with `seconds` |
//! | DELETE `/text` | drops it | `{"dropped":true}` |
//!
//! For administrators; changes under the conditions (`If-Match`) of a compaction. They answer when
//! they are done. Readers and writers go on meanwhile, with the old index; a checkpoint, compaction
//! or load waits, and is waited for. A client that leaves does not end the change.

use std::time::Instant;

use axum::Json;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use orrery_storage::text::{TextReport, TextRules};
use serde_json::{Value, json};

use crate::request::conditions::{Conditions, State};
use crate::request::parameters::{self, checked_iri, flag, unknown, url_parameters};
use crate::route_table::HttpRequest;
use crate::state::HttpState;
use orrery_service::errors::ServiceError;
use orrery_service::options::compaction_within;

/// Most properties, classes, graphs and languages together.
const RULES_MAX: usize = 10_000;

/// The change of the index that a request asks for.
enum Wanted {
    Made(TextRules),
    MadeAnew,
    Dropped,
}

impl Wanted {
    fn of(parts: &Parts) -> Result<Self, ServiceError> {
        let parameters = url_parameters(parts.uri.query())?;
        if parameters.len() > RULES_MAX {
            return Err(ServiceError::bad_request(format!(
                "an index of texts has {RULES_MAX} rules at most"
            )));
        }
        let (mut rules, mut is_anew) = (TextRules::default(), false);
        for (name, value) in parameters {
            match name.as_str() {
                "property" => rules.predicates.push(checked_iri(&name, value)?),
                "class" => rules.classes.push(checked_iri(&name, value)?),
                // The default graph.
                "graph" if value.is_empty() => rules.graphs.push(value),
                "graph" => rules.graphs.push(checked_iri(&name, value)?),
                "language" => rules.languages.push(value.to_lowercase()),
                "grams" => rules.grams = flag(&name, &value)?,
                "rebuild" => is_anew = flag(&name, &value)?,
                _ => {
                    let known = "property, class, graph, language, grams, rebuild";
                    return Err(unknown(&name, known));
                }
            }
        }
        match (is_anew, rules == TextRules::default()) {
            (false, _) => Ok(Self::Made(rules)),
            (true, true) => Ok(Self::MadeAnew),
            (true, false) => Err(ServiceError::bad_request(
                "`rebuild=true` takes the rules that there are; give either it or rules",
            )),
        }
    }
}

/// Reports the rules and the size of the index.
pub(crate) async fn list(request: HttpRequest) -> Result<Response, ServiceError> {
    let (state, parts) = (&*request.state, &*request.parts);
    parameters::none(parts.uri.query())?;
    let database = state.engine.database().clone();
    let listed = state
        .query_threads
        .handle()
        .spawn_blocking(move || TextReport::of(&database));
    let listed = listed.await.map_err(|error| ended(&error))??;
    Ok(Json(json!({ "index": listed })).into_response())
}

/// Builds an index, or rebuilds it.
pub(crate) async fn make(request: HttpRequest) -> Result<Response, ServiceError> {
    let wanted = Wanted::of(&request.parts)?;
    change(&request.state, &request.parts, wanted).await
}

/// Drops the index.
pub(crate) async fn give_up(request: HttpRequest) -> Result<Response, ServiceError> {
    parameters::none(request.parts.uri.query())?;
    change(&request.state, &request.parts, Wanted::Dropped).await
}

async fn change(
    state: &HttpState,
    parts: &Parts,
    wanted: Wanted,
) -> Result<Response, ServiceError> {
    let writer = state.writes(parts)?.writer().clone();
    let snapshot = writer.database().snapshot();
    Conditions::of(&parts.headers)?.check_change(State {
        commit: snapshot.commit(),
        time_us: snapshot.commit_time_us(),
        exists: true,
    })?;
    let known = snapshot.text_rules_to_come();
    let rules = match wanted {
        Wanted::Made(rules) => Some(rules),
        Wanted::MadeAnew => Some(known.cloned().ok_or_else(no_index)?),
        Wanted::Dropped if known.is_none() => return Err(no_index()),
        Wanted::Dropped => None,
    };
    drop(snapshot);
    let memory_bytes = compaction_within(state.engine.options().memory_bytes).memory_bytes;
    let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let made = state.query_threads.handle().spawn_blocking(move || {
        let (started, is_dropped) = (Instant::now(), rules.is_none());
        writer.set_text_rules(rules, Some(memory_bytes))?;
        if is_dropped {
            tracing::info!("the index of texts was given up");
            return Ok(json!({ "dropped": true }));
        }
        let seconds = started.elapsed().as_secs_f64();
        let index = TextReport::of(writer.database())?;
        tracing::info!("an index of texts was made in {seconds:.1} s");
        Ok(json!({ "index": index, "seconds": seconds }))
    });
    let made: Result<Value, orrery_storage::Error> = made.await.map_err(|error| ended(&error))?;
    Ok(Json(made?).into_response())
}

fn no_index() -> ServiceError {
    ServiceError::Unprocessable {
        message: "the database has no index of texts; `POST /text` makes one".to_owned(),
    }
}

fn ended(error: &tokio::task::JoinError) -> ServiceError {
    ServiceError::Internal {
        message: format!("what was done with the index of texts ended: {error}"),
    }
}
