//! Path search: nodes and edges of paths over any pattern, as answers.
//!
//! ```text
//!   input rows: which ends are bound?           the pattern of the edges, planned up to three times:
//!     both, source, destination, neither          edges   all of them
//!          |                                       from    those that leave the nodes of a frontier
//!          v                                       to      those that reach the nodes of a frontier
//!   `run` one search for each row  <--- `edges` ---'
//!          |                       frontier by frontier, or all at once
//!          v
//!   [emit] a row for each edge of each path, or one for each path
//! ```
//!
//! The graph (`graph`) has dense numbers for nodes and edges, each edge in the lists of its two
//! nodes. Edges that a frontier found are kept for the searches of later rows. A search with a
//! bound end goes frontier by frontier: the plan of the edges is run again for each level of it,
//! with the nodes of the level as its seed (`frontier`), so that it reads what the search reaches
//! and no more. Where both ends are free, where all edges are few, and after `edges::ROUNDS_MAX`
//! levels, all of them are computed once. Edges that are triples of some predicates and nothing
//! else are looked up node by node (`direct`), whichever they are; only where both ends are free
//! the plan of all edges is run.
//!
//! | file | searches |
//! | --- | --- |
//! | `shortest` | shortest paths, breadth-first, from both ends where both are known; cheapest ones by Dijkstra's algorithm |
//! | `simple` | all simple paths and cycles, by their length, with the exact distance to the end as bound; by iterative deepening where memory ends |
//! | `cheapest` | the first k by cost, best first with the exact remaining cost as bound |
//!
//! Rights, `GRAPH`, filters and states of the past are those of the plans of the edges, or of the
//! view that look-ups read.
//!
//! Memory: the graph and what a search remembers are counted against the query's memory; paths
//! themselves are given out as they are found, two batches ahead at most. Every millisecond or so
//! the work gives way to the scheduler. Each edge looked at is a touch.

mod beginnings;
mod cheapest;
mod compiled;
mod direct;
mod edges;
mod emit;
mod frontier;
mod graph;
mod plan;
mod run;
mod searching;
mod shortest;
mod simple;
mod specification;
#[cfg(test)]
mod tests;

pub use frontier::FrontierExec;
pub use plan::{SearchExec, SearchInputs};
pub use specification::{PathKind, PlainEdges, PlainStep, SearchColumn, SearchSpecification};
