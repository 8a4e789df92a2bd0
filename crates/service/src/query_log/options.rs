//! Settings of the query log.

use std::path::PathBuf;
use std::time::Duration;

/// Less is not enough for files to come and go.
pub const QUERY_LOG_BYTES_MIN: u64 = 4 << 20;

/// Where the query log goes, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLogOptions {
    /// A directory, which is made if it is not there.
    pub directory: PathBuf,
    /// How large all files together may become; [`QUERY_LOG_BYTES_MIN`] at least.
    pub bytes_max: u64,
    /// What takes longer is also logged with its plan.
    pub slow: Option<Duration>,
}

impl QueryLogOptions {
    /// The defaults for a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            bytes_max: 1 << 30,
            slow: None,
        }
    }
}
