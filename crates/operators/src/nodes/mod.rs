//! Simple nodes between patterns, paths, joins and aggregates.
//!
//! | node | what it gives |
//! | --- | --- |
//! | [`AppendExec`] | the rows of several inputs, one after the other, on one thread |
//! | [`CandidatesExec`] | rows that can be among the first of a sort, as far as ids tell |
//! | [`DistinctExec`] | distinct rows in the order in which they first come |
//! | [`FirstEnoughExec`] | the rows of the first input that has enough of them |
//! | [`LimitOfEachExec`] | some of the rows of each value of a column |
//! | [`NumberedExec`] | rows with their numbers |
//! | `OrderExec` | rows in order, in plans that are kept |
//! | [`SharedExec`] | rows that several nodes read, computed once |
//! | `StreamExec` | a stream, for a node that goes on with what another began |

mod append;
mod batch_by_batch;
mod candidates;
mod distinct;
mod first_enough;
mod limit_of_each;
mod numbered;
mod order;
mod shared;
mod stream_node;

pub use append::AppendExec;
pub use candidates::{CandidatesExec, ROWS_ASKED_MAX};
pub use distinct::DistinctExec;
pub use first_enough::FirstEnoughExec;
pub use limit_of_each::LimitOfEachExec;
pub use numbered::NumberedExec;
pub(crate) use order::OrderExec;
pub use shared::SharedExec;
pub(crate) use stream_node::StreamExec;
