//! PostgreSQL's clients beside those of HTTP: the same engine and writer, the same threads, and turns at the same door.

use crate::router::graphs_of;
use crate::state::ServerState;
use futures::future::BoxFuture;
use orrery_mapping::TableMappings;
use orrery_postgres::{Context, Listener, Turn, Turns};
use orrery_storage::Writer;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A listener for them, with what they share with the others.
pub(crate) struct Postgres {
    listener: Listener,
    state: Arc<ServerState>,
    writer: Option<Writer>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// The door before the query threads, as connections see it.
struct Door(Arc<ServerState>);

impl Turns for Door {
    fn turn(&self) -> BoxFuture<'_, Result<Turn, String>> {
        Box::pin(async {
            let turn = self.0.admission.turn().await;
            turn.map(|turn| Box::new(turn) as Turn)
                .map_err(|error| error.to_string())
        })
    }
}

impl Postgres {
    pub(crate) fn new(listener: Listener, state: Arc<ServerState>, writer: Option<Writer>) -> Self {
        Self {
            listener,
            state,
            writer,
        }
    }

    pub(crate) fn local_addr(&self) -> std::io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` becomes true and the grace period is over.
    pub(crate) fn start(self, stop: watch::Receiver<bool>) -> JoinHandle<()> {
        if let Ok(address) = self.local_addr() {
            tracing::info!("listening for PostgreSQL's clients on {address}");
        }
        let context = Context {
            runtime: Arc::clone(self.state.engine.runtime()),
            database: Arc::clone(self.state.engine.database()),
            writer: self.writer,
            mappings: Arc::new(TableMappings::new(self.state.engine.runtime())),
            graphs: Arc::new(graphs_of(&self.state.engine, &self.state.options)),
            threads: self.state.query_threads.handle().clone(),
            turns: Arc::new(Door(self.state)),
        };
        tokio::spawn(self.listener.run(context, stop))
    }
}
