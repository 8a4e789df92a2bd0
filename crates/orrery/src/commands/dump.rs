//! `orrery dump`: every quad, in SPOG order; with named graphs as N-Quads, TriG or JSON-LD.

use orrery_server::format::{GraphFormat, GraphSerializer, graph_format_names};
use orrery_storage::Database;

use super::output::Output;
use crate::arguments::DumpArguments;
use crate::failure::Failure;

/// Bytes gathered before they go to the output.
const CHUNK_BYTES: usize = 1 << 16;

pub(crate) fn run(arguments: DumpArguments) -> Result<(), Failure> {
    let format = GraphFormat::from_name(&arguments.format).ok_or_else(|| {
        Failure::Other(format!(
            "cannot dump as '{}'; there are: {}",
            arguments.format,
            graph_format_names()
        ))
    })?;
    let database = Database::open(&arguments.database.directory)?;
    if database.snapshot().has_named_graphs() && !format.has_named_graphs() {
        return Err(Failure::Other(format!(
            "cannot dump as '{}', for there are named graphs; use nq, trig or jsonld",
            arguments.format
        )));
    }
    let mut output = Output::open(arguments.output.as_deref())?;
    let mut serializer = GraphSerializer::start(format);
    let mut buffer = Vec::with_capacity(2 * CHUNK_BYTES);
    let snapshot = match arguments.at {
        Some(at) => database.snapshot_at(at)?,
        None => database.snapshot(),
    };
    let mut quads = snapshot.quads()?;
    while let Some(batch) = quads.next_batch()? {
        for quad in batch.iter() {
            serializer.quad(
                quad.subject,
                quad.predicate,
                quad.object,
                quad.graph,
                &mut buffer,
            )?;
            if buffer.len() >= CHUNK_BYTES {
                output.drain(&mut buffer)?;
            }
        }
    }
    serializer.finish(&mut buffer)?;
    output.drain(&mut buffer)?;
    output.finish()
}
