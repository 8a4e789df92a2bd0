//! SPARQL updates over HTTP, and the parts that all changes over HTTP share.
//!
//! ```text
//!   guard -> room for the body -> body -> parse (query threads) -> the queue of `writes` -> answer
//! ```
//!
//! The answer is JSON, `{"commit":17,"added":3,"removed":0}`, with the commit as its `ETag`. A
//! request with `If-Match: "17"` runs only if 17 is still the current commit, else it gets 412 (see
//! `conditions`); so a client can read, decide and write.

use crate::answer::output::COST;
use crate::answer::warnings::WARNING;
use crate::edge::access_log::AccessRecord;
use crate::edge::around;
use crate::edge::guard::base_iri;
use crate::request::conditions::{Conditions, State, etag_of_commit};
use crate::request::protocol::UpdateRequest;
use crate::state::HttpState;
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use orrery_service::errors::ServiceError;
use orrery_service::metering::Payment;
use orrery_service::query_log::AtCommit;
use orrery_service::stages::Stages;
use orrery_service::users::authentication::Ruled;
use orrery_service::writes::{Change, Committed, Writes};
use orrery_sparql::{Engine, ParsedUpdate, QueryOptions, UpdateOptions};
use orrery_storage::{CommitOptions, Durability, Transaction};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The commit options of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommitRequest {
    pub(crate) is_relaxed: bool,
    /// Whether a change larger than memory, and so a bulk load, may give up old snapshots.
    pub(crate) forgets_history: bool,
    pub(crate) conditions: Conditions,
}

impl CommitRequest {
    /// Reads the conditions of the headers.
    pub(crate) fn new(headers: &HeaderMap, is_relaxed: bool) -> Result<Self, ServiceError> {
        Ok(Self {
            is_relaxed,
            forgets_history: false,
            conditions: Conditions::of(headers)?,
        })
    }

    /// Fails if the client's conditions do not hold for the transaction; `exists`: whether the
    /// target of the request exists.
    pub(crate) fn check(
        &self,
        transaction: &mut Transaction,
        exists: bool,
    ) -> Result<(), ServiceError> {
        if self.conditions.is_empty() {
            return Ok(());
        }
        let commit = transaction.begins_after();
        let time_us = transaction.snapshot()?.commit_time_us();
        self.conditions.check_change(State {
            commit,
            time_us,
            exists,
        })
    }

    /// The options for the storage; `who` is written into the log.
    pub(crate) fn options(&self, who: &str) -> CommitOptions {
        CommitOptions {
            who: who.to_owned(),
            durability: if self.is_relaxed {
                Durability::Relaxed
            } else {
                Durability::Durable
            },
            // Checked in this very transaction; while it lasts nobody else commits.
            expected: None,
            keeps_history: !self.forgets_history,
        }
    }
}

/// The answer to a change that was made.
pub(crate) fn answer(status: StatusCode, committed: Committed) -> Response {
    answer_with(status, committed, &[])
}

/// The answer to a change that was made, with warnings.
pub(crate) fn answer_with(
    status: StatusCode,
    committed: Committed,
    warnings: &[String],
) -> Response {
    let headers = [(header::ETAG, etag_of_commit(committed.number))];
    let mut body = serde_json::json!({
        "commit": committed.number,
        "added": committed.added,
        "removed": committed.removed,
    });
    if !warnings.is_empty() {
        body["warnings"] = warnings.into();
    }
    let mut response = (status, headers, Json(body)).into_response();
    response.extensions_mut().insert(AtCommit(committed.number));
    response.extensions_mut().insert(committed);
    response
}

/// The author of a change, for the log: the user, and what the client calls itself. Not the
/// address: a proxy's word for it is not to be trusted.
pub(crate) fn who(parts: &Parts) -> String {
    const WHO_CHARACTERS_MAX: usize = 100;
    let agent = parts
        .headers
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .unwrap_or("unknown client");
    let agent: String = agent.chars().take(WHO_CHARACTERS_MAX).collect();
    match around::rights(parts).and_then(|rights| rights.user.as_ref()) {
        Some(user) => format!("{user}, http {agent}"),
        None => format!("http {agent}"),
    }
}

/// Charges a change to its author's budgets: a touch for each quad that came or went.
///
/// What it has read was charged meanwhile; the answer reports the sum.
pub(crate) fn charge(payment: Option<&Payment>, response: &mut Response) {
    let committed = response.extensions().get::<Committed>().copied();
    if let (Some(payment), Some(committed)) = (payment, committed) {
        payment.charge(committed.added.saturating_add(committed.removed));
        response
            .headers_mut()
            .insert(COST, payment.touches().into());
    }
}

