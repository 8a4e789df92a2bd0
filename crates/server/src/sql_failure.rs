//! A statement of SQL that failed, as clients are told: a status, a line with the code, and the place for programs.

use axum::http::StatusCode;
use orrery_query_log::Outcome;
use orrery_sql::{Error, SqlState};
use std::fmt;

/// What failed, and where in the text of the request.
#[derive(Debug)]
pub(crate) struct SqlFailure {
    error: Error,
    /// Line and column, from one, and the bytes before.
    place: Option<(usize, usize, usize)>,
}

impl SqlFailure {
    pub(crate) fn new(error: Error, text: &str) -> Self {
        let place = error.place(text);
        Self { error, place }
    }

    /// By the class of the code.
    pub(crate) fn status(&self) -> StatusCode {
        match self.error.state {
            SqlState::FeatureNotSupported => StatusCode::NOT_IMPLEMENTED,
            SqlState::QueryCanceled | SqlState::TransactionResolutionUnknown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            SqlState::ForeignDataError | SqlState::ForeignConnectionError => {
                StatusCode::BAD_GATEWAY
            }
            SqlState::ReadOnlySqlTransaction | SqlState::InsufficientPrivilege => {
                StatusCode::FORBIDDEN
            }
            state if matches!(&state.code()[..2], "23" | "40") => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// How a request that fails so has ended.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.error.state {
            SqlState::QueryCanceled => Outcome::Timeout,
            SqlState::FeatureNotSupported
            | SqlState::ReadOnlySqlTransaction
            | SqlState::InsufficientPrivilege => Outcome::Refused,
            // Syntax, and names that are not there.
            state if &state.code()[..2] == "42" => Outcome::Syntax,
            _ => Outcome::Error,
        }
    }

    /// Adds what programs want to know to problem details.
    pub(crate) fn add_to(&self, problem: &mut serde_json::Value) {
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
        // `detail` is the line for people.
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
