//! DuckDB behind a script: `bench/peers/relational.py` installs it, fills its tables and answers
//! questions, a line of JSON each, so that its times are those of a query in its own process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BenchError, Binary};

/// The script, and the folder of the packages that it needs.
pub(super) struct Script {
    path: PathBuf,
    packages: PathBuf,
}

/// Answers in SQL; its process ends with this value.
pub(super) struct Answering {
    command: String,
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What it says of a load.
#[derive(Deserialize)]
pub(super) struct Loaded {
    /// Of the database.
    pub(super) bytes: u64,
    /// To its last byte.
    pub(super) seconds: f64,
}

/// What the script is told.
#[derive(Serialize)]
struct Asked<'q> {
    sql: &'q str,
    runs: u32,
    answer: Timed,
}

/// How far the answer goes within the time.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Timed {
    /// Columns in the process's memory.
    Columns,
    /// Rows of values.
    Rows,
    /// A CSV file in memory.
    File,
}

/// What it says.
#[derive(Deserialize)]
pub(super) struct Answered {
    /// The time of each run.
    seconds: Vec<f64>,
    /// Numbers, texts and nulls.
    pub(super) rows: Vec<Vec<Value>>,
}

impl Answered {
    /// The quickest run.
    pub(super) fn best(&self) -> Duration {
        let best = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Duration::try_from_secs_f64(best).unwrap_or(Duration::MAX)
    }
}

impl Script {
    pub(super) fn new(path: PathBuf, packages: PathBuf) -> Self {
        Self { path, packages }
    }

    /// Installs what is missing.
    pub(super) fn setup(&self) -> Result<(), BenchError> {
        self.run(&["setup".as_ref()]).map(|_| ())
    }

    /// A new database from a script of SQL over a folder of files.
    pub(super) fn load(
        &self,
        database: &Path,
        schema: &Path,
        files: &Path,
        threads: usize,
    ) -> Result<Loaded, BenchError> {
        let threads = threads.to_string();
        let output = self.run(&[
            "load".as_ref(),
            database.as_ref(),
            schema.as_ref(),
            files.as_ref(),
            threads.as_ref(),
        ])?;
        serde_json::from_str(&output).map_err(|_| BenchError::Output {
            command: format!("{} load", self.path.display()),
            what: output,
        })
    }

    /// Starts the process that answers.
    pub(super) fn ask(&self, database: &Path, threads: usize) -> Result<Answering, BenchError> {
        let command = format!("{} ask", self.path.display());
        let cannot_start = |source| BenchError::Start {
            program: self.path.clone(),
            source,
        };
        let mut child = Command::new(&self.path)
            .arg(&self.packages)
            .arg("ask")
            .arg(database)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot_start)?;
        let questions = child.stdin.take();
        let Some(answers) = child.stdout.take() else {
            return Err(BenchError::Output {
                command,
                what: "it has no standard output".to_owned(),
            });
        };
        Ok(Answering {
            command,
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    fn run(&self, arguments: &[&OsStr]) -> Result<String, BenchError> {
        let mut all = vec![self.packages.as_os_str()];
        all.extend(arguments);
        let finished = Binary::new(&self.path).run(&all)?;
        Ok(finished.output)
    }
}

impl Answering {
    /// Asks one question several times.
    pub(super) fn ask(
        &mut self,
        sql: &str,
        runs: u32,
        answer: Timed,
    ) -> Result<Answered, BenchError> {
        let asked = Asked { sql, runs, answer };
        let mut line = serde_json::to_string(&asked).map_err(|error| self.wrong(error))?;
        line.push('\n');
        if let Some(questions) = &mut self.questions {
            let written = questions.write_all(line.as_bytes());
            written
                .and_then(|()| questions.flush())
                .map_err(|error| self.wrong(error))?;
        }
        line.clear();
        let read = self.answers.read_line(&mut line);
        match read {
            Ok(0) => Err(self.wrong("it ended; its last lines are on standard error")),
            Ok(_) => serde_json::from_str(&line).map_err(|error| self.wrong(error)),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn wrong(&self, what: impl ToString) -> BenchError {
        BenchError::Output {
            command: self.command.clone(),
            what: what.to_string(),
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        self.questions = None;
        let _ = self.child.wait();
    }
}
