//! Dense aggregation: a scan's rows are aggregated in arrays with a slot per possible group, where
//! these are few.
//!
//! ```text
//! AggregateExec: mode=Partial          DenseAggregateExec            (of mode=Single its first step, and a second one above it)
//!   ProjectionExec                 ->    the same, computed here    (rule)
//!     ScanExec                             chunks of rows that pass, as ScanStream finds them
//!
//! chunk -> codes and numbers of the group's columns -> number of the group of each row       (groups)
//!       -> numbers of the columns that are added up -> sums, products: 64-bit integers       (lanes)
//!       -> a count for each group, a sum, least or greatest value for each argument          (tables)
//! ```
//!
//! A group is a place in a table if its columns have a dictionary, or are integers between near
//! bounds. What is added up are decimals and integers; the bounds of their columns, which the file
//! knows, say that no step runs over 64 bits, so none is checked, and rows are not asked for NULL
//! where the file has none. Wherever any of that does not hold, the plan stays as it is (`rule`).
//!
//! What comes out is what the partial aggregation would give: groups with the states of their
//! aggregates, for the final one above. Rows that are not in the file yet go through the partial
//! aggregation itself, over a scan of these alone, and so does all where there is no memory for the
//! tables.

mod groups;
mod lanes;
mod node;
mod plan;
mod rule;
mod stream;
mod tables;

pub(super) use node::rows_apart;
pub use rule::DenseAggregation;
