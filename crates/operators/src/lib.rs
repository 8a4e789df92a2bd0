//! Vectorized query operators over sorted columns, as DataFusion physical plans.
//!
//! Solutions travel as Arrow record batches: one nullable `UInt64` column per variable, named like
//! it, whose values are the bits of term ids; null is unbound. Ids are exact (equal ids are the
//! same term, see [`QueryContext`]), so joins and grouping work on ids, and terms are only read
//! where their values or texts matter. What filters and computed values are: `orrery-expressions`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`context`] | what the operators of one query share |
//! | [`aggregate`] | COUNT, SUM, AVG, MIN, MAX, SAMPLE, GROUP_CONCAT |
//! | [`complement`] | aggregates over a product without the pairs that match |
//! | [`dealing`] | how a leaf's work is dealt to partitions |
//! | [`pattern`] | basic graph patterns: scans and look-up joins over the permutations |
//! | [`path`] | property paths |
//! | [`algorithms`] | ranks, components, triangles and communities of graphs |
//! | [`search`] | paths as answers: their nodes and edges |
//! | [`join`] | joins of solutions in which variables may be unbound |
//! | [`places`] | joins by how places lie to each other |
//! | [`nodes`] | nodes with plain inputs: appended, distinct, shared, numbered rows, the first of each value |
//! | [`service`] | SERVICE: solutions of other endpoints |
//! | [`source`] | solutions that are made of something else than quads |
//! | [`codec`] | plans as bytes, and back |
//! | [`touches()`] | what a run costs |
//! | [`kept`] | plans without their queries, to be made again with other constants |
//! | [`rows`], [`graph_names`], [`count`], [`run_counts`] | given solutions, names of graphs, exact counts, counts of runs |

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
mod node;
mod node_metrics;
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
