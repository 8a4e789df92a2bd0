//! Graph algorithms: PageRank, components, degrees, triangles, communities.
//!
//! ```text
//!   edges (a plan) -> [pairs] dense numbers, each edge once -> [csr] lists of neighbours -> an algorithm -> a row for each node
//! ```
//!
//! The plan gives the two nodes of each edge, in any order and in several partitions where it is
//! large. Nodes get numbers in the order of their ids, so that an answer does not depend on the
//! order in which edges came. The algorithm then works on plain arrays, on a thread of its own
//! beside those of queries, and with further ones that the engine has free
//! (`orrery_runtime::Workers`), which take pieces of the nodes from one queue. Whoever drops the
//! stream stops it within a piece.
//!
//! | file | algorithm | cost |
//! | --- | --- | --- |
//! | `ranks` | PageRank by power iteration | edges x rounds |
//! | `components` | weakly connected components by union-find | edges |
//! | `triangles` | triangles of each node, by intersecting lists ordered by degree | edges ^ 1.5 |
//! | `communities` | label propagation, in the order of the nodes | edges x rounds |
//!
//! Memory: 12 bytes an edge for the pairs, 4 (8 where direction does not count) for the lists, some
//! 40 a node; all of it counted against the query's memory before it is taken. A graph that does
//! not fit is refused.

mod communities;
mod components;
mod csr;
mod pairs;
mod parallel;
mod plan;
mod ranks;
mod run;
mod specification;
#[cfg(test)]
mod tests;
mod triangles;

pub use plan::AlgorithmExec;
pub use specification::{Algorithm, AlgorithmColumn, AlgorithmSpecification};
