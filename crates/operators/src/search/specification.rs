//! The specification of a path search.

use std::sync::Arc;

use orrery_term::TermId;

use crate::pattern::{GraphScope, Slot};

/// The kind of paths that a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// The shortest ones between each two ends; the cheapest ones where edges have weights.
    Shortest {
        /// All of them, or any one.
        is_all: bool,
    },
    /// All simple paths, by their length.
    All,
    /// The first so many simple paths between each two ends, by their cost, or by their length.
    First(usize),
}

/// The meaning of an output column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchColumn {
    /// What the input row has.
    Input,
    /// Where the path begins.
    Source,
    /// Where it ends.
    Destination,
    /// The number of the path, from 0.
    PathIndex,
    /// The number of the edge in its path, from 0.
    EdgeIndex,
    /// The edges of the path.
    Length,
    /// The sum of their weights.
    Cost,
    /// The node that the edge leaves.
    Start,
    /// The node that the edge reaches.
    End,
    /// A further variable of the pattern of the edges: a column behind those of the two nodes.
    Exported(usize),
    /// The edge as a triple term, whose predicate is such a further variable.
    Triple(usize),
}

impl SearchColumn {
    /// Whether it differs between the edges of a path.
    pub fn is_of_edge(self) -> bool {
        match self {
            Self::EdgeIndex | Self::Start | Self::End | Self::Exported(_) | Self::Triple(_) => true,
            Self::Input
            | Self::Source
            | Self::Destination
            | Self::PathIndex
            | Self::Length
            | Self::Cost => false,
        }
    }
}

/// A predicate whose triples are edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainStep {
    /// The predicate.
    pub predicate: TermId,
    /// Whether the edge leads from the object to the subject.
    pub is_turned: bool,
}

/// Edges that are triples of any of some predicates, and nothing else.
#[derive(Clone, Debug)]
pub struct PlainEdges {
    /// The predicates.
    pub steps: Arc<[PlainStep]>,
    /// The graph, or merge of graphs, that they are of.
    pub graph: GraphScope,
}

/// The specification of a [`SearchExec`](super::SearchExec).
#[derive(Clone, Debug)]
pub struct SearchSpecification {
    /// Which paths.
    pub kind: PathKind,
    /// Paths that end where they begin, instead of those that do not.
    pub is_cyclic: bool,
    /// Whether the last column of the edges is their weight, a number not below zero.
    pub is_weighted: bool,
    /// Whether edges are followed both ways.
    pub is_bidirectional: bool,
    /// Whether the path without an edge counts, from a node to itself.
    pub allows_empty: bool,
    /// A row for each path, instead of one for each edge.
    pub is_by_path: bool,
    /// Where paths begin.
    pub source: Slot,
    /// Where they end.
    pub destination: Slot,
    /// Shorter paths are no answers.
    pub length_min: u32,
    /// Nor are longer ones.
    pub length_max: Option<u32>,
    /// Paths that are left out at first.
    pub offset: u64,
    /// Paths that are given at most.
    pub limit: Option<u64>,
    /// Whether all edges are computed before the first search.
    pub begins_whole: bool,
    /// What the edges are, if they can be looked up without a plan.
    pub plain: Option<PlainEdges>,
    /// How many further variables the edges have.
    pub exported: usize,
    /// The variables of the output, in order.
    pub output: Vec<(Arc<str>, SearchColumn)>,
}
