//! DuckDB in its own process, behind `peers/duckdb_answers.py`: lines of JSON both ways.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use super::SqlOracleError;

/// Rows of an answer, each value as a text with a letter for its kind before it.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// A process that answers; it ends with this value.
pub(super) struct DuckDb {
    child: Child,
    asked: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Its version.
    pub(super) version: String,
}

#[derive(Deserialize)]
struct Answer {
    error: Option<String>,
    version: Option<String>,
    rows: Option<Rows>,
}

impl DuckDb {
    /// Starts it; `None` if Python has no DuckDB, neither of its own nor in the folder that
    /// `ORRERY_DUCKDB` names or `make setup` fills.
    pub(super) fn start() -> Result<Option<Self>, SqlOracleError> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/duckdb_answers.py");
        let mut command = Command::new("python3");
        command.arg(script);
        command.args(folder());
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = spawned else {
            return Ok(None);
        };
        let asked = child.stdin.take();
        let answers = child.stdout.take();
        let answers =
            answers.ok_or_else(|| SqlOracleError::Peer("no standard output".to_owned()))?;
        let mut peer = Self {
            child,
            asked,
            answers: BufReader::new(answers),
            version: String::new(),
        };
        Ok(peer.read()?.version.map(|version| {
            peer.version = version;
            peer
        }))
    }

    /// An empty database.
    pub(super) fn new_database(&mut self) -> Result<(), SqlOracleError> {
        self.tell(&json!({ "new": true }))?
            .map(|_| ())
            .map_err(SqlOracleError::Peer)
    }

    /// Statements; what it says of those that fail.
    pub(super) fn run(&mut self, sql: &str) -> Result<Result<(), String>, SqlOracleError> {
        Ok(self.tell(&json!({ "run": sql }))?.map(|_| ()))
    }

    /// The rows of a query.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Result<Rows, String>, SqlOracleError> {
        let answered = self.tell(&json!({ "ask": sql }))?;
        Ok(answered.map(|answer| answer.rows.unwrap_or_default()))
    }

    fn tell(&mut self, what: &Value) -> Result<Result<Answer, String>, SqlOracleError> {
        let failed = |error: std::io::Error| SqlOracleError::Peer(error.to_string());
        if let Some(asked) = &mut self.asked {
            writeln!(asked, "{what}").map_err(failed)?;
            asked.flush().map_err(failed)?;
        }
        let answer = self.read()?;
        Ok(match answer.error {
            Some(error) => Err(error),
            None => Ok(answer),
        })
    }

    fn read(&mut self) -> Result<Answer, SqlOracleError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.map_err(|error| SqlOracleError::Peer(error.to_string()))?;
        serde_json::from_str(&line)
            .map_err(|error| SqlOracleError::Peer(format!("{error} in {line:?}")))
    }
}

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("ORRERY_DUCKDB").map(PathBuf::from);
    let home =
        || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/orrery/python"));
    named.or_else(home)
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        self.asked = None;
        let _ = self.child.wait();
    }
}
