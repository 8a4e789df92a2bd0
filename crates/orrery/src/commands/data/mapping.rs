//! `orrery mapping`: manages graphs mapped from tables, by the SQL statements that define, drop and
//! copy them.

use std::path::Path;
use std::sync::Arc;

use orrery_loader::file_iri;
use orrery_r2rml::{TableMappings, has_relative_names};
use orrery_sparql::{Engine, EngineOptions};
use orrery_sql::{MappedGraph, MappingSource, Outcome, Session, SessionOptions};
use orrery_storage::WriterOptions;

use crate::arguments::{DatabaseArgument, MappingCommand};
use crate::commands::foreign::foreign_anywhere;
use crate::commands::output::Output;
use crate::commands::query_text::{read_text, threads};
use crate::failure::Failure;

pub(crate) fn run(command: MappingCommand) -> Result<(), Failure> {
    let text = match command {
        MappingCommand::Add {
            database,
            name,
            file,
            tables,
            base,
        } => {
            // Standard input has no address.
            let path = file.as_deref().filter(|path| *path != Path::new("-"));
            let address = path.and_then(file_iri);
            let source = match (file, tables) {
                (Some(file), _) => MappingSource::R2rml(read_text("mapping", None, Some(&file))?),
                (None, Some(schema)) => MappingSource::Direct(schema),
                (None, None) => {
                    return Err(Failure::Other(
                        "no mapping; give --file FILE or --tables".to_owned(),
                    ));
                }
            };
            let base = base.or_else(|| match &source {
                MappingSource::R2rml(text) if has_relative_names(text) => address,
                MappingSource::R2rml(_) | MappingSource::Direct(_) => None,
            });
            let graph = MappedGraph { name, source, base };
            execute(&database, &graph.statement(), None)?
        }
        MappingCommand::List { database } => {
            let mut text = String::new();
            for graph in graphs(&database)? {
                let source = match &graph.source {
                    MappingSource::R2rml(_) => "R2RML".to_owned(),
                    MappingSource::Direct(schema) => format!("tables of {schema}"),
                };
                text.push_str(&format!("{}\t{source}\n", graph.name));
            }
            text
        }
        MappingCommand::Show { database, name } => {
            let tables = database.place()?.open()?.snapshot();
            let graph = MappedGraph::named(tables.tables(), &name)?;
            match graph.source {
                MappingSource::R2rml(text) => text,
                MappingSource::Direct(_) => graph.statement() + "\n",
            }
        }
        MappingCommand::Drop { database, name } => {
            let statement = format!("DROP GRAPH MAPPING {}", quoted(&name));
            execute(&database, &statement, None)?
        }
        MappingCommand::Materialize {
            database,
            name,
            into,
            memory,
        } => {
            let mut statement = format!("MATERIALIZE GRAPH {}", quoted(&name));
            if let Some(into) = into {
                statement.push_str(&format!(" INTO {}", quoted(&into)));
            }
            execute(&database, &statement, Some(memory.0))?
        }
    };
    let mut output = Output::open(None)?;
    output.drain(&mut text.into_bytes())?;
    output.finish()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn graphs(database: &DatabaseArgument) -> Result<Vec<MappedGraph>, Failure> {
    let snapshot = database.place()?.open()?.snapshot();
    Ok(MappedGraph::all(snapshot.tables())?)
}

/// Runs a statement; returns a line on what was done.
fn execute(
    database: &DatabaseArgument,
    statement: &str,
    memory_bytes: Option<u64>,
) -> Result<String, Failure> {
    let place = database.place()?;
    let database = Arc::new(place.open()?);
    let writer = database.open_writer(WriterOptions::default())?;
    let defaults = EngineOptions::default();
    let options = EngineOptions {
        memory_bytes: memory_bytes.unwrap_or(defaults.memory_bytes),
        ..defaults
    };
    let engine = Arc::new(Engine::new(Arc::clone(&database), options)?);
    let foreign = foreign_anywhere();
    let session_options = SessionOptions {
        who: "orrery mapping".to_owned(),
        foreign: foreign.clone(),
        ..SessionOptions::default()
    };
    let session = Session::new(engine.runtime(), database, Some(writer), session_options)
        .with_mappings(Arc::new(TableMappings::new(engine.runtime(), &foreign)));
    let runtime = threads(&engine)?;
    let outcome = runtime.block_on(async {
        let mut done = None;
        for statement in session.statements(statement)? {
            done = Some(session.execute(&statement).await?);
        }
        Ok::<_, Failure>(done)
    })?;
    Ok(match outcome {
        Some(Outcome::Done(tag)) => format!("{tag}\n"),
        _ => String::new(),
    })
}
