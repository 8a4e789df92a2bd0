//! `SERVICE` in updates: endpoints are asked while other writers go on.
//!
//! ```text
//!   Engine::apply, in the turn:  WHERE --request--> an answer that is here: given again
//!                                              '--> else noted, and answered with nothing
//!          something was noted --> the transaction goes, `QueryError::AskFirst`
//!   Engine::ask, without the turn:  the noted requests --> endpoints --> kept
//!   Engine::apply, in another turn: ... until nothing is noted
//! ```
//!
//! So what is committed was computed whole on the state that it changes, each operation on what the
//! earlier ones left, from answers that were there before the turn began; where data have changed
//! in between, other requests are noted and asked. One pass finds the requests of a whole
//! operation, so there are about as many passes as `SERVICE`s that depend on each other. An
//! operation may stop early (`LIMIT`): a pass ends after [`NOTED_FIRST`] requests, the next after
//! twice as many, and so on.
//!
//! Requests may differ in each pass, because others write all the time or because keys are random.
//! After [`CHANGED_MAX`] passes whose requests were other ones, and after [`PASSES_MAX`] in any
//! case, the last pass asks within the turn, for [`HOLD_MAX`] at most.
//!
//! Where an endpoint may not be asked the update fails, `SILENT` or not: a pattern that counts as
//! "no bindings" would match, and delete, everything. Plans run in one partition, for requests
//! depend on the order of rows.
//!
//! **Bounds.** Requests and answers are counted against the engine's memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use datafusion_common::DataFusionError;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use orrery_expressions::for_each_child;
use orrery_operators::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use spargebra::Query;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};

use crate::algebra::is_answered_here;
use crate::error::QueryError;

/// Requests that the first pass may note.
const NOTED_FIRST: usize = 4;
/// Passes whose requests were not those of the pass before.
const CHANGED_MAX: usize = 3;
/// Passes in all.
const PASSES_MAX: usize = 64;
/// Requests under way at a time.
pub(super) const REQUESTS_MAX: usize = 4;
/// How long the writer's turn is held by requests, if it comes to that.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// What a request takes in memory beside its text.
const REQUEST_BYTES: usize = 256;
/// An answer without solutions.
const NOTHING: &str = "{\"head\":{\"vars\":[]},\"results\":{\"bindings\":[]}}";

/// A request: the endpoint and the query.
pub(super) type Request = (String, String);

/// The answers that an update needs.
pub(super) struct Services {
    /// As the engine asks; the plans of the update ask through [`Replay`].
    options: ServiceOptions,
    /// What holds something of requests and answers is counted like this.
    uncounted: MemoryReservation,
    state: Mutex<AnswersState>,
}

#[derive(Default)]
struct AnswersState {
    answers: HashMap<Request, KeptAnswer>,
    noted: HashMap<Request, Noted>,
    noted_max: usize,
    passes: usize,
    changed: usize,
    /// When requests within the turn end; none are made otherwise.
    hold_until: Option<Instant>,
    /// A request within the turn that came to nothing for a reason that `SILENT` does not forgive.
    failed: Option<(String, RemoteFailure)>,
}

/// A request that waits.
pub(super) struct Noted {
    pub(super) accept: &'static str,
    /// What its text takes, until it is answered.
    pub(super) held: MemoryReservation,
}

struct KeptAnswer {
    answer: Answer,
    #[expect(dead_code, reason = "holds memory")]
    held: MemoryReservation,
    /// Whether this pass has asked for it.
    is_used: bool,
}

/// A whole answer.
pub(super) type Answer = Result<Whole, RemoteFailure>;

