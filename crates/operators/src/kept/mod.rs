//! Cached plans: a plan without the query that it was made for.
//!
//! ```text
//! plan, parameters (constants and their ids)   --KeptPlan::of-->   nodes, each over stand-ins for its inputs
//! kept plan, other constants of the same kinds --bind--> filters, ranges --build--> plan for another query's context
//! ```
//!
//! A node that holds nothing of its query (a sort of columns, a limit, `DISTINCT`) is kept as it
//! is, over a leaf that stands for each input, and is put over the new inputs without computing its
//! properties again; it gets metrics of its own. A node that holds the query's context is kept as
//! its description. Nothing here holds a snapshot, a view or terms of a query.
//!
//! A *parameter* is a constant that is another one each time. Where its id stands as subject or
//! object of a pattern, another id is put; where its term stands in a condition, another term is
//! put; bounds on objects that follow from such a condition are asked for anew. Whoever keeps a
//! plan makes sure that these places, and no others, depend on the parameters, and that the terms
//! of the parameters stand for nothing else in the plan (`sparql/src/plan/kept`).
//!
//! A relation that several nodes read is kept with the first of them, and is one node again in each
//! plan that is made. Ends of paths, and of searches for paths, can be parameters; the plans of a
//! search's edges are kept below it like inputs of any node.
//!
//! Kept are plans of the nodes named in `node.rs` and of no others: what has counts of the data in
//! it, other endpoints, and everything in several partitions is planned each time.

mod node;
mod parameters;
mod pattern;
mod plan;

pub use parameters::{Bindings, Parameter, PassingIds};
pub use plan::KeptPlan;
