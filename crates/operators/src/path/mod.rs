//! Property paths (SPARQL 1.1, 9 and 18.4).
//!
//! ```text
//!   input row: which ends are bound?
//!     subject       -> walk the path forward from it
//!     only object   -> walk the reversed path from it
//!     neither       -> forward from every node the path can start at (`starts`)
//!   seeds, some hundred at a time -> [evaluate] pairs (seed, end) -> rows
//! ```
//!
//! A path is evaluated on *pairs*: the seed a walk began at, and the node it has reached. A link
//! looks all nodes up in the order of the permutation; sequences and alternatives keep duplicates,
//! as SPARQL wants (unless it does not matter, as under `DISTINCT`); `*`, `+` and `?` give each end
//! once, by a breadth-first search that all seeds share (`search`). Where both ends are known, the
//! search goes from both (`meeting`). There is no recursion over the data, only over the
//! expression.
//!
//! A path without an input whose ends are both unknown can be walked by several partitions, which
//! take blocks of the nodes to start at from one queue (`dealt`).
//!
//! Memory: the nodes to start at; the pairs of one group of seeds, or a search's nodes with a bit
//! for each seed, counted against the query's memory. Where that is too much, fewer seeds are taken
//! at a time, down to one. A path that is one repetition gives its results out as the search finds
//! them. Every millisecond or so the work gives way to the scheduler.

mod compile;
mod compiled;
mod counted;
mod dealt;
mod edges;
mod evaluate;
mod meeting;
mod plan;
mod reached;
mod run;
mod search;
mod specification;
mod starts;
#[cfg(test)]
mod tests;

pub(crate) use compile::Direction;
pub(crate) use edges::{ActiveGraph, Edges};
pub use plan::PathExec;
pub use specification::PathSpecification;
