//! `orrery sql`: runs SQL statements one after the other, on a local database or through a server.
//!
//! The statements come from the command line, a file or standard input; at a terminal without a
//! text, a shell starts. Each statement is committed by itself unless the text has `BEGIN` (locally
//! only) or `--single-transaction` is given. The first that fails ends the run: with its line, a
//! caret under the place if known, and the code. A transaction that is open at the end is rolled
//! back, with a note.

mod answer;
mod format;
mod server;
mod shell;
mod target;
mod writing;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use orrery_r2rml::TableMappings;
use orrery_sparql::{Engine, EngineOptions};
use orrery_sparql_in_sql::EngineGraphs;
use orrery_sql::{FileAccess, Session, SessionOptions, TransactionStatus, split};
use orrery_storage::WriterOptions;
use tokio::runtime::Runtime;

use self::format::Format;
use self::server::Server;
use self::shell::Shell;
use self::target::Target;
use self::writing::Writing;
use super::foreign::foreign_anywhere;
use super::output::Output;
use super::query_text::{read_text, runtime, threads};
use crate::arguments::SqlArguments;
use crate::database_place::DatabasePlace;
use crate::failure::Failure;

pub(crate) fn run(arguments: SqlArguments) -> Result<(), Failure> {
    let format = match arguments.format.as_deref() {
        Some(name) => Format::from_name(name).ok_or_else(|| {
            Failure::Other(format!(
                "unknown format '{name}'; there are: {}",
                Format::NAMES.join(", ")
            ))
        })?,
        None => Format::Table,
    };
    if is_at_terminal(&arguments) {
        let (target, runtime) = open(&arguments)?;
        return Shell::new(target, runtime, format, arguments.timing).run();
    }
    let text = text_of(&arguments)?;
    let (target, runtime) = open(&arguments)?;
    if is_command(&text) {
        return Shell::new(target, runtime, format, arguments.timing).run_command(text.trim());
    }
    let mut writing = Writing {
        format,
        has_timing: arguments.timing,
        output: Output::open(None)?,
    };
    let is_whole = arguments.single_transaction;
    match &target {
        Target::Session(session) => {
            let done = runtime.block_on(run_here(session, &text, is_whole, &mut writing));
            done.map_err(|failure| failure.with_sql_place(&text))?;
        }
        Target::Server(server) => {
            runtime.block_on(run_there(server, &text, is_whole, &mut writing))?;
        }
    }
    writing.output.finish()?;
    if target.transaction_status() != TransactionStatus::Idle {
        eprintln!("note: the transaction was not committed, and is rolled back");
    }
    Ok(())
}

/// Opens the target of the statements, and the threads for it.
fn open(arguments: &SqlArguments) -> Result<(Target, Runtime), Failure> {
    let directory = match (&arguments.server, &arguments.directory) {
        (Some(server), _) => return Ok((Target::Server(Server::at(server)?), runtime()?)),
        (None, Some(directory)) => directory,
        (None, None) => {
            return Err(Failure::Other(
                "no database; give --db DIR or --server URL".to_owned(),
            ));
        }
    };
    let place = DatabasePlace::of(directory, &arguments.cache)?;
    let database = match arguments.read_only {
        true => place.open()?,
        false => place.create_or_open()?,
    };
    let database = Arc::new(database);
    let writer = match arguments.read_only {
        true => None,
        false => Some(database.open_writer(WriterOptions::default())?),
    };
    let options = EngineOptions {
        memory_bytes: arguments.memory.0,
        ..EngineOptions::default()
    };
    orrery_allocator::for_load(arguments.memory.0);
    let foreign = foreign_anywhere();
    let engine = Engine::new(Arc::clone(&database), options)?;
    let engine = Arc::new(orrery_r2rml::mapped(engine, &foreign));
    let session_options = SessionOptions {
        who: "orrery sql".to_owned(),
        // The user of this command may read and write files anyway.
        files: FileAccess::allowed(settings()),
        foreign: foreign.clone(),
        ..SessionOptions::default()
    };
    let session = Session::new(engine.runtime(), database, writer, session_options)
        .with_mappings(Arc::new(TableMappings::new(engine.runtime(), &foreign)))
        .with_graphs(Arc::new(EngineGraphs::new(Arc::clone(&engine))));
    Ok((Target::Session(Box::new(session)), threads(&engine)?))
}

/// Environment variables whose names and values are valid text.
fn settings() -> impl Iterator<Item = (String, String)> {
    let text = |word: std::ffi::OsString| word.into_string().ok();
    std::env::vars_os().filter_map(move |(name, value)| Some((text(name)?, text(value)?)))
}

/// Whether statements are typed at a terminal.
fn is_at_terminal(arguments: &SqlArguments) -> bool {
    let has_text = arguments.command.is_some() || arguments.file.is_some();
    !has_text && std::io::stdin().is_terminal()
}

/// Whether a text is one shell command, such as `\d`: no statement begins with a backslash.
fn is_command(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('\\') && text.lines().count() == 1
}

fn text_of(arguments: &SqlArguments) -> Result<String, Failure> {
    if arguments.command.is_none() && arguments.file.is_none() {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::file(Path::new("standard input"), error))?;
        return Ok(text);
    }
    read_text(
        "statement",
        arguments.command.as_deref(),
        arguments.file.as_deref(),
    )
}

async fn run_here(
    session: &Session,
    text: &str,
    is_whole: bool,
    writing: &mut Writing,
) -> Result<(), Failure> {
    // All statements are parsed before the first is run.
    let statements = session.statements(text)?;
    if is_whole {
        run_word(session, "BEGIN").await?;
    }
    for statement in &statements {
        let start = Instant::now();
        let answer = target::execute(session, statement).await?;
        writing.write(answer, start).await?;
    }
    if is_whole {
        run_word(session, "COMMIT").await?;
    }
    Ok(())
}

/// Runs a statement without a result.
async fn run_word(session: &Session, word: &str) -> Result<(), Failure> {
    for statement in session.statements(word)? {
        session.execute(&statement).await?;
    }
    Ok(())
}

async fn run_there(
    server: &Server,
    text: &str,
    is_whole: bool,
    writing: &mut Writing,
) -> Result<(), Failure> {
    let found = split(text);
    let mut parts = found.statements;
    parts.push(found.rest);
    if is_whole {
        parts.clear();
        parts.push(0..text.len());
    }
    parts.retain(|part| !split(&text[part.clone()]).is_empty());
    for part in parts {
        let start = Instant::now();
        let sent = &text[part.clone()];
        let answer = server.execute(sent).await;
        let answer = answer.map_err(|failure| failure.of_sent_part(text, part.start))?;
        writing.write(answer, start).await?;
    }
    Ok(())
}
