//! Quads: dictionary, permutations, deltas, statistics and adjacencies.
//!
//! A `dictionary` turns terms into ids. An `index` holds the rows of one permutation; a `delta`
//! lies over it with what changed. `statistics` and `adjacency` are made from these rows.

pub mod adjacency;
pub(crate) mod changes;
pub mod delta;
pub(crate) mod delta_dictionary;
pub mod dictionary;
pub(crate) mod graph_set;
pub(crate) mod index;
pub(crate) mod read_cost;
pub(crate) mod row_checks;
pub mod statistics;
