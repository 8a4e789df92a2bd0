//! The driver of a bulk load into a new database.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BenchError, Binary};
use crate::report::{Table, with_thousands};

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where the database is to be. It is removed first if it is there.
    pub database: PathBuf,
    /// The files to load.
    pub files: Vec<PathBuf>,
    /// The memory budget as `orrery load --memory` takes it.
    pub memory: String,
}

/// What a load took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// Triples read.
    pub triples_read: u64,
    /// Triples in the database (without duplicates).
    pub triples: u64,
    /// From the start of the process to its end.
    pub seconds: f64,
    /// Triples read a second.
    pub triples_per_second: f64,
    /// The size of the database's files.
    pub database_bytes: u64,
    /// The size divided by the triples.
    pub bytes_per_triple: f64,
    /// The most memory the process had at a time.
    pub peak_memory_bytes: u64,
}

/// What `orrery load --report json` says; the fields we use.
#[derive(Deserialize)]
struct PrintedReport {
    quads_read: u64,
    quads_added: u64,
    #[serde(default)]
    peak_memory_bytes: u64,
}

/// Loads files into a new database.
///
/// # Errors
/// When the load fails.
pub fn load(binary: &Binary, options: &LoadOptions) -> Result<LoadReport, BenchError> {
    remove(&options.database)?;
    let mut arguments: Vec<&OsStr> = vec![
        "load".as_ref(),
        "--db".as_ref(),
        options.database.as_ref(),
        "--memory".as_ref(),
        options.memory.as_ref(),
        "--report".as_ref(),
        "json".as_ref(),
    ];
    arguments.extend(options.files.iter().map(|file| file.as_os_str()));
    let finished = binary.run(&arguments)?;
    let printed = printed_report(&finished.output).ok_or_else(|| BenchError::Output {
        command: finished.command,
        what: "no report in JSON on standard output".to_owned(),
    })?;
    let seconds = finished.elapsed.as_secs_f64();
    let database_bytes = folder_bytes(&options.database).map_err(|source| BenchError::File {
        path: options.database.clone(),
        source,
    })?;
    Ok(LoadReport {
        triples_read: printed.quads_read,
        triples: printed.quads_added,
        seconds,
        triples_per_second: printed.quads_read as f64 / seconds,
        database_bytes,
        bytes_per_triple: database_bytes as f64 / printed.quads_added.max(1) as f64,
        peak_memory_bytes: finished
            .peak_memory_bytes
            .unwrap_or(0)
            .max(printed.peak_memory_bytes),
    })
}

/// The report may stand on one line or on several, with other lines before it.
fn printed_report(output: &str) -> Option<PrintedReport> {
    let start = output.find('{')?;
    serde_json::from_str(output[start..].trim()).ok()
}

/// The database must be new; a leftover of an earlier run goes.
pub(super) fn remove(database: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(database) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(BenchError::File {
            path: database.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

pub(super) fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}

impl fmt::Display for LoadReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["load", ""]);
        table.row(["triples read".to_owned(), with_thousands(self.triples_read)]);
        table.row(["triples".to_owned(), with_thousands(self.triples)]);
        table.row(["seconds".to_owned(), format!("{:.2}", self.seconds)]);
        table.row([
            "triples/s".to_owned(),
            with_thousands(self.triples_per_second as u64),
        ]);
        table.row([
            "database bytes".to_owned(),
            with_thousands(self.database_bytes),
        ]);
        table.row([
            "bytes/triple".to_owned(),
            format!("{:.1}", self.bytes_per_triple),
        ]);
        table.row([
            "peak memory bytes".to_owned(),
            with_thousands(self.peak_memory_bytes),
        ]);
        table.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_report_is_found() {
        let report =
            printed_report("loading\n{\"quads_read\": 5,\n \"quads_added\": 4, \"more\": []}\n")
                .unwrap();
        assert_eq!(
            (
                report.quads_read,
                report.quads_added,
                report.peak_memory_bytes
            ),
            (5, 4, 0)
        );
        assert!(printed_report("nothing").is_none());
    }

    #[test]
    fn sizes_are_added_over_folders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("a"), [0; 10]).unwrap();
        fs::write(folder.path().join("inner/b"), [0; 5]).unwrap();
        assert_eq!(folder_bytes(folder.path()).unwrap(), 15);
    }
}