/// All of an answer, or all that came before it broke.
#[derive(Clone)]
pub(super) struct Whole {
    content_type: Option<String>,
    pieces: Vec<Bytes>,
    broken: Option<RemoteFailure>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Services {
    /// Nothing has been asked yet.
    pub(super) fn new(options: &ServiceOptions, pool: &Arc<dyn MemoryPool>) -> Arc<Self> {
        let state = AnswersState {
            noted_max: NOTED_FIRST,
            ..AnswersState::default()
        };
        Arc::new(Self {
            options: options.clone(),
            uncounted: MemoryConsumer::new("answers of SERVICE").register(pool),
            state: Mutex::new(state),
        })
    }

    /// How the plans of the update ask: by the answers that are here.
    pub(super) fn options(self: &Arc<Self>) -> ServiceOptions {
        ServiceOptions {
            endpoints: Arc::new(Replay(Arc::clone(self))),
            ..self.options.clone()
        }
    }

    fn state(&self) -> MutexGuard<'_, AnswersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass begins, in the writer's turn.
    pub(super) fn begin_pass(&self) {
        let mut state = self.state();
        state.passes += 1;
        for kept in state.answers.values_mut() {
            kept.is_used = false;
        }
        let is_last = state.changed > CHANGED_MAX || state.passes > PASSES_MAX;
        state.hold_until = is_last.then(|| Instant::now() + HOLD_MAX);
    }

    /// Whether all requests of an operation had their answers; else its solutions mean nothing.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        let state = self.state();
        if let Some((endpoint, failure)) = &state.failed {
            return Err(failed(endpoint, failure));
        }
        match state.noted.is_empty() {
            true => Ok(()),
            false => Err(QueryError::AskFirst),
        }
    }

    /// Takes a request for the next time that nobody has the turn.
    fn note(&self, request: Request, accept: &'static str) -> Result<(), RemoteFailure> {
        let mut state = self.state();
        let held = self.uncounted.new_empty();
        let has_room = held.try_grow(REQUEST_BYTES + request.1.len()).is_ok();
        let is_full = state.noted.len() >= state.noted_max || !has_room;
        if is_full && !state.noted.is_empty() {
            return Err(RemoteFailure::new("enough requests for one pass"));
        }
        state.noted.entry(request).or_insert(Noted { accept, held });
        Ok(())
    }

    /// The answer that is here.
    fn known(&self, request: &Request) -> Option<Answer> {
        let mut state = self.state();
        let kept = state.answers.get_mut(request)?;
        kept.is_used = true;
        Some(kept.answer.clone())
    }

    /// What was noted. Answers that the last pass had no use for go.
    pub(super) fn take_noted(&self) -> HashMap<Request, Noted> {
        let mut state = self.state();
        let known = state.answers.len();
        state.answers.retain(|_, kept| kept.is_used);
        state.changed += usize::from(state.answers.len() < known);
        state.noted_max = state.noted_max.saturating_mul(2);
        std::mem::take(&mut state.noted)
    }

    pub(super) fn keep(&self, request: Request, answer: Answer, held: MemoryReservation) {
        let kept = KeptAnswer {
            answer,
            held,
            is_used: true,
        };
        self.state().answers.insert(request, kept);
    }

    /// Asks for a whole answer, counted as it comes.
    pub(super) async fn fetch(
        &self,
        (endpoint, query): &Request,
        accept: &'static str,
        held: &MemoryReservation,
    ) -> Result<Answer, DataFusionError> {
        let asked = self.options.endpoints.ask(endpoint, query.clone(), accept);
        let answer = match asked.await {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(failure)),
        };
        let mut whole = Whole {
            content_type: answer.content_type,
            pieces: Vec::new(),
            broken: None,
        };
        let mut body = answer.body;
        while let Some(piece) = body.next().await {
            match piece {
                Ok(piece) => {
                    held.try_grow(piece.len() + size_of::<Bytes>())?;
                    whole.pieces.push(piece);
                }
                Err(failure) => {
                    whole.broken = Some(failure);
                    break;
                }
            }
        }
        Ok(Ok(whole))
    }

    /// Asks within the turn, until `end`.
    async fn fetch_now(
        &self,
        request: Request,
        accept: &'static str,
        end: Instant,
    ) -> Result<RemoteAnswer, RemoteFailure> {
        let held = self.uncounted.new_empty();
        let fetched = self.fetch(&request, accept, &held);
        let answer = match tokio::time::timeout_at(end.into(), fetched).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(self.give_up(request.0.clone(), error.to_string(), false)),
            Err(_late) => {
                let message = format!(
                    "what it is asked changed each time, and it did not answer within {} s while all writers waited; \
                     try again",
                    HOLD_MAX.as_secs()
                );
                Err(self.give_up(request.0.clone(), message, true))
            }
        };
        if let Some(failure) = forbidden(&answer) {
            self.state().failed = Some((request.0.clone(), failure.clone()));
        }
        self.keep(request, answer.clone(), held);
        answer.map(Whole::again)
    }

    fn give_up(&self, endpoint: String, message: String, is_timeout: bool) -> RemoteFailure {
        let failure = RemoteFailure {
            is_timeout,
            ..RemoteFailure::new(message)
        };
        self.state().failed = Some((endpoint, failure.clone()));
        failure
    }
}

