//! Who asks, and which graphs they may see: what everything that reads data carries from the edge down.
//!
//! Graphs are told by their names, for ids change when a base is written anew: a scope is good for all states of a database, the
//! past ones too. A [`ReadView`](crate::ReadView) resolves it against one snapshot.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use orrery_term::Term;

/// Who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Asker {
    /// Somebody at a server whom nothing is known of.
    #[default]
    Anonymous,
    /// Whoever runs the process, who can read the database's files anyhow: the command line, a server's own work.
    Process,
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "anonymous",
            Self::Process => "process",
        })
    }
}

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadScope {
    asker: Asker,
    /// All graphs if there is no list.
    graphs: Option<Arc<GraphNames>>,
}

impl ReadScope {
    /// All graphs.
    pub fn all(asker: Asker) -> Self {
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

    /// Whether a graph may be seen; the default graph has no name.
    pub fn sees(&self, graph: Option<&Term<'static>>) -> bool {
        self.graphs().is_none_or(|graphs| graphs.contains(graph))
    }
}
