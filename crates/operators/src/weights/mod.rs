//! Edge weights in memory: a weight per pair of nodes, found from either end.
//!
//! ```text
//!   rows with a start, an end, both or none --> WeightsExec --> the rows with the pairs that fit, and their weights
//!                                                   |
//!                                              WeightTable      of one state, made and kept up to date elsewhere
//! ```
//!
//! A look-up is a search by halves in the sorted pairs, and one among what changed since they were
//! sorted. Each pair that is given is a touch.

mod node;
mod table;

pub use node::{WeightsExec, WeightsSpecification};
pub use table::{Weight, WeightTable};
