//! What all connections share: the engine and the door before it, the server's life.

use std::sync::Arc;

use orrery_service::ports::host::Host;
use orrery_tls::Tls;
use tokio::sync::{Semaphore, watch};

use crate::cancel::CancelKeys;
use crate::options::PostgresOptions;
use crate::wire::Wire;

/// What is left of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Statements that run may end.
    Stopping,
    /// Nobody is waited for.
    Over,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: PostgresOptions,
    pub(crate) host: Host,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) keys: Arc<CancelKeys>,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) connections: Arc<Semaphore>,
}

/// Sends the last words.
pub(crate) async fn close(wire: Wire) {
    if let Err(error) = wire.close().await {
        tracing::debug!("a PostgreSQL client did not wait for the last words: {error}");
    }
}
