//! The errors of reports.

use std::io;
use std::path::PathBuf;

/// The reason why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or the directory.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory has no file of a query log.
    #[error("{} has no query log; name the directory that `orrery serve --query-log` was given", directory.display())]
    NoLog {
        /// Which one.
        directory: PathBuf,
    },
    /// There are too many days and users.
    #[error("there are more than {max} days and users; choose a shorter period (--from, --to)")]
    TooMuch {
        /// How many there may be.
        max: usize,
    },
    /// The thread that reads could not be had, or has panicked.
    #[error("the log could not be read: {0}")]
    Thread(String),
}
