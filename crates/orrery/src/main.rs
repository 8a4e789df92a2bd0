//! The `orrery` command line: reads arguments, runs one command, and reports a failure in one line.
//!
//! Exit status: 0 success, 1 the command failed, 2 wrong usage (clap's own). Results go to standard
//! output, messages for people to standard error.

mod arguments;
mod cluster_node;
mod commands;
mod database_place;
mod failure;
mod log;
mod terminal;
mod units;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command, LogFormat};
use crate::failure::Failure;

/// clap's exit status for wrong usage.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if is_commented_text(&error) {
                eprintln!(
                    "orrery: a query or update begins with `--`; comments begin with `#` in SPARQL"
                );
                return ExitCode::from(WRONG_USAGE);
            }
            error.exit()
        }
    };
    let format = arguments.log_format;
    let _log = log::start(arguments.verbose, format);
    match run(arguments.command, format) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has gone (`orrery dump | head`), which is no error.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(failure) if format == LogFormat::Json => {
            log::write_json("ERROR", &failure.to_string());
            ExitCode::FAILURE
        }
        Err(failure) => {
            // The line with its carets comes first, so that the error and the advice are the last
            // line.
            if let Some([line, carets]) = failure.excerpt() {
                let (red, plain) = match has_colours() {
                    true => ("\u{1b}[1;31m", "\u{1b}[0m"),
                    false => ("", ""),
                };
                eprintln!("{}\n{red}{carets}{plain}", terminal::harmless(&line));
            }
            let failure = failure.to_string();
            match std::io::stderr().is_terminal() {
                true => eprintln!("orrery: {}", terminal::harmless(&failure)),
                false => eprintln!("orrery: {failure}"),
            }
            ExitCode::FAILURE
        }
    }
}

/// Whether an unknown option is a text that begins with an SQL comment: options have no blanks.
fn is_commented_text(error: &clap::Error) -> bool {
    let unknown = error.get(clap::error::ContextKind::InvalidArg);
    error.kind() == clap::error::ErrorKind::UnknownArgument
        && matches!(unknown, Some(clap::error::ContextValue::String(text))
        if text.starts_with("--") && text.contains(char::is_whitespace))
}

/// Whether standard error shows colours (<https://no-color.org>).
fn has_colours() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !is_refused
}

fn run(command: Command, format: LogFormat) -> Result<(), Failure> {
    match command {
        Command::Load(arguments) => commands::data::load::run(arguments),
        Command::Query(arguments) => commands::statements::query::run(arguments),
        Command::Update(arguments) => commands::statements::update::run(arguments),
        Command::Sql(arguments) => commands::sql::run(arguments),
        Command::Explain(arguments) => commands::statements::explain::run(arguments),
        Command::Serve(arguments) => commands::serving::serve::run(arguments, format),
        Command::Cluster(command) => commands::serving::cluster::run(command),
        Command::Dump(arguments) => commands::data::dump::run(arguments),
        Command::Log(arguments) => commands::maintenance::log::run(arguments),
        Command::Stats(arguments) => commands::maintenance::stats::run(arguments),
        Command::Verify(arguments) => commands::maintenance::verify::run(arguments),
        Command::Warm(arguments) => commands::maintenance::warm::run(arguments),
        Command::Compact(arguments) => commands::maintenance::compact::run(arguments),
        Command::Backup(arguments) => commands::maintenance::backup::backup(arguments),
        Command::Restore(arguments) => commands::maintenance::backup::restore(arguments),
        Command::Mapping(command) => commands::data::mapping::run(command),
        Command::User(command) => commands::serving::access::user(command),
        Command::Group(command) => commands::serving::access::group(command),
        Command::Key(command) => commands::serving::access::key(command),
        Command::Grant(command) => commands::serving::access::grant(command),
        Command::Limit(command) => commands::serving::limit::run(command),
        Command::Queries(command) => commands::serving::queries::run(command),
        Command::Prefix(command) => commands::data::prefix::run(command),
        Command::Text(command) => commands::data::text::run(command),
        Command::Report(command) => commands::maintenance::report::run(command),
        Command::Usage(arguments) => commands::maintenance::report::bill_of(&arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Demo(arguments) => commands::serving::demo::run(arguments),
    }
}
