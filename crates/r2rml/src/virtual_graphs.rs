//! The mapped graphs that a query sees, compiled for its state.
//!
//! What is compiled is kept for the state of the tables that was asked last: commits of quads alone
//! leave it as it is.

use std::sync::Arc;

use orrery_sparql::mapped::{MappedDataset, MappedGraphs, MappedPart, MappedPattern};
use orrery_sparql::{Engine, QueryError};
use orrery_sql::{ForeignAccess, MappedGraph};
use orrery_storage::Snapshot;
use orrery_storage::table::Tables;
use parking_lot::Mutex;

use crate::compiled::CompiledGraphs;
use crate::mapped_query::MappedQuery;
use crate::matching::{PATTERN_LEAVES_MAX, parts};
use crate::table_mappings::TableMappings;

/// The engine that sees mapped graphs, also of tables of other servers as far as these may be read.
pub fn mapped(engine: Engine, foreign: &ForeignAccess) -> Engine {
    let mappings = TableMappings::new(engine.runtime(), foreign);
    engine.with_mapped_graphs(Arc::new(mappings))
}

impl MappedGraphs for TableMappings {
    fn are_in(&self, tables: &Tables) -> bool {
        MappedGraph::are_there(tables)
    }

    fn of_query(
        &self,
        snapshot: &Arc<Snapshot>,
    ) -> std::result::Result<Arc<dyn MappedDataset>, QueryError> {
        let tables = snapshot.tables();
        let known = {
            let compiled = self.compiled.lock();
            let known = compiled.as_ref();
            known.and_then(|(of, graphs)| {
                let is_same =
                    std::ptr::eq(of.as_ptr(), Arc::as_ptr(tables)) && of.strong_count() > 0;
                is_same.then(|| Arc::clone(graphs))
            })
        };
        let graphs = match known {
            Some(graphs) => graphs,
            None => {
                let graphs = CompiledGraphs::of(tables, self.reader());
                let graphs = graphs.map_err(|error| QueryError::Unsupported {
                    what: error.to_string(),
                })?;
                let graphs = Arc::new(graphs);
                *self.compiled.lock() = Some((Arc::downgrade(tables), Arc::clone(&graphs)));
                graphs
            }
        };
        Ok(Arc::new(Dataset {
            query: Arc::new(MappedQuery {
                reader: self.reader().clone(),
                tables: Arc::clone(tables),
                labels: Mutex::default(),
            }),
            graphs,
        }))
    }
}

/// The mapped graphs of a query.
#[derive(Debug)]
struct Dataset {
    query: Arc<MappedQuery>,
    graphs: Arc<CompiledGraphs>,
}

impl MappedDataset for Dataset {
    fn names(&self) -> Vec<&str> {
        let graphs = self.graphs.graphs.iter();
        graphs.map(|graph| graph.name.as_str()).collect()
    }

    fn matches(
        &self,
        graph: &str,
        patterns: &[MappedPattern],
    ) -> std::result::Result<Vec<MappedPart>, QueryError> {
        let unsupported = |what: String| QueryError::Unsupported { what };
        let known = self.graphs.graphs.iter().find(|it| it.name == graph);
        let known = known.ok_or_else(|| unsupported(format!("the mapped graph <{graph}>")))?;
        let (rules, own) = known.rules.as_ref().map_err(|message| {
            unsupported(format!(
                "the mapped graph <{graph}> as its tables are now: {message}"
            ))
        })?;
        parts(&self.query, rules, own, patterns).ok_or_else(|| {
            unsupported(format!(
                "a pattern that more than {PATTERN_LEAVES_MAX} rules of the mapped graph <{graph}> can match"
            ))
        })
    }
}
