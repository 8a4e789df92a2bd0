//! What all connections share: the engine, the door before the query threads, the server's life.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use orrery_runtime::Runtime;
use orrery_sql::{GraphMappings, GraphSource};
use orrery_storage::{Database, Writer};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::cancel::CancelKeys;
use crate::options::PostgresOptions;
use crate::startup::Tls;
use crate::wire::Wire;

/// The right to compute, given up when dropped.
pub type Turn = Box<dyn Any + Send>;

/// Who may compute now: the door before the query threads.
pub trait Turns: Send + Sync + 'static {
    /// Waits for a turn; one sentence where there is none to be had.
    fn turn(&self) -> BoxFuture<'_, Result<Turn, String>>;
}

/// What connections work with.
pub struct Context {
    /// Memory and threads.
    pub runtime: Arc<Runtime>,
    /// The database.
    pub database: Arc<Database>,
    /// None where the server only reads.
    pub writer: Option<Writer>,
    /// Where `sparql('...')` and `quads` come from.
    pub graphs: Arc<dyn GraphSource>,
    /// Graphs out of tables.
    pub mappings: Arc<dyn GraphMappings>,
    /// The door.
    pub turns: Arc<dyn Turns>,
    /// Where statements compute, and connections live.
    pub threads: Handle,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

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
    pub(crate) context: Context,
    pub(crate) tls: Option<Tls>,
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