impl Whole {
    fn again(self) -> RemoteAnswer {
        let pieces = self.pieces.into_iter().map(Ok);
        let pieces = pieces.chain(self.broken.map(Err));
        RemoteAnswer {
            content_type: self.content_type,
            body: stream::iter(pieces).boxed(),
        }
    }
}

/// The failure of an endpoint that may not be asked.
pub(super) fn forbidden(answer: &Answer) -> Option<&RemoteFailure> {
    let failure = match answer {
        Ok(whole) => whole.broken.as_ref(),
        Err(failure) => Some(failure),
    };
    failure.filter(|failure| failure.is_forbidden)
}

pub(super) fn failed(endpoint: &str, failure: &RemoteFailure) -> QueryError {
    QueryError::Service {
        endpoint: endpoint.to_owned(),
        message: failure.message.clone(),
        is_timeout: failure.is_timeout,
    }
}

/// The face of [`Services`] for plans.
#[derive(Debug)]
struct Replay(Arc<Services>);

impl RemoteEndpoints for Replay {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let services = Arc::clone(&self.0);
        let request = (endpoint.to_owned(), query);
        async move {
            if let Some(known) = services.known(&request) {
                return known.map(Whole::again);
            }
            let hold_until = services.state().hold_until;
            if let Some(end) = hold_until {
                return services.fetch_now(request, accept, end).await;
            }
            services.note(request, accept)?;
            Ok(RemoteAnswer {
                content_type: Some("application/sparql-results+json".to_owned()),
                body: stream::iter([Ok(Bytes::from_static(NOTHING.as_bytes()))]).boxed(),
            })
        }
        .boxed()
    }
}

/// Whether a query asks other endpoints.
pub(crate) fn asks_others(query: &Query) -> bool {
    match query {
        Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => asks(pattern),
    }
}

/// Whether an operation asks other endpoints.
pub(super) fn asks(pattern: &GraphPattern) -> bool {
    // A visit of all parts; they nest as deep as the parser lets them.
    match pattern {
        GraphPattern::Service { name, inner, .. } => match is_answered_here(name) {
            // Its edges have a SERVICE around them that is none either.
            true => asks_for_edges(inner),
            false => true,
        },
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => false,
        GraphPattern::Join { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => asks(left) || asks(right),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => asks(left) || asks(right) || expression.as_ref().is_some_and(asks_in),
        GraphPattern::Filter { expr, inner } => asks_in(expr) || asks(inner),
        GraphPattern::Extend {
            inner, expression, ..
        } => asks_in(expression) || asks(inner),
        GraphPattern::OrderBy { inner, expression } => {
            let mut keys = expression.iter();
            asks(inner)
                || keys.any(|key| match key {
                    OrderExpression::Asc(key) | OrderExpression::Desc(key) => asks_in(key),
                })
        }
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            let mut aggregates = aggregates.iter();
            asks(inner)
                || aggregates.any(|(_, aggregate)| match aggregate {
                    AggregateExpression::CountSolutions { .. } => false,
                    AggregateExpression::FunctionCall { expr, .. } => asks_in(expr),
                })
        }
        GraphPattern::Graph { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => asks(inner),
    }
}

/// Whether the edges of a search for paths, or of an algorithm, ask other endpoints.
fn asks_for_edges(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Join { left, right } => asks_for_edges(left) || asks_for_edges(right),
        GraphPattern::Service { inner, .. } => asks(inner),
        other => asks(other),
    }
}

fn asks_in(expression: &Expression) -> bool {
    if let Expression::Exists(pattern) = expression {
        return asks(pattern);
    }
    let mut found = false;
    for_each_child(expression, &mut |child| found |= asks_in(child));
    found
}
