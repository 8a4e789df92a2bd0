//! The loading of a mapping from a mapped graph's definition.

use orrery_sql::{MappedGraph, MappingSource};
use orrery_storage::table::Tables;

use crate::error::Result;
use crate::model::Mapping;

/// The mapping of a definition. Where it has no base of its own, and a text sets none, names are
/// relative to the graph's, as what is in a directory.
pub(crate) fn mapping_of(graph: &MappedGraph, tables: &Tables) -> Result<Mapping> {
    let of_graph = match graph.name.ends_with(['/', '#']) {
        true => graph.name.clone(),
        false => format!("{}/", graph.name),
    };
    match &graph.source {
        MappingSource::R2rml(text) => Mapping::of_r2rml(text, graph.base.as_deref(), &of_graph),
        MappingSource::Direct(schema) => {
            let base = graph.base.clone().unwrap_or(of_graph);
            Mapping::direct(tables, schema, &base)
        }
    }
}
