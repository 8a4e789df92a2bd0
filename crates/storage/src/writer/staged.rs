//! Staged insertions: those of a transaction that exceed memory.

use std::fmt::Debug;

use orrery_term::TermId;

use crate::Result;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::COLUMNS;

/// Graphs of staged quads that are told apart; beyond, all named ones count.
const GRAPHS_MAX: usize = 64;

/// The receiver of insertions that exceed memory.
pub trait InsertionStage: Send + Sync + Debug {
    /// Takes quads, of the ids that the transaction gave their terms. One may come several times,
    /// or be there already.
    fn insert(&mut self, quads: &[[TermId; COLUMNS]]) -> Result<()>;
}

/// What a transaction has staged.
#[derive(Debug)]
pub(super) struct Staged {
    stage: Box<dyn InsertionStage>,
    graphs: GraphSet,
    graphs_listed: usize,
}

impl Staged {
    pub(super) fn new(stage: Box<dyn InsertionStage>) -> Self {
        Self {
            stage,
            graphs: GraphSet::default(),
            graphs_listed: 0,
        }
    }

    pub(super) fn insert(&mut self, quads: &[[TermId; COLUMNS]]) -> Result<()> {
        let mut last = None;
        for quad in quads {
            let graph = quad[COLUMNS - 1];
            if last != Some(graph) && !self.graphs.contains(graph) {
                self.graphs_listed += 1;
                let more = match self.graphs_listed > GRAPHS_MAX {
                    true => GraphSet::named(),
                    false => GraphSet::one(graph),
                };
                self.graphs = self.graphs.union(&more);
            }
            last = Some(graph);
        }
        self.stage.insert(quads)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.graphs.is_empty()
    }

    /// Whether staged quads may be in some graphs.
    pub(super) fn may_be_in(&self, graphs: &GraphSet) -> bool {
        let named = |set: &GraphSet| set.has_all_named();
        let is_among = |set: &GraphSet, other: &GraphSet| {
            let mut listed = set.listed();
            listed.any(|graph| other.contains(graph))
        };
        is_among(&self.graphs, graphs)
            || is_among(graphs, &self.graphs)
            || (named(&self.graphs) && named(graphs))
    }
}
