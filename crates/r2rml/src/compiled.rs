//! The compiled mapped graphs of a state of the tables.

use std::sync::{Arc, Weak};

use futures::FutureExt as _;
use orrery_sql::{MappedGraph, TableReader};
use orrery_storage::table::Tables;
use orrery_term::Term;
use parking_lot::Mutex;

use crate::definitions::mapping_of;
use crate::error::{Error, Result};
use crate::rules::{MakerValue, Rules};

/// A rule of a mapped graph, among all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleAt {
    pub(crate) map: usize,
    pub(crate) rule: usize,
}

/// What was compiled last.
pub(crate) type Compiled = Mutex<Option<(Weak<Tables>, Arc<CompiledGraphs>)>>;

/// The mapped graphs of a state.
#[derive(Debug)]
pub(crate) struct CompiledGraphs {
    pub(crate) graphs: Vec<CompiledGraph>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct CompiledGraph {
    pub(crate) name: String,
    /// The rules of its mapping, and those of them whose triples are in it; or why there are none.
    pub(crate) rules: std::result::Result<(Arc<Rules>, Vec<RuleAt>), String>,
}

impl CompiledGraphs {
    pub(crate) fn of(tables: &Arc<Tables>, reader: &TableReader) -> Result<Self> {
        let mut graphs: Vec<CompiledGraph> = Vec::new();
        for graph in MappedGraph::all(tables)? {
            let rules = rules_of(&graph, tables, reader);
            let rules = match rules {
                Ok(rules) => Arc::new(rules),
                Err(error) => {
                    graphs.push(CompiledGraph {
                        name: graph.name,
                        rules: Err(error.to_string()),
                    });
                    continue;
                }
            };
            let mut of_graph: Vec<(&str, Vec<RuleAt>)> = vec![(&graph.name, Vec::new())];
            for (map, all) in rules.maps.iter().enumerate() {
                for (rule, it) in all.rules.iter().enumerate() {
                    let name = match it.graph.as_ref().map(|graph| &graph.value) {
                        None => graph.name.as_str(),
                        Some(MakerValue::Constant(Term::Iri(iri))) => iri.as_ref(),
                        // Which graphs there are, the rows say: MATERIALIZE makes them.
                        Some(_) => continue,
                    };
                    let at = RuleAt { map, rule };
                    match of_graph.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, rules)) => rules.push(at),
                        None => of_graph.push((name, vec![at])),
                    }
                }
            }
            let compiled = of_graph.into_iter().map(|(name, own)| CompiledGraph {
                name: name.to_owned(),
                rules: Ok((Arc::clone(&rules), own)),
            });
            let compiled: Vec<CompiledGraph> = compiled.collect();
            for graph in compiled {
                if !graphs.iter().any(|known| known.name == graph.name) {
                    graphs.push(graph);
                }
            }
        }
        Ok(Self { graphs })
    }
}

fn rules_of(graph: &MappedGraph, tables: &Arc<Tables>, reader: &TableReader) -> Result<Rules> {
    let mapping = mapping_of(graph, tables)?;
    // Nothing is waited for: files are refused, and the rest is computed.
    let rules = Rules::of(&mapping, tables, reader).now_or_never();
    rules.unwrap_or_else(|| Err(Error::Words("its tables cannot be looked at".to_owned())))
}
