//! The SQL shell of `orrery sql` at a terminal: a line editor with history, multi-line statements,
//! backslash commands.
//!
//! ```text
//!   line -> input (complete entries) -> command (the shell's own) | statement -> target -> format
//! ```
//!
//! A statement's error is printed, and the shell goes on. Ctrl-C stops a running statement: its
//! work is dropped, and its changes are undone. A commit that has begun goes on, and a server may
//! have made the change already.

mod command;
mod input;

use std::path::{Path, PathBuf};
use std::time::Instant;

use orrery_sql::{TransactionStatus, split};
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use tokio::runtime::Runtime;

use self::command::{Command, HELP};
use self::input::{Entry, Input};
use super::format::Format;
use super::target::Target;
use super::writing::Writing;
use crate::commands::output::Output;
use crate::failure::Failure;
use crate::terminal::harmless;

/// Maximum of history entries.
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// A shell over a target.
pub(super) struct Shell {
    target: Target,
    runtime: Runtime,
    format: Format,
    is_expanded: bool,
    has_timing: bool,
}

/// Whether the shell continues.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

impl Shell {
    pub(super) fn new(target: Target, runtime: Runtime, format: Format, has_timing: bool) -> Self {
        Self {
            target,
            runtime,
            format,
            is_expanded: false,
            has_timing,
        }
    }

    /// Reads and runs lines until the end.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let mut editor = editor()?;
        let history = history_file();
        if let Some(history) = &history {
            // At the first start there is no history.
            let _ = editor.load_history(history);
        }
        say(&format!(
            "orrery {}; \\? for help\n",
            env!("CARGO_PKG_VERSION")
        ))?;
        let mut input = Input::default();
        loop {
            let prompt = input.prompt(self.target.transaction_status());
            let line = match editor.readline(&prompt) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    input.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(Failure::Other(format!("standard input: {error}"))),
            };
            if self.take(&mut input, &line, &mut |entry| {
                let _ = editor.add_history_entry(entry);
            })? == Next::End
            {
                break;
            }
        }
        if let Some(history) = &history {
            save(&mut editor, history);
        }
        if self.target.transaction_status() != TransactionStatus::Idle {
            eprintln!("note: the transaction was not committed, and is rolled back");
        }
        Ok(())
    }

    /// Runs the entries that a line completes. `note` adds an entry to the history.
    fn take(
        &mut self,
        input: &mut Input,
        line: &str,
        note: &mut dyn FnMut(String),
    ) -> Result<Next, Failure> {
        let entries = input.line(line);
        // Text that begins with a blank stays out of the history, as in other shells.
        let is_private = input.is_private();
        let mut note = |text: String| {
            if !is_private {
                note(text);
            }
        };
        for entry in entries {
            match entry {
                Entry::Command(text) => {
                    note(text.clone());
                    if self.command(&text)? == Next::End {
                        return Ok(Next::End);
                    }
                }
                Entry::Statement(text) => {
                    note(format!("{text};"));
                    self.statement(&text)?;
                }
                Entry::TooLong => eprintln!("that is longer than any statement may be"),
            }
        }
        Ok(Next::Line)
    }

    fn command(&mut self, text: &str) -> Result<Next, Failure> {
        match Command::parse(text) {
            Command::Quit => return Ok(Next::End),
            Command::Help => say(HELP)?,
            Command::Timing(wanted) => {
                self.has_timing = wanted.unwrap_or(!self.has_timing);
                let shown = if self.has_timing { "on" } else { "off" };
                say(&format!("Timing is {shown}.\n"))?;
            }
            Command::Expanded(wanted) => {
                self.is_expanded = wanted.unwrap_or(!self.is_expanded);
                let shown = if self.is_expanded { "on" } else { "off" };
                say(&format!("Expanded display is {shown}.\n"))?;
            }
            Command::Show(queries) => {
                if let Err((failure, query)) = self.show(&queries) {
                    told(*failure, query)?;
                }
            }
            Command::Unknown => eprintln!("{}", no_command(text)),
        }
        Ok(Next::Line)
    }

    /// Runs one command without a terminal, such as `\d` of `-c`; fails where the shell would print
    /// an error and go on.
    pub(super) fn run_command(mut self, text: &str) -> Result<(), Failure> {
        match Command::parse(text) {
            Command::Show(queries) => {
                let shown = self.show(&queries);
                shown.map_err(|(failure, query)| {
                    (*failure).with_sql_place(query).of_sent_text(query)
                })
            }
            Command::Unknown => Err(Failure::Other(no_command(text))),
            _ => self.command(text).map(drop),
        }
    }

    /// Shows the rows of some queries; of several only those that have any. An error comes with its
    /// query.
    fn show<'q>(&self, queries: &'q [(String, String)]) -> Result<(), (Box<Failure>, &'q str)> {
        let mut has_any = false;
        for (title, query) in queries {
            let is_one_of_several = !title.is_empty();
            let shown = self.unless_stopped(async {
                let answer = self.target.execute(query).await?;
                let mut writing = Writing {
                    format: Format::Table,
                    has_timing: false,
                    output: Output::open(None)?,
                };
                let rows = match is_one_of_several {
                    true => writing.write_under(title, answer).await?,
                    false => writing.write(answer, Instant::now()).await.map(|()| 1)?,
                };
                writing.output.finish()?;
                Ok::<bool, Failure>(rows > 0)
            });
            match shown {
                Ok(any) => has_any |= any,
                Err(failure) => return Err((Box::new(failure), query)),
            }
        }
        match has_any {
            true => Ok(()),
            false => {
                let message = "there is no table or view of that name; \\d lists them";
                Err((Box::new(Failure::Other(message.to_owned())), ""))
            }
        }
    }

    fn statement(&self, text: &str) -> Result<(), Failure> {
        if split(text).is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        match self.unless_stopped(self.execute(text, start)) {
            Ok(()) => Ok(()),
            Err(failure) => told(failure, text),
        }
    }

    /// Runs work until it is done, or Ctrl-C is pressed.
    fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => Err(Failure::Other(self.target.stopped().to_owned())),
            }
        })
    }

    async fn execute(&self, text: &str, start: Instant) -> Result<(), Failure> {
        let answer = self.target.execute(text).await?;
        let format = match (self.format, self.is_expanded) {
            (Format::Table, true) => Format::Expanded,
            (format, _) => format,
        };
        let mut writing = Writing {
            format,
            has_timing: self.has_timing,
            output: Output::open(None)?,
        };
        writing.write(answer, start).await?;
        writing.output.finish()
    }
}

