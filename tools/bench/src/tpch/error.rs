//! The errors of generating data and reading answers.

use std::io;
use std::path::PathBuf;

use ::parquet::errors::ParquetError;
use arrow::error::ArrowError;
use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum TpchError {
    /// A scale that the tables cannot have.
    #[error("a scale factor is a number from {min} to {max}, not {given}", min = super::scale::MIN, max = super::scale::MAX)]
    Scale {
        /// What was given.
        given: String,
    },
    /// There are only so many refresh sets.
    #[error(
        "refresh sets are numbered from 1 to {}, there is no number {number}",
        super::REFRESH_SETS_MAX
    )]
    RefreshSet {
        /// The one asked for.
        number: u32,
    },
    /// Batches cannot be made.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A Parquet file cannot be written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The writer's reason.
        source: ParquetError,
    },
    /// An answer is not CSV.
    #[error("{}: {source}", path.display())]
    Answer {
        /// The file.
        path: PathBuf,
        /// The reader's reason.
        source: csv::Error,
    },
}
