//! A database of the benchmark: loaded, indexed and served.

use std::path::{Path, PathBuf};

use crate::drivers::target::{Target, failed};
use crate::drivers::{BenchError, Binary};
use crate::spb::quads::data_files;

/// The default graph is the union of all: works are in graphs of their own, what they are about is
/// in none.
pub(super) const UNION: &str = "--union-default-graph";
/// The properties whose texts are searched.
const TEXTS: [&str; 2] = [
    "http://www.bbc.co.uk/ontologies/creativework/title",
    "http://www.bbc.co.uk/ontologies/creativework/description",
];

/// Loads data into a database in a folder, with an index of texts if there is to be one.
pub(super) fn load(
    binary: &Binary,
    data: &[PathBuf],
    folder: &Path,
    has_text_index: bool,
) -> Result<Target, BenchError> {
    let files = data_files(data).map_err(|source| failed("the data", source))?;
    let directory = folder.join("db");
    let mut arguments: Vec<PathBuf> = vec!["load".into(), "--db".into(), directory.clone()];
    arguments.extend(files);
    binary.run(&arguments)?;
    if has_text_index {
        let mut arguments: Vec<PathBuf> = ["text", "create", "--db"].map(PathBuf::from).to_vec();
        arguments.push(directory.clone());
        for property in TEXTS {
            arguments.extend(["--property", property].map(PathBuf::from));
        }
        binary.run(&arguments)?;
    }
    Ok(Target::Database {
        binary: binary.clone(),
        directory,
    })
}

/// A folder that goes with the value.
pub(super) fn temporary_folder() -> Result<tempfile::TempDir, BenchError> {
    tempfile::tempdir().map_err(|source| BenchError::File {
        path: std::env::temp_dir(),
        source,
    })
}
