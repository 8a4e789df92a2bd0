//! `orrery sql`: statements from the command line, a file or standard input, one after the other.
//!
//! Each is committed by itself unless the text says `BEGIN`. The first that fails ends it: with the line, a caret under the place where that is known, and the code.
//! A transaction that is open at the end is rolled back, and that is said.

mod format;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use orrery_sparql::{Engine, EngineOptions};
use orrery_sql::{Outcome, Session, SessionOptions, Tag, TransactionStatus};
use orrery_storage::{Database, WriterOptions};

use self::format::{Format, Printer};
use super::output::Output;
use super::query_text::{read_text, threads};
use crate::arguments::SqlArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: SqlArguments) -> Result<(), Failure> {
    let text = text_of(&arguments)?;
    let format = match arguments.format.as_deref() {
        Some(name) => Format::from_name(name).ok_or_else(|| {
            Failure::Other(format!(
                "unknown format '{name}'; there are: {}",
                Format::NAMES.join(", ")
            ))
        })?,
        None => Format::Table,
    };
    let database = match arguments.read_only {
        true => Database::open(&arguments.directory)?,
        false => Database::create_or_open(&arguments.directory)?,
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
    let engine = Engine::new(Arc::clone(&database), options)?;
    let session_options = SessionOptions {
        who: "orrery sql".to_owned(),
        ..SessionOptions::default()
    };
    let session = Session::new(engine.runtime(), database, writer, session_options);
    let done = threads(&engine)?.block_on(run_all(&session, &text, format, arguments.timing));
    done.map_err(|failure| failure.with_sql_place(&text))?;
    if session.transaction_status() != TransactionStatus::Idle {
        eprintln!("note: the transaction was not committed, and is rolled back");
    }
    Ok(())
}

fn text_of(arguments: &SqlArguments) -> Result<String, Failure> {
    if arguments.command.is_none() && arguments.file.is_none() {
        if std::io::stdin().is_terminal() {
            return Err(Failure::Other(
                "no statement; give one with -c, a file with -f, or statements on standard input"
                    .to_owned(),
            ));
        }
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

async fn run_all(
    session: &Session,
    text: &str,
    format: Format,
    has_timing: bool,
) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    for statement in session.statements(text)? {
        let start = Instant::now();
        let mut printer = Printer::new(format);
        match session.execute(&statement).await? {
            Outcome::Query(rows) => {
                let count = printer.rows(rows, &mut output).await?;
                printer.done(Tag::Select(count), &mut output)?;
            }
            Outcome::Returned(rows, tag) => {
                printer.rows(rows, &mut output).await?;
                printer.done(tag, &mut output)?;
            }
            Outcome::Done(tag) => printer.done(tag, &mut output)?,
        }
        if has_timing {
            eprintln!("Time: {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
        }
    }
    output.finish()
}
