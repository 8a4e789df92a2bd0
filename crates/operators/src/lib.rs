//! Vectorized query operators over sorted columns, as DataFusion physical plans.
//!
//! Solutions travel as Arrow record batches: one nullable `UInt64` column per variable, named like
//! it, whose values are the bits of term ids; null is unbound. Ids are exact (equal ids are the
//! same term, see [`QueryContext`]), so joins and grouping work on ids, and terms are only read
//! where their values or texts matter. Filters and computed values are in `orrery-expressions`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`context`] | the context that the operators of one query share |
//! | [`aggregate`] | COUNT, SUM, AVG, MIN, MAX, SAMPLE, GROUP_CONCAT |
//! | [`complement`] | aggregates over the pairs that do not match |
//! | [`dealing`] | the morsel queue of a leaf's partitions |
//! | [`pattern`] | basic graph patterns: scans and look-up joins over the permutations |
//! | [`path`] | property paths |
//! | [`algorithms`] | graph algorithms: PageRank, components, triangles, communities |
//! | [`search`] | path search: nodes and edges of paths as answers |
//! | [`join`] | joins of solutions in which variables may be unbound |
//! | [`places`] | spatial joins, and the spatial index |
//! | [`nodes`] | simple nodes: append, distinct, shared subplans, numbered rows, LIMIT per value |
//! | [`service`] | SERVICE: solutions of other endpoints |
//! | [`source`] | solutions from elsewhere than quads, such as mapped tables |
//! | [`codec`] | the plan codec: plans as bytes for other processes |
//! | [`touches()`] | the cost of a run |
//! | [`kept`] | cached plans, reused with other constants |
//! | [`rows`], [`graph_names`], [`count`], [`run_counts`] | given solutions, graph names, exact counts, counts of runs |

#[cfg(test)]
mod adjacencies_tests;
pub mod aggregate;
pub mod algorithms;
pub mod codec;
pub mod complement;
pub mod context;
pub mod count;
pub mod dealing;
mod error;
pub mod graph_names;
pub mod join;
pub mod kept;
mod node_metrics;
#[cfg(test)]
mod node_tests;
pub mod nodes;
#[cfg(test)]
#[path = "../../expressions/src/oracle.rs"]
mod oracle;
pub mod path;
pub mod pattern;
pub mod places;
pub mod rows;
pub mod run_counts;
pub mod search;
pub mod service;
mod solutions;
pub mod source;
mod spill_file;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod touch_counter;
mod touches;
pub mod weights;

pub use context::{ContextOptions, QueryContext};
pub use error::{Error, Result};
pub use solutions::solution_schema;
pub use touches::touches;
