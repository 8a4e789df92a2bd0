//! Joins of two sets of solutions in which any variable may be unbound.
//!
//! Two solutions are *compatible* if every variable that both bind has the same value in both
//! (SPARQL 1.1, 18.3). An unbound variable is compatible with everything, so a plain hash join on
//! the shared variables is wrong as soon as one of them may be unbound. Here the right side is
//! collected and grouped by *which* shared variables are unbound; a left solution meets each group
//! through a hash table on just those variables that are bound on both sides. When everything is
//! bound, that is one group and one table: an ordinary hash join.
//!
//! ```text
//!   right input -> [build]  rows by unbound mask -> tables by key set, made when first needed
//!   left input  -> [probe]  batch by batch -> pairs, bounded -> filters -> output batches
//! ```
//!
//! The right side is counted against the query's memory; what does not fit goes to the disk, and is
//! joined block by block (`spill`). Else the left side streams.

mod build;
mod compiled;
mod keys;
#[cfg(test)]
mod keys_tests;
mod plan;
mod probe;
mod specification;
mod spill;
mod stream;
#[cfg(test)]
mod tests;

pub use keys::{KEYS_MAX, KeysExec};
pub use plan::SolutionJoinExec;
pub use specification::{JoinMode, JoinSpecification, Uncounted};
