//! Distributed plans: stages, whose partitions are spread over workers in several processes.
//!
//! ```text
//!  the process that was asked                      each worker (this one, too)
//!  WorkersExec                                     Workers::answer
//!    cut(plan, members) -> root, stages              Open   description -> the same plan -> cut: the same stages
//!    Open, with the plan's description -------------->
//!    root: ExchangeExec -- Read stage 3, 0 --------> Read   the partitions of stage 3 that are its own
//!                     <- rows, Arrow IPC, an end ---          ExchangeExec -- Read stage 1, 7 --> another worker
//!    Close ---------------------------------------->        what it cost
//! ```
//!
//! The crate knows plans, and no language: a [`Language`] makes a plan of its description (for
//! SPARQL the bytes of the plan itself, for SQL the text, planned over the same commit), has rules
//! about its nodes ([`Rules`]), and translates process-local values in rows ([`Translation`]). A
//! fingerprint of the stages is compared before anything runs.
//!
//! **What is promised.** The answer is right, or the query fails. A worker that is lost before the
//! first rows came out makes the query run again without it, in the end by this process alone;
//! after that the query fails, and says why. Rows are counted by who sends and by who reads them,
//! and an answer without its end is an error.
//!
//! **Memory.** Each worker holds the data of its part within its own limits. Rows that several
//! workers read stay at their worker until the query ends.

mod counts;
mod cut;
mod divided_here;
mod error;
mod exchange;
mod in_process;
mod language;
mod links;
mod messages;
mod network;
mod outputs;
mod owners;
mod pick;
mod run;
mod stages;
#[cfg(test)]
mod tests;
mod worker;

pub use counts::Figures;
pub use cut::gives_unmatched_left;
pub use error::Error;
pub use in_process::InProcess;
pub use language::{
    Ends, Incoming, Language, OfParts, Outgoing, OwnPart, OwnParts, Rules, Translation, WorkerPlan,
};
pub use messages::AsTheyAre;
pub use network::{Answer, Network, NetworkError};
pub use owners::partitions_for;
pub use run::{Query, WorkersExec};
pub use worker::Workers;

/// Rows that a query handles, from which on it pays to divide it: tens of milliseconds of one
/// thread.
pub const LEAST_ROWS: f64 = 2_000_000.0;
