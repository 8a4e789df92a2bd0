//! Settings of the query log.

use std::path::PathBuf;
use std::time::Duration;

/// Smallest bound of the log's size; files need room to be rotated.
pub const QUERY_LOG_BYTES_MIN: u64 = 4 << 20;

/// Where the query log is written, and how much of it is retained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLogOptions {
    /// The directory; created if missing.
    pub directory: PathBuf,
    /// Bound of the size of all files together; [`QUERY_LOG_BYTES_MIN`] at least.
    pub bytes_max: u64,
    /// Duration from which queries are also logged with their plan; none for never.
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
