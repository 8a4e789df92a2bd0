//! From what a database keeps of a mapped graph to its mapping.

use orrery_sql::{MappedGraph, MappingSource};
use orrery_storage::table::Tables;

use crate::error::Result;
use crate::model::Mapping;

/// The mapping of a definition.
pub(crate) fn mapping_of(graph: &MappedGraph, tables: &Tables) -> Result<Mapping> {
    match &graph.source {
        MappingSource::R2rml(text) => Mapping::of_r2rml(text, graph.base.as_deref()),
        MappingSource::Direct(schema) => {
            let base = graph.base.clone();
            let base = base.unwrap_or_else(|| match graph.name.ends_with(['/', '#']) {
                true => graph.name.clone(),
                false => format!("{}/", graph.name),
            });
            Mapping::direct(tables, schema, &base)
        }
    }
}
