//! `SERVICE`: solutions of other SPARQL endpoints (SPARQL 1.1 Federated Query).
//!
//! ```text
//!   input batches -> [block]   rows until there are enough distinct keys; split by endpoint and by
//!                              which of the shared variables can be sent
//!                 -> [query]   SELECT ... { VALUES (shared) { keys } pattern }
//!                 -> RemoteEndpoints::ask, the seam to the network
//!                 -> [answer]  bytes parsed on a thread as they come; terms -> ids
//!                 -> [run]     joined to the rows of the block -> output batches
//! ```
//!
//! **Why the keys may be sent.** Joining the pattern with the distinct keys of a block, of
//! variables that every row of it binds, removes solutions that no row of the block is compatible
//! with, and no others: a row agrees with exactly one key. So each row meets the same solutions as
//! without the keys, once each. Where asking twice could give two different answers (`LIMIT`,
//! `RAND`) or would cost the endpoint too much (aggregates), the planner asks once and joins. What
//! cannot be sent (blank nodes, IRIs that are none) is left out of the keys and compared here.
//!
//! Blank nodes of an answer are new ones, the same within one answer. `SILENT`: an answer that
//! fails, also in its middle, counts as one solution without bindings, so it is kept back until its
//! end; else solutions are given as they come.
//!
//! **Bounds.** Keys and rows of a block, rows of an answer ([`ServiceOptions`]), requests under way
//! (four); bytes and time of an answer are bounded by the implementation of [`RemoteEndpoints`].
//! What blocks and silent answers hold is counted against the query's memory.

mod answer;
mod block;
mod compiled;
mod endpoints;
mod plan;
mod query;
mod run;
mod specification;

pub use endpoints::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
pub use plan::ServiceExec;
pub use specification::{Endpoint, ServiceSpecification, ServiceVariable};
