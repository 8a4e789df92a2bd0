//! What a command failed of: one line for people.

use std::io;
use std::path::{Path, PathBuf};

use orrery_storage::reason;

/// Why a command did not do its work. Its `Display` is the line on standard error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Whoever read our standard output has gone.
    #[error("standard output was closed")]
    OutputClosed,
    #[error(transparent)]
    Bench(#[from] orrery_bench::drivers::BenchError),
    #[error("{}: {}", path.display(), reason(source))]
    File { path: PathBuf, source: io::Error },
    #[error("standard output: {}", reason(.0))]
    Output(io::Error),
    /// Anything else that is one sentence.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn output(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Output(source),
        }
    }
}
