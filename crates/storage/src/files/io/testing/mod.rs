//! File systems for tests: one in memory that simulates power cuts, one that fails on demand.
//!
//! ```text
//! workload -> FailingFileSystem -> RecordingFileSystem      every change recorded, in order
//!                                        |
//!                                    PowerCuts              after each change: what of the unsynced is lost?
//!                                        |
//!                               RecordingFileSystem         the disk as the next start finds it
//! ```
//!
//! What the model promises is what [`super::FileSystem`] promises and no more: bytes are safe after
//! a sync of their file, names after a sync of their directory, and everything else may be kept,
//! lost or torn, each change for itself and in any combination. Where a file became longer without
//! its bytes, those may come back that stood in the blocks before. Real file systems are kinder.
//! What it does not model: sectors that can no longer be read, and damage to bytes that were
//! synced; flip bits for that.
//!
//! This is public because the fault tests of several crates use it; nothing but tests does.

mod failing;
#[cfg(test)]
mod passing;
mod power_cuts;
mod recording;
mod tree;

#[cfg(test)]
pub(crate) use passing::all_else_of_this_machine;

pub use failing::{FailingFileSystem, Fault, Held};
pub use power_cuts::{PowerCuts, Unsynced};
pub use recording::RecordingFileSystem;

#[cfg(test)]
mod tests;