/// Prints an error with its place in the text; fails only if the output is closed.
fn told(failure: Failure, text: &str) -> Result<(), Failure> {
    if matches!(failure, Failure::OutputClosed) {
        return Err(failure);
    }
    let failure = failure.with_sql_place(text).of_sent_text(text);
    for line in failure.excerpt().into_iter().flatten() {
        eprintln!("{}", harmless(&line));
    }
    eprintln!("{}", harmless(&failure.to_string()));
    Ok(())
}

fn no_command(text: &str) -> String {
    format!("{text} is no command; \\? lists them")
}

fn say(text: &str) -> Result<(), Failure> {
    let mut output = Output::open(None)?;
    output.drain(&mut text.as_bytes().to_vec())?;
    output.finish()
}

fn editor() -> Result<DefaultEditor, Failure> {
    let unusable = |error: ReadlineError| Failure::Other(format!("the terminal: {error}"));
    let mut editor = DefaultEditor::with_config(Config::builder().build()).map_err(unusable)?;
    editor
        .set_max_history_size(HISTORY_ENTRIES_MAX)
        .map_err(unusable)?;
    editor.set_history_ignore_dups(true).map_err(unusable)?;
    Ok(editor)
}

/// The history's path: in the user's directory for state.
fn history_file() -> Option<PathBuf> {
    let directory = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    // XDG Base Directory Specification.
    let state = directory("XDG_STATE_HOME");
    let state = state.or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("orrery/sql_history"))
}

fn save(editor: &mut DefaultEditor, history: &Path) {
    let made = history.parent().map_or(Ok(()), std::fs::create_dir_all);
    let saved = made
        .map_err(ReadlineError::from)
        .and_then(|()| editor.save_history(history));
    if let Err(error) = saved {
        eprintln!(
            "note: the history was not kept in {}: {error}",
            history.display()
        );
    }
}
