//! The interface to the network: requests to endpoints and their answers.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

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

/// The failure of an endpoint: no answer, or only part of one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RemoteFailure {
    /// What went wrong, and where.
    pub message: String,
    /// Whether it took too long.
    pub is_timeout: bool,
    /// Whether the endpoint was not asked, because it may not be. A query takes that as any
    /// failure, an update does not: what counts as "no bindings" there would change too much.
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

/// The settings of requests to endpoints.
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
