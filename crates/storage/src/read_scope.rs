//! Who asks, and which graphs they may see: what everything that reads data carries from the edge down.
//!
//! Graphs are told by their names, for ids change when a base is written anew: a scope is good for all states of a database, the
//! past ones too. A [`ReadView`](crate::ReadView) resolves it against one snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use orrery_term::Term;

use crate::asker::Asker;
use crate::{Error, Result};

/// Graphs by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphNames {
    /// Whether the default graph is one of them.
    pub has_default: bool,
    /// The names of the others.
    pub named: BTreeSet<Term<'static>>,
}

impl GraphNames {
    /// Whether a graph is one of them; the default graph has no name.
    pub fn contains(&self, graph: Option<&Term<'static>>) -> bool {
        match graph {
            Some(name) => self.named.contains(name),
            None => self.has_default,
        }
    }
}

/// Who asks, and which graphs they may see. Cheap to copy.
///
/// There is no default: whoever shows all graphs says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadScope {
    asker: Asker,
    /// All graphs if there is no list.
    graphs: Option<Arc<GraphNames>>,
}

impl ReadScope {
    /// All graphs.
    pub fn all_graphs(asker: Asker) -> Self {
        Self {
            asker,
            graphs: None,
        }
    }

    /// These graphs and no others.
    pub fn only(asker: Asker, graphs: GraphNames) -> Self {
        Self {
            asker,
            graphs: Some(Arc::new(graphs)),
        }
    }

    /// Who asks.
    pub fn asker(&self) -> Asker {
        self.asker
    }

    /// The graphs that may be seen; `None` if all.
    pub fn graphs(&self) -> Option<&GraphNames> {
        self.graphs.as_deref()
    }

    /// Fails where graphs are hidden: some work takes data as a whole, without asking of which graph they are. `work` is a verb and its
    /// object, such as "change data".
    pub fn require_all_graphs(&self, work: &'static str) -> Result<()> {
        match self.graphs {
            None => Ok(()),
            Some(_) => Err(Error::HiddenGraphs {
                asker: self.asker,
                work,
            }),
        }
    }

    /// Whether a graph may be seen; the default graph has no name.
    pub fn sees(&self, graph: Option<&Term<'static>>) -> bool {
        self.graphs().is_none_or(|graphs| graphs.contains(graph))
    }
}
