//! The failure of an SQL statement, as HTTP reports it: one line with the SQLSTATE, and the
//! position for programs.

use orrery_query_log::Outcome;
use orrery_sql::{Error, SqlState};
use std::fmt;

/// An SQL error, and its position in the text of the request.
#[derive(Debug)]
pub struct SqlFailure {
    error: Error,
    /// Line and column, from one, and the byte offset.
    place: Option<(usize, usize, usize)>,
}

impl SqlFailure {
    /// Locates the error of a statement in a text.
    pub fn new(error: Error, text: &str) -> Self {
        let place = error.place(text);
        Self { error, place }
    }

    /// The SQLSTATE code.
    pub fn state(&self) -> SqlState {
        self.error.state
    }

    /// The outcome of a request that fails with this error.
    pub fn outcome(&self) -> Outcome {
        match self.error.state {
            SqlState::QueryCanceled => Outcome::Timeout,
            SqlState::FeatureNotSupported
            | SqlState::ReadOnlySqlTransaction
            | SqlState::InsufficientPrivilege => Outcome::Refused,
            // Syntax errors, and unknown names.
            state if &state.code()[..2] == "42" => Outcome::Syntax,
            _ => Outcome::Error,
        }
    }

    /// Adds the fields for programs to problem details.
    pub fn add_to(&self, problem: &mut serde_json::Value) {
        let error = &self.error;
        problem["sqlstate"] = error.state.code().into();
        problem["message"] = error.message.as_str().into();
        if let Some(position) = error.position {
            problem["position"] = position.into();
        }
        if let Some((line, column, offset)) = self.place {
            problem["offset"] = offset.into();
            problem["line"] = line.into();
            problem["column"] = column.into();
        }
        // The field `detail` already is the line for people.
        if let Some(detail) = &error.detail {
            problem["more"] = detail.as_str().into();
        }
        if let Some(hint) = &error.hint {
            problem["hint"] = hint.as_str().into();
        }
    }
}

impl fmt::Display for SqlFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.error;
        write!(f, "SQL error {}", error.state)?;
        if let Some((line, column, _)) = self.place {
            write!(f, " at line {line}, column {column}")?;
        }
        write!(f, ": {}", error.message)?;
        for more in [&error.detail, &error.hint].into_iter().flatten() {
            write!(f, "; {more}")?;
        }
        Ok(())
    }
}
