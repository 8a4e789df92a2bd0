//! Update evaluation tests, compared by dumps.

use std::path::Path;
use std::sync::Arc;

use orrery_sparql::{QueryError, QueryOptions, UpdateOptions};
use orrery_storage::{CommitOptions, Database, WriterOptions};
use oxrdf::{GraphName, NamedNode, Quad};
use tokio::runtime::Runtime;

use super::engine::engine;
use super::expected::{compare_quads, parse_quads};
use super::syntax::{dump, load};
use super::{Files, GraphFiles, UpdateEvaluation};

fn options(update: &str) -> UpdateOptions {
    UpdateOptions {
        query: QueryOptions {
            strict_prefixes: true,
            base_iri: Some(update.to_owned()),
            ..QueryOptions::of_process()
        },
        ..UpdateOptions::of_process()
    }
}

/// The update is accepted.
pub(crate) fn accepted(files: &Files, directory: &Path, update: &str) -> Result<(), String> {
    match read(files, directory, update)? {
        // That a document cannot be loaded is no matter of syntax.
        Ok(()) | Err(QueryError::Unsupported { .. } | QueryError::UpdateFailed { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The update is refused, for its syntax.
pub(crate) fn refused(files: &Files, directory: &Path, update: &str) -> Result<(), String> {
    match read(files, directory, update)? {
        Ok(()) => Err("accepted, but wrong".to_owned()),
        Err(QueryError::Syntax { .. }) => Ok(()),
        Err(other) => Err(format!("refused, but not for its syntax: {other}")),
    }
}

fn read(files: &Files, directory: &Path, update: &str) -> Result<Result<(), QueryError>, String> {
    let text = files.read(update)?;
    let engine = engine(directory, None)?;
    Ok(engine.prepare_update(&text, &options(update)).map(drop))
}

/// The update makes of the data before what the test expects after.
pub(crate) fn evaluate(
    files: &Files,
    directory: &Path,
    runtime: &Runtime,
    test: &UpdateEvaluation,
) -> Result<(), String> {
    load_graphs(files, directory, &test.before)?;
    let text = files.read(&test.request)?;
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    {
        let engine = engine(directory, None)?;
        let options = options(&test.request);
        let update = engine.prepare_update(&text, &options);
        let update = update.map_err(|error| failed(&error))?;
        let database = Arc::clone(engine.database());
        let writer = database.open_writer(WriterOptions::default());
        let writer = writer.map_err(|error| failed(&error))?;
        let mut transaction = writer.begin().map_err(|error| failed(&error))?;
        runtime
            .block_on(engine.apply(&update, &options, &mut transaction))
            .map_err(|error| failed(&error))?;
        let pending = transaction.commit(CommitOptions::default());
        let pending = pending.map_err(|error| failed(&error))?;
        pending.wait().map_err(|error| failed(&error))?;
        compare(files, &test.after, &dump(&database)?)?;
    }
    // The same again from the files alone.
    let reopened = Database::open(directory).map_err(|error| failed(&error))?;
    compare(files, &test.after, &dump(&Arc::new(reopened))?)
        .map_err(|message| format!("after opening the database anew: {message}"))
}

/// Loads the graphs into the database of a directory, which is made if it is not there.
pub(crate) fn load_graphs(
    files: &Files,
    directory: &Path,
    graphs: &GraphFiles,
) -> Result<(), String> {
    Database::create_or_open(directory).map_err(|error| error.to_string())?;
    let default = graphs.default.iter().map(|file| (file, None));
    let named = graphs.named.iter();
    let named = named.map(|(file, name)| (file, Some(name.as_str())));
    for (file, graph) in default.chain(named) {
        load(files, directory, file, graph)?.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn compare(files: &Files, expected: &GraphFiles, actual: &[Quad]) -> Result<(), String> {
    let mut quads = Vec::new();
    for file in &expected.default {
        quads.extend(parse_quads(file, &files.read_bytes(file)?)?);
    }
    for (file, name) in &expected.named {
        let graph = GraphName::from(NamedNode::new_unchecked(name));
        let parsed = parse_quads(file, &files.read_bytes(file)?)?;
        quads.extend(parsed.into_iter().map(|quad| Quad {
            graph_name: graph.clone(),
            ..quad
        }));
    }
    compare_quads(&quads, actual)
}
