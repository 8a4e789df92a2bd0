//! The shared resources of all running queries, in both languages: memory, threads, adjacencies,
//! spill files.
//!
//! ```text
//!   RuntimeOptions -> Runtime    memory       pools, their bounds, who waits for room
//!                                workers      how many threads are at work
//!                                adjacencies  values of hot predicates, decoded
//!                                account      what requests of one account may hold of the memory
//!                                own_share    what one request holds, and whether others are why it was refused
//!                                task         settings, pool and place for spills, as DataFusion's plans want them
//! ```
//!
//! A query engine makes one [`Runtime`] and gives it to every query; a second engine over the same
//! database takes it from the first, so that both keep within one budget. [`Patience`] and [`Pace`]
//! are for one query each: until when it may be planned, and when its streams must give way to
//! others; [`Spending`] is what one request has cost.
//!
//! Nothing here knows SPARQL, patterns or plans but as trees of nodes with columns.

mod account;
mod adjacencies;
mod error;
mod exhausted;
mod memory;
mod own_share;
mod pace;
mod patience;
mod runtime;
mod share;
mod spending;
mod workers;

pub use account::{AccountShare, WithinShares};
pub use adjacencies::{Adjacencies, AdjacencyCounts, BuildThresholds, Remade};
pub use error::{Error, Result};
pub use exhausted::{is_of_account as is_refused_by_account, words as words_of_refusal};
pub use memory::{FUNCTION_RESULT, HeldMemory, Memory, MemoryFigures, PoolFigures};
pub use own_share::OwnShare;
pub use pace::Pace;
pub use patience::Patience;
pub use runtime::{Runtime, RuntimeOptions, environment_with_pool};
pub use spending::{Paused, Spending, Touched, Watched};
pub use workers::{Busy, Workers};
