//! Tests of data files: through the loader into a database, and out again as a dump.

use std::path::Path;
use std::sync::Arc;

use orrery_loader::{LoadError, LoadOptions, SilentProgress, Source};
use orrery_server::format::{GraphFormat, GraphSerializer};
use orrery_storage::Database;
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

/// The file is accepted, and the database's N-Quads dump has exactly the lines of the result, in whatever order and
/// with whatever names of blank nodes.
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
        String::from_utf8(dump_text(&opened(directory)?)?),
    );
    let actual = actual.map_err(|error| error.to_string())?;
    let actual: String = actual.lines().map(with_small_tag).collect();
    if lines(&expected) != lines(&actual) {
        return Err(format!("expected {expected}, found {actual}"));
    }
    let quads = |text: &str| parse_quads("http://example/dump.nq", text.as_bytes());
    compare_quads(&quads(&expected)?, &quads(&actual)?)
}

/// A line with its language tag in lower case, as the canonical form has it (RDF 1.2 N-Triples, 3); a dump writes it as it was written.
fn with_small_tag(line: &str) -> String {
    let ends_literal = |at: usize| !line[..at].ends_with('\\');
    match line.rfind("\"@").filter(|&at| ends_literal(at)) {
        Some(at) => {
            let end = line[at..].find(' ').map_or(line.len(), |end| at + end);
            let tag = line[at..end].to_ascii_lowercase();
            format!("{}{tag}{}\n", &line[..at], &line[end..])
        }
        None => format!("{line}\n"),
    }
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
    parse_quads("http://example/dump.nq", &dump_text(database)?)
}

/// The N-Quads dump of a database.
fn dump_text(database: &Arc<Database>) -> Result<Vec<u8>, String> {
    let storage = |error: orrery_storage::Error| error.to_string();
    let mut serializer = GraphSerializer::start(GraphFormat::NQuads);
    let mut bytes = Vec::new();
    let mut quads = database.view_of_process().quads().map_err(storage)?;
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
