//! `SERVICE`: solutions of other SPARQL endpoints (SPARQL 1.1 Federated Query).
//!
//! ```text
//!   input batches -> [block]   rows until there are enough distinct keys; split by endpoint and by
//!                              which of the shared variables can be sent
//!                 -> [query]   SELECT ... { VALUES (shared) { keys } pattern }
//!                 -> RemoteEndpoints::ask, the seam to the network
//!                 -> [answer]  bytes parsed on a thread as they come; terms -> ids
//!                 -> [run]     joined to the rows of the block -> output batches
//! ```
//!
//! **Why the keys may be sent.** Joining the pattern with the distinct keys of a block, of variables
//! that every row of it binds, removes solutions that no row of the block is compatible with, and no
//! others: a row agrees with exactly one key. So each row meets the same solutions as without the
//! keys, once each. Where asking twice could give two different answers (`LIMIT`, `RAND`) or
//! would cost the endpoint too much (aggregates), the planner asks once and joins.
//! What cannot be sent (blank nodes, IRIs that are none) is left out of the keys and compared here.
//!
//! Blank nodes of an answer are new ones, the same within one answer. `SILENT`: an answer
//! that fails, also in its middle, counts as one solution without bindings, so it is kept back until
//! its end; else solutions are given as they come.
//!
//! **Bounds.** Keys and rows of a block, rows of an answer ([`ServiceOptions`]), requests under way (four); bytes
//! and time of an answer are bounded by the implementation of [`RemoteEndpoints`]. What blocks
//! and silent answers hold is counted against the query's memory.

mod answer;
mod block;
mod plan;
mod query;
mod run;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;

pub use plan::ServiceExec;

/// Other endpoints: the one seam between queries and the network. The implementation decides
/// who may be asked, and bounds time and bytes.
pub trait RemoteEndpoints: fmt::Debug + Send + Sync {
    /// Sends a `SELECT` query to an endpoint; ready when the answer begins. `accept` are the media
    /// types of results that are understood.
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>>;
}

/// An answer that has begun.
pub struct RemoteAnswer {
    /// The media type, with its parameters, if it was sent.
    pub content_type: Option<String>,
    /// The bytes; ends after the first failure.
    pub body: BoxStream<'static, Result<Bytes, RemoteFailure>>,
}

impl fmt::Debug for RemoteAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAnswer")
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

/// Why an endpoint gave no answer, or not all of it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RemoteFailure {
    /// What went wrong, and where.
    pub message: String,
    /// Whether it took too long.
    pub is_timeout: bool,
    /// Whether the endpoint was not asked, because it may not be. A query takes that as any failure, an update does not:
    /// what counts as "no bindings" there would change too much.
    pub is_forbidden: bool,
}

impl RemoteFailure {
    /// A failure that is not one of time, of an endpoint that may be asked.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_timeout: false,
            is_forbidden: false,
        }
    }
}

/// How other endpoints are asked.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Who is asked.
    pub endpoints: Arc<dyn RemoteEndpoints>,
    /// Most solutions of one answer; beyond, the query fails. Default: 1,000,000.
    pub answer_rows_max: usize,
    /// Most keys in one request. The first request has a tenth of them, so that a query with a
    /// `LIMIT` asks for little. Default: 1,000.
    pub block_keys_max: usize,
}

impl ServiceOptions {
    /// The defaults, with these endpoints.
    pub fn new(endpoints: Arc<dyn RemoteEndpoints>) -> Self {
        Self {
            endpoints,
            answer_rows_max: 1_000_000,
            block_keys_max: 1_000,
        }
    }
}

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `SERVICE <iri>`.
    Iri(Arc<str>),
    /// `SERVICE ?variable`: the input binds it, row by row.
    Variable(Arc<str>),
}

/// A variable of the pattern that is asked for.
#[derive(Clone, Debug)]
pub struct ServiceVariable {
    /// Its name in the pattern.
    pub name: Variable,
    /// Its column here.
    pub column: Arc<str>,
    /// Whether every solution of the pattern binds it; an answer without it is refused.
    pub is_certain: bool,
}

/// What a [`ServiceExec`] is to do.
#[derive(Clone, Debug)]
pub struct ServiceSpecification {
    /// Whom to ask.
    pub endpoint: Endpoint,
    /// What: a pattern whose display means the pattern.
    pub pattern: GraphPattern,
    /// Whether a failure counts as one solution without bindings.
    pub is_silent: bool,
    /// Whether the input's terms for shared variables are sent along.
    pub sends_keys: bool,
    /// The variables of the pattern that are asked for: those of the output and the shared ones.
    pub variables: Vec<ServiceVariable>,
    /// The variables of the output, in order.
    pub output: Vec<Arc<str>>,
}
