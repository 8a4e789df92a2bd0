//! Data syntax tests, through the loader and a dump.

use std::path::Path;
use std::sync::Arc;

use orrery_formats::{GraphFormat, GraphSerializer};
use orrery_loader::{LoadError, LoadOptions, SilentProgress, Source};
use orrery_storage::{Database, Quads};
use oxrdf::Quad;

use super::Files;
use super::expected::{compare_quads, parse_quads};

/// Memory for the load of a test's file.
const LOAD_MEMORY_BYTES: u64 = 64 << 20;

/// Loads a published file into a graph of the database in a directory.
pub(crate) fn load(
    files: &Files,
    directory: &Path,
    iri: &str,
    graph: Option<&str>,
) -> Result<Result<(), LoadError>, String> {
    let options = LoadOptions {
        memory_bytes: LOAD_MEMORY_BYTES,
        threads: 1,
        graph: graph.map(str::to_owned),
        base_iri: Some(iri.to_owned()),
        ..LoadOptions::default()
    };
    let source = Source::File(files.path(iri)?);
    let loaded = orrery_loader::load(directory, &[source], &options, &SilentProgress);
    Ok(loaded.map(drop))
}

/// The file is accepted, and holds what another file says; by default, what an independent
/// parser reads in the file itself.
pub(crate) fn accepted(
    files: &Files,
    directory: &Path,
    data: &str,
    result: Option<&str>,
) -> Result<(), String> {
    load(files, directory, data, None)?.map_err(|error| error.to_string())?;
    let result = result.unwrap_or(data);
    let expected = parse_quads(result, &files.read_bytes(result)?)?;
    compare_quads(&expected, &dump(&opened(directory)?)?)
}

/// The file is refused, for its syntax.
pub(crate) fn refused(files: &Files, directory: &Path, data: &str) -> Result<(), String> {
    match load(files, directory, data, None)? {
        Ok(()) => Err("accepted, but wrong".to_owned()),
        Err(LoadError::Syntax(_)) => Ok(()),
        Err(other) => Err(format!("refused, but not for its syntax: {other}")),
    }
}

/// The file is accepted, and the database's N-Quads dump has exactly the lines of the result, in
/// whatever order and with whatever names of blank nodes.
pub(crate) fn canonical(
    files: &Files,
    directory: &Path,
    data: &str,
    result: &str,
) -> Result<(), String> {
    load(files, directory, data, None)?.map_err(|error| error.to_string())?;
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(without_labels).collect();
        lines.sort_unstable();
        lines
    };
    let (expected, actual) = (
        files.read(result)?,
        String::from_utf8(dump_text(quads_of(&opened(directory)?)?.canonical())?),
    );
    let actual = actual.map_err(|error| error.to_string())?;
    if lines(&expected) != lines(&actual) {
        return Err(format!("expected {expected}, found {actual}"));
    }
    let quads = |text: &str| parse_quads("http://example/dump.nq", text.as_bytes());
    compare_quads(&quads(&expected)?, &quads(&actual)?)
}

/// A line without the names of its blank nodes. No test has `_:` in a string.
fn without_labels(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.starts_with("_:") {
        true => "_:",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn opened(directory: &Path) -> Result<Arc<Database>, String> {
    let database = Database::open(directory).map_err(|error| error.to_string())?;
    Ok(Arc::new(database))
}

/// All quads of a database, by way of its N-Quads dump.
pub(crate) fn dump(database: &Arc<Database>) -> Result<Vec<Quad>, String> {
    let text = dump_text(quads_of(database)?)?;
    parse_quads("http://example/dump.nq", &text)
}

fn quads_of(database: &Arc<Database>) -> Result<Quads, String> {
    let quads = database.view_of_process().quads();
    quads.map_err(|error| error.to_string())
}

/// Quads as N-Quads.
fn dump_text(mut quads: Quads) -> Result<Vec<u8>, String> {
    let storage = |error: orrery_storage::Error| error.to_string();
    let mut serializer = GraphSerializer::start(GraphFormat::NQuads);
    let mut bytes = Vec::new();
    while let Some(batch) = quads.next_batch().map_err(storage)? {
        for quad in batch.iter() {
            serializer
                .quad(
                    quad.subject,
                    quad.predicate,
                    &quad.object,
                    quad.graph,
                    &mut bytes,
                )
                .map_err(|error| error.to_string())?;
        }
    }
    serializer
        .finish(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}
