//! State that all connections share: options, the host of their sessions, and the server's stage.

use std::sync::Arc;

use orrery_service::ports::host::Host;
use orrery_tls::Tls;
use tokio::sync::{Semaphore, watch};

use crate::cancel::CancelKeys;
use crate::options::PostgresOptions;
use crate::wire::Wire;

/// The stages of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Running statements may end.
    Stopping,
    /// Nothing is waited for any more.
    Over,
}

/// The options, host, TLS, cancel keys and limits of one listener.
pub(crate) struct Shared {
    pub(crate) options: PostgresOptions,
    pub(crate) host: Host,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) keys: Arc<CancelKeys>,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) connections: Arc<Semaphore>,
}

/// Sends the remaining output and closes the connection.
pub(crate) async fn close(wire: Wire) {
    if let Err(error) = wire.close().await {
        tracing::debug!("a PostgreSQL client did not wait for the last words: {error}");
    }
}
