//! What clients of other protocols share with those of HTTP: the same engine and writer, the same threads, and turns at the same door.

use crate::callers::PortUsers;
use crate::metrics::Listens;
use crate::port_statements::PortStatements;
use crate::router::graphs_of;
use crate::state::ServerState;
use futures::future::BoxFuture;
use orrery_mapping::TableMappings;
use orrery_sql::{Host, Turn, Turns, WriterSource};
use std::sync::Arc;

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

/// What a listener works with.
pub(crate) fn host(state: Arc<ServerState>, listens: Listens) -> Host {
    Host {
        runtime: Arc::clone(state.engine.runtime()),
        database: Arc::clone(state.engine.database()),
        writer: WriterSource::Changing(Arc::clone(&state.seat) as _),
        foreign: state.options.foreign.clone(),
        mappings: Arc::new(TableMappings::new(
            state.engine.runtime(),
            &state.options.foreign,
        )),
        graphs: Arc::new(graphs_of(&state.engine, &state.options)),
        connections: Arc::clone(state.metrics.connections(listens)),
        watch: Some(PortStatements::of(&state)),
        users: PortUsers::of(&state, listens.name()),
        threads: state.query_threads.handle().clone(),
        turns: Arc::new(Door(state)),
    }
}
