//! Our engine under test, from files through the loader to an answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_loader::{LoadOptions, LoadReport, SilentProgress, Source};
use orrery_sparql::{Engine, EngineOptions, PreparedQuery, QueryOptions, QueryResults};
use orrery_storage::Database;

use crate::Error;
use crate::answer::{Answer, Row, term_text};

/// Loads files into a database, with default settings but for the memory.
pub fn load(directory: &Path, files: &[PathBuf], memory_bytes: u64) -> Result<LoadReport, Error> {
    let sources: Vec<Source> = files.iter().cloned().map(Source::File).collect();
    let options = LoadOptions {
        memory_bytes,
        ..LoadOptions::default()
    };
    Ok(orrery_loader::load(
        directory,
        &sources,
        &options,
        &SilentProgress,
    )?)
}

/// Opens a database for queries, with default settings.
pub fn open(directory: &Path) -> Result<Engine, Error> {
    let database = Arc::new(Database::open(directory)?);
    Ok(Engine::new(database, EngineOptions::default())?)
}

/// What our engine answers.
pub fn evaluate(engine: &Engine, query: &str) -> Result<Answer, Error> {
    evaluate_with(engine, query, &QueryOptions::of_process())
}

/// What our engine answers under given options.
pub fn evaluate_with(
    engine: &Engine,
    query: &str,
    options: &QueryOptions,
) -> Result<Answer, Error> {
    run(&engine.prepare(query, options)?)
}

/// What a prepared query answers.
pub fn run(prepared: &PreparedQuery) -> Result<Answer, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io {
            path: PathBuf::from("tokio runtime"),
            source,
        })?;
    runtime.block_on(async {
        Ok(match prepared.execute().await? {
            QueryResults::Boolean(value) => Answer::Boolean(value),
            QueryResults::Solutions(mut stream) => {
                let variables = stream.variables().to_vec();
                let mut rows = Vec::new();
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    for row in 0..batch.rows() {
                        let cells = variables.iter().enumerate();
                        rows.push(
                            cells
                                .filter_map(|(column, variable)| {
                                    let term = batch.term(row, column)?;
                                    Some((variable.clone(), term_text(term)))
                                })
                                .collect::<Row>(),
                        );
                    }
                }
                Answer::Solutions(rows)
            }
            QueryResults::Triples(mut stream) => {
                let mut lines = Vec::new();
                while let Some(batch) = stream.next().await {
                    for (subject, predicate, object) in batch?.iter() {
                        lines.push(format!(
                            "{} {} {} .",
                            term_text(subject),
                            term_text(predicate),
                            term_text(object)
                        ));
                    }
                }
                Answer::Triples(lines)
            }
        })
    })
}
