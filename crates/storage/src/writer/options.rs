//! The settings of a writer and of a commit.
//!
//! A checkpoint is made in the background after 64 MiB of log or 500,000 changes. A commit can be
//! read as an old state while it is among the last 100 and younger than 24 hours.

use std::sync::Arc;
use std::time::Duration;

use crate::files::io::{Clock, SystemClock};

/// The retention of history: a commit is kept while both limits allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So many of the last commits are kept; with 0 nothing but the present state.
    pub commits_max: u64,
    /// Commits younger than that are kept.
    pub age_max: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            commits_max: 100,
            age_max: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Settings of a writer.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// How long old states can be read.
    pub retention: Retention,
    /// Length of the log from which on a checkpoint is made in the background.
    pub checkpoint_bytes: u64,
    /// Changes since the last checkpoint from which on another is made in the background.
    pub checkpoint_quads: u64,
    /// A graph, or all graphs that one change clears, of so many quads or more is cleared as a
    /// whole: one small record of the log, and the quads are hidden. Fewer are deleted one by one.
    pub whole_graph_quads: u64,
    /// Stamps the commits.
    pub clock: Arc<dyn Clock>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            checkpoint_bytes: 64 * 1024 * 1024,
            checkpoint_quads: 500_000,
            whole_graph_quads: 100_000,
            clock: Arc::new(SystemClock),
        }
    }
}

/// The durability of a commit: when it is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk: a power cut does not lose it.
    #[default]
    Durable,
    /// At once: a power cut may lose it, and then all commits after it. It is visible at once, too,
    /// unless a durable commit before it is still on its way to the disk: then together with that.
    Relaxed,
}

/// The options of a commit.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// Who commits, for the list of commits.
    pub who: String,
    /// When the commit counts as done.
    pub durability: Durability,
    /// The number that the last commit must have; otherwise the transaction fails with
    /// [`crate::Error::CommitConflict`] and changes nothing.
    pub expected: Option<u64>,
    /// Where the change is more than memory holds and becomes a new base: it fails with
    /// [`crate::Error::KeepsHistory`] rather than give up old states that the retention keeps.
    pub keeps_history: bool,
}
