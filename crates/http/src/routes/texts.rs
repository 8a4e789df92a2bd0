//! `/text`: the index of texts of literals, made and given up while the server runs.
//!
//! | request | does | answers |
//! | --- | --- | --- |
//! | GET `/text` | | `{"index":{"properties":[],"classes":[],"graphs":[],"languages":[],"grams":false,"texts":17,"texts_since":0,"bytes":1000,"memory_bytes":0}}`; `{"index":null}` where there is none |
//! | POST `/text?property=...&class=...&graph=...&language=...&grams=true` | makes one, in place of the one that there is; each may be given several times or not at all | as GET, with `seconds` |
//! | POST `/text?rebuild=true` | makes it anew by its rules | as GET, with `seconds` |
//! | DELETE `/text` | gives it up | `{"dropped":true}` |
//!
//! For administrators; changes on conditions (`If-Match`) as a compaction is. They answer when it is done. Readers and writers go on meanwhile, with the index that there was; a checkpoint, compaction or load waits, and is waited
//! for. A client that goes away does not end it.

use std::time::Instant;

use axum::Json;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use orrery_storage::text::{TextReport, TextRules};
use serde_json::{Value, json};

use crate::edge::around;
use crate::request::conditions::{Conditions, State};
use crate::request::parameters::{self, checked_iri, flag, unknown, url_parameters};
use crate::state::HttpState;
use orrery_service::errors::ServiceError;
use orrery_service::options::compaction_within;

/// Properties, classes, graphs and languages together.
const RULES_MAX: usize = 10_000;

/// What becomes of the index.
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

/// Which texts are in the index.
pub(crate) async fn list(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    around::require_all_graphs(parts)?;
    around::require_administrator(parts, "read which texts are in the index")?;
    parameters::none(parts.uri.query())?;
    let database = state.engine.database().clone();
    let listed = state
        .query_threads
        .handle()
        .spawn_blocking(move || TextReport::of(&database));
    let listed = listed.await.map_err(|error| ended(&error))??;
    Ok(Json(json!({ "index": listed })).into_response())
}

/// Makes an index, or makes it anew.
pub(crate) async fn make(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    let wanted = Wanted::of(parts)?;
    change(state, parts, wanted).await
}

/// Gives the index up.
pub(crate) async fn give_up(state: &HttpState, parts: &Parts) -> Result<Response, ServiceError> {
    parameters::none(parts.uri.query())?;
    change(state, parts, Wanted::Dropped).await
}

async fn change(
    state: &HttpState,
    parts: &Parts,
    wanted: Wanted,
) -> Result<Response, ServiceError> {
    let writer = state.writes(parts)?.writer().clone();
    around::require_all_graphs(parts)?;
    around::require_administrator(parts, "change the index of texts")?;
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
