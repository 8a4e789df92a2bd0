//! The specification of a graph algorithm: its name, settings and output columns.

use std::sync::Arc;

/// The algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// PageRank: so many rounds, with this chance to follow an edge.
    PageRank {
        /// Rounds of the power iteration.
        iterations: u32,
        /// The chance to follow an edge, rather than to begin anywhere.
        damping: f64,
    },
    /// Weakly connected components: the first node of a node's component.
    Components,
    /// The number of edges.
    Degree,
    /// The number of triangles that a node is a corner of; direction does not count.
    Triangles,
    /// Label propagation: the first node of a node's community, after so many rounds at most.
    Communities {
        /// Rounds at most; it ends earlier when nothing changes.
        iterations: u32,
    },
}

/// The meaning of an output column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmColumn {
    /// The node.
    Node,
    /// What the algorithm says of it; with [`Algorithm::Degree`] all its edges.
    Value,
    /// Edges that reach it; only with [`Algorithm::Degree`].
    InDegree,
    /// Edges that leave it; only with [`Algorithm::Degree`].
    OutDegree,
}

/// The specification of an [`AlgorithmExec`](super::AlgorithmExec).
#[derive(Clone, Debug)]
pub struct AlgorithmSpecification {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The variables of the output, in order.
    pub output: Vec<(Arc<str>, AlgorithmColumn)>,
}