/// Runs an update.
pub(crate) async fn update(
    state: &HttpState,
    writes: &Writes,
    parts: &Parts,
    request: UpdateRequest,
) -> Result<Response, ServiceError> {
    let UpdateOptions {
        query,
        writes: may_change,
        ..
    } = around::update_options(parts)?;
    if request.forgets_history {
        around::require_administrator(parts, "give up old states")?;
    }
    let commit_request = CommitRequest {
        forgets_history: request.forgets_history,
        ..CommitRequest::new(&parts.headers, request.is_relaxed)?
    };
    let (time, meter) = state.enter_of(parts, request.timeout)?;
    let record = AccessRecord::of(parts);
    let payment = record.as_ref();
    let payment = payment.and_then(|record| state.payment_of(parts, meter.as_ref(), record));
    let options = UpdateOptions {
        query: QueryOptions {
            spending: payment.as_ref().map(|it| Arc::clone(it.spending())),
            base_iri: base_iri(parts),
            default_graphs: request.using_graphs,
            named_graphs: request.using_named_graphs,
            union_default_graph: state.options.union_default_graph,
            strict_prefixes: state.options.strict_prefixes,
            timeout: Some(time.limit),
            ..query
        },
        writes: may_change,
        documents: state.documents.clone(),
    };
    let engine = Arc::clone(&state.engine);
    let mut of_parse = options.clone();
    let (text, memory) = (request.update, request.memory);
    let passed_over = request.passed_over.warnings();
    let warnings = orrery_sparql::warnings(&text);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let begun = Instant::now();
    let parsed = state
        .while_parsing(move |waiting| {
            of_parse.query.waiting = Some(waiting);
            Ok(engine.parse_update(&text, &of_parse)?)
        })
        .await?;
    let parse = begun.elapsed();
    let parsed = state.fetch_documents(parsed, &options).await?;
    let who = who(parts);
    let held = HeldUpdate {
        update: parsed,
        options,
        ruled: around::ruled(parts).cloned(),
        record,
        payment: payment.clone(),
        memory,
    };
    let engine = Arc::clone(&state.engine);
    let make_change = |held: Arc<HeldUpdate<_>>| {
        change(
            Arc::clone(&engine),
            held,
            commit_request.clone(),
            who.clone(),
        )
    };
    let writing = Instant::now();
    let committed = make(state, writes, held, make_change).await;
    if let Some(record) = AccessRecord::of(parts) {
        let none = Duration::ZERO;
        let spent = [none, parse, none, none, writing.elapsed()];
        record.set_stages(Stages::new(begun, spent));
    }
    let committed = committed?;
    let mut response = answer_with(StatusCode::OK, committed, &warnings);
    for warning in passed_over {
        response.headers_mut().append(WARNING, warning);
    }
    charge(payment.as_deref(), &mut response);
    Ok(response)
}

/// An update, and the memory that is reserved for its data until it is applied for good.
pub(crate) struct HeldUpdate<M> {
    pub(crate) update: ParsedUpdate,
    pub(crate) options: UpdateOptions,
    /// The author's rules by query, where such rules limit the change.
    pub(crate) ruled: Option<Ruled>,
    /// The record of its request.
    pub(crate) record: Option<Arc<AccessRecord>>,
    /// Held until the change is made, also if its client has left by then; none if nothing limits
    /// who asked and no cost is reported.
    pub(crate) payment: Option<Arc<Payment>>,
    #[expect(dead_code, reason = "held")]
    pub(crate) memory: M,
}

impl<M> HeldUpdate<M> {
    /// The update's options in a transaction that has just begun: rules by query are evaluated in
    /// the snapshot that it begins on.
    pub(crate) async fn options_in(
        &self,
        transaction: &mut Transaction,
    ) -> Result<Cow<'_, UpdateOptions>, ServiceError> {
        let later = self.ruled.as_ref();
        let later = later.filter(|ruled| ruled.state.commit() != transaction.begins_after());
        let Some(ruled) = later else {
            return Ok(Cow::Borrowed(&self.options));
        };
        let asked = ruled.asked_in(&transaction.snapshot()?).await;
        Ok(Cow::Owned(UpdateOptions {
            query: QueryOptions {
                scope: asked.scope,
                ..self.options.query.clone()
            },
            writes: asked.rights.writes,
            documents: self.options.documents.clone(),
        }))
    }

    /// Applies the update, unless it is killed or exceeds the budget: then the transaction must not
    /// be committed.
    pub(crate) async fn apply(
        &self,
        engine: &Engine,
        options: &UpdateOptions,
        transaction: &mut Transaction,
    ) -> Result<(), ServiceError> {
        let applied = async {
            engine.apply(&self.update, options, transaction).await?;
            Ok(())
        };
        let paid = async {
            match &self.payment {
                Some(payment) => payment.while_paid(applied).await,
                None => applied.await,
            }
        };
        match &self.record {
            Some(record) => record.unless_killed(paid).await,
            None => paid.await,
        }
    }
}

/// Makes the change of an update.
///
/// Other endpoints that it asks (`SERVICE`) are asked while other changes are made, between two
/// turns of the writing thread, with a change for each turn.
pub(crate) async fn make<M: Send + Sync + 'static>(
    state: &HttpState,
    writes: &Writes,
    held: HeldUpdate<M>,
    change: impl Fn(Arc<HeldUpdate<M>>) -> Change,
) -> Result<Committed, ServiceError> {
    let held = Arc::new(held);
    loop {
        match writes.make(change(Arc::clone(&held))).await {
            Err(ServiceError::AskFirst) => {}
            made => return made,
        }
        let (engine, asking) = (Arc::clone(&state.engine), Arc::clone(&held));
        // Aborted when the request is dropped.
        let mut asked = JoinSet::new();
        let asking = async move {
            let timeout = asking.options.query.timeout;
            engine.ask(&asking.update, timeout).await
        };
        asked.spawn_on(asking, state.query_threads.handle());
        match asked.join_next().await {
            Some(Ok(asked)) => asked?,
            Some(Err(_)) | None => {
                return Err(ServiceError::Internal {
                    message: "asking other endpoints panicked".to_owned(),
                });
            }
        }
    }
}

/// A change that applies an update to an existing target, such as the database.
fn change<M: Send + Sync + 'static>(
    engine: Arc<Engine>,
    held: Arc<HeldUpdate<M>>,
    commit_request: CommitRequest,
    who: String,
) -> Change {
    Box::new(
        move |transaction: &mut Transaction, query_threads: &Handle| {
            commit_request.check(transaction, true)?;
            query_threads.block_on(async {
                let options = held.options_in(transaction).await?;
                held.apply(&engine, &options, transaction).await
            })?;
            Ok(commit_request.options(&who))
        },
    )
}
