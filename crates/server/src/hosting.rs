//! What clients of other protocols share with those of HTTP: the same engine and writer, the same threads, and turns at the same door.

use crate::callers::PortUsers;
use crate::metrics::Listens;
use crate::nodes::{Answers, Cluster, Work};
use crate::port_statements::PortStatements;
use crate::port_writer::PortWriter;
use crate::router::graphs_of;
use crate::state::ServerState;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use orrery_r2rml::TableMappings;
use orrery_sql::{Guests, Host, Turn, Turns, WriterSource};
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

    fn turn_of_writer(&self) -> BoxFuture<'_, Result<Turn, String>> {
        Box::pin(async {
            let turn = self.0.admission.turn_of_writer().await;
            turn.map(|turn| Box::new(turn) as Turn)
                .map_err(|error| error.to_string())
        })
    }
}

/// What a listener works with.
pub(crate) fn host(state: Arc<ServerState>, listens: Listens) -> Host {
    let cluster = state.options.cluster.as_ref();
    let writer = PortWriter::new(&state.seat, cluster, state.engine.database());
    Host {
        runtime: Arc::clone(state.engine.runtime()),
        database: Arc::clone(state.engine.database()),
        writer: WriterSource::Changing(Arc::new(writer)),
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

/// Clients of the other nodes who change something here. They are answered until what is returned is dropped.
pub(crate) fn guests(
    cluster: &dyn Cluster,
    state: &Arc<ServerState>,
) -> Result<Arc<Guests>, String> {
    // What they change goes no further; their statements are listed by the node that they are at.
    let guests = Guests::new(
        state.sql.clone(),
        PortUsers::of(state, "another node"),
        Arc::new(Door(Arc::clone(state))),
        state.query_threads.handle().clone(),
    );
    let answering = Arc::downgrade(&guests);
    let answers: Answers = Arc::new(move |request| match answering.upgrade() {
        Some(guests) => guests.answer(request),
        None => stream::once(async { Err("this node stops".to_owned()) }).boxed(),
    });
    cluster.answer(Work::Statements, answers)?;
    Ok(guests)
}
