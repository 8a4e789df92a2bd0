//! The driver of a cold start: process, opening, point query, answer.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{BenchError, Binary};
use crate::report::{Table, Times};

/// What to ask, how often.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The database.
    pub database: PathBuf,
    /// The query.
    pub query: String,
    /// Measured runs; one more before them warms the file cache.
    pub runs: usize,
}

/// How long it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenReport {
    /// From the start of the process to its end.
    pub times: Times,
}

/// Runs `orrery query` again and again, each time in a new process.
///
/// # Errors
/// When a run fails.
pub fn open(binary: &Binary, options: &OpenOptions) -> Result<OpenReport, BenchError> {
    let arguments: [&OsStr; 6] = [
        "query".as_ref(),
        "--db".as_ref(),
        options.database.as_ref(),
        "--format".as_ref(),
        "tsv".as_ref(),
        options.query.as_ref(),
    ];
    binary.time(&arguments)?;
    let runs = (0..options.runs)
        .map(|_| binary.time(&arguments))
        .collect::<Result<Vec<Duration>, _>>()?;
    Ok(OpenReport {
        times: Times::of(&runs),
    })
}

impl fmt::Display for OpenReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["open and answer", "runs", "median ms", "p95 ms", "min ms"]);
        table.row([
            String::new(),
            self.times.runs.to_string(),
            format!("{:.2}", self.times.median_ms),
            format!("{:.2}", self.times.p95_ms),
            format!("{:.2}", self.times.min_ms),
        ]);
        table.fmt(formatter)
    }
}
