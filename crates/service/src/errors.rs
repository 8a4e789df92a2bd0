//! Errors of requests and statements, for every protocol: one line that says what happened and what
//! to do.
//!
//! HTTP maps each error to a status (`orrery_http`, `answer::error_response`), the SQL ports to a code.
//! Failures of the server's own files and disks go to its log, with paths and system messages;
//! clients get what the failure means for them, and the number of the log entry
//! ([`told_to_the_log`]).

use crate::metering::Exceeded;
use crate::metrics::{Refusal, SpentLimit};
use crate::sql_failure::SqlFailure;
use orrery_formats::FormatError;
use orrery_loader::LoadError;
use orrery_query_log::Outcome;
use orrery_sparql::{QueryError, SyntaxError};
use orrery_sql::SqlState;
use orrery_storage::{ByteCount, Error as StorageError, storage_place, without_numbers};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a request failed.
#[expect(missing_docs, reason = "the sentence of each variant says what it is")]
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("{message}")]
    BadRequest { message: String },
    #[error("query syntax error at line {line}, column {column}: {message}")]
    Syntax {
        message: String,
        line: usize,
        column: usize,
        /// The parser's details.
        detail: Option<Box<SyntaxError>>,
    },
    /// A statement of SQL failed.
    #[error("{0}")]
    Sql(Box<SqlFailure>),
    #[error("{message}")]
    Forbidden { message: String },
    /// The sender is unknown, or is not who they claim to be.
    #[error("{message}")]
    UnknownAsker { message: String },
    #[error("wrong passwords were sent for this name; it is not looked at for {} s", wait.as_secs() + 1)]
    TooManyGuesses { wait: Duration },
    /// The sender has reached one of their limits.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error("{message}")]
    Missing { message: String },
    #[error("{message}")]
    Precondition { message: String },
    #[error("{message}")]
    Unprocessable { message: String },
    #[error("this server does not write: {reason}")]
    ReadOnly { reason: String },
    /// Another server writes; the change can be forwarded to it.
    #[error("this server does not write: {reason}")]
    NotHere { reason: String },
    #[error(
        "the server that writes, {address}, gave no answer: {reason}; whether the change was made is not known, look before it is sent again"
    )]
    WriterAway { address: String, reason: String },
    /// The requested state is not available here.
    #[error(
        "commit {newest} is the newest here, and {commit} was asked for (min-commit); try again in a moment, or where it was written"
    )]
    Behind { commit: u64, newest: u64 },
    #[error("{waiting_max} changes are waiting already; try again in a moment")]
    WritesBusy { waiting_max: usize },
    #[error("{message}")]
    NotWritable { message: String },
    #[error("{message}")]
    UnsupportedMediaType { message: String },
    #[error("Content-Encoding `{coding}` is not supported; send one of {CODINGS}")]
    UnsupportedCoding { coding: String },
    #[error("no acceptable format; this answer can be had as {offered}")]
    NotAcceptable { offered: String },
    #[error("{method} is not allowed here; use {allowed}")]
    MethodNotAllowed {
        method: String,
        allowed: &'static str,
    },
    #[error("{}", nothing_at(path))]
    NotFound { path: String },
    #[error(
        "the request body is larger than the limit of {}, or becomes so when it is decompressed",
        ByteCount(*limit_bytes as u64)
    )]
    PayloadTooLarge { limit_bytes: usize },
    #[error("{message}")]
    TooLong { message: String },
    #[error("the request body did not arrive within {}", seconds(*limit))]
    BodyTooSlow { limit: Duration },
    #[error(
        "the request body came more slowly than {bytes_per_s} bytes a second over {}",
        seconds(*window)
    )]
    UploadTooSlow { bytes_per_s: u64, window: Duration },
    #[error("not supported: {what}")]
    Unsupported { what: String },
    #[error(
        "the query took longer than its limit of {}; \
         make it more selective, or ask for more with timeout= (at most {})",
        seconds(*limit), seconds(*maximum)
    )]
    Timeout { limit: Duration, maximum: Duration },
    #[error("{running_max} queries are running already; try again in a moment")]
    Busy { running_max: usize },
    #[error("{feeds_max} clients follow the changes already; try again in a moment")]
    FeedsBusy { feeds_max: usize },
    #[error("{message}")]
    Endpoint { message: String, is_timeout: bool },
    #[error("{message}")]
    OutOfMemory { message: String },
    /// The sender's memory limit is reached.
    #[error("{message}")]
    MemoryOfAccount { message: String },
    /// The changes of a transaction exceed memory; they may be made in bulk instead.
    #[error("{message}")]
    TransactionMemory { message: String },
    #[error("{message}")]
    MemoryBusy { message: String },
    #[error("the server is stopping")]
    Stopping,
    #[error("an administrator has ended this request")]
    Killed,
    /// Signal for the code that makes a change: remote endpoints are asked first, then the change
    /// is made again.
    #[error("other endpoints have not been asked yet")]
    AskFirst,
    #[error("{}", format_message(_0))]
    Format(#[from] FormatError),
    #[error("internal error: {message}")]
    Internal { message: String },
}

/// Outcome of a failed request for the metrics; in the extensions of its answer.
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// The outcome's name in the query log.
    pub outcome: Outcome,
    /// The reason of a refusal, where an operator can act on it.
    pub refusal: Option<Refusal>,
    /// The sender's limit that was reached, if any.
    pub limit: Option<SpentLimit>,
}

/// The message for a client whose answer could not be written; it names no directory of the server.
fn format_message(error: &FormatError) -> String {
    match error {
        FormatError::Spill { .. } => {
            "the server has no room to keep the rows of this answer; ask for a format that needs none".to_owned()
        }
        FormatError::Inexpressible { .. } | FormatError::Columns { .. } => error.to_string(),
    }
}

/// Formats a duration: `60 s`, `0.5 s`.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

impl ServiceError {
    /// An error for a request that makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest {
            message: message.into(),
        }
    }

    /// An error for a sender without the necessary right.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::Forbidden {
            message: message.into(),
        }
    }

    /// An error for an unknown sender, where one must be known.
    pub fn unknown_asker(message: impl Into<String>) -> Self {
        Self::UnknownAsker {
            message: message.into(),
        }
    }

    /// An error for a request body of an unsupported media type.
    pub fn unsupported_media_type(message: String) -> Self {
        Self::UnsupportedMediaType { message }
    }

    /// The outcome of a query that fails with this error.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Syntax { .. } => Outcome::Syntax,
            Self::Sql(failure) => failure.outcome(),
            Self::Timeout { .. } => Outcome::Timeout,
            Self::Exceeded(_) => Outcome::Exceeded,
            Self::OutOfMemory { .. }
            | Self::MemoryOfAccount { .. }
            | Self::TransactionMemory { .. }
            | Self::MemoryBusy { .. }
            | Self::Format(FormatError::Spill { .. }) => Outcome::Memory,
            Self::Stopping | Self::Killed => Outcome::Cancelled,
            Self::BadRequest { .. }
            | Self::Forbidden { .. }
            | Self::UnknownAsker { .. }
            | Self::TooManyGuesses { .. }
            | Self::Missing { .. }
            | Self::Precondition { .. }
            | Self::Unprocessable { .. }
            | Self::NotHere { .. }
            | Self::ReadOnly { .. }
            | Self::WriterAway { .. }
            | Self::Behind { .. }
            | Self::WritesBusy { .. }
            | Self::UnsupportedMediaType { .. }
            | Self::UnsupportedCoding { .. }
            | Self::NotAcceptable { .. }
            | Self::MethodNotAllowed { .. }
            | Self::NotFound { .. }
            | Self::PayloadTooLarge { .. }
            | Self::TooLong { .. }
            | Self::Unsupported { .. }
            | Self::Busy { .. }
            | Self::FeedsBusy { .. } => Outcome::Refused,
            Self::NotWritable { .. }
            | Self::BodyTooSlow { .. }
            | Self::UploadTooSlow { .. }
            | Self::Endpoint { .. }
            | Self::AskFirst
            | Self::Format(_)
            | Self::Internal { .. } => Outcome::Error,
        }
    }

    /// The counts of this error for the metrics.
    pub fn failure(&self) -> Failure {
        Failure {
            outcome: self.outcome(),
            refusal: self.refusal(),
            limit: match self {
                Self::Exceeded(exceeded) => Some(exceeded.limit()),
                _ => None,
            },
        }
    }

    fn refusal(&self) -> Option<Refusal> {
        Some(match self {
            Self::UnknownAsker { .. } => Refusal::Unknown,
            Self::Forbidden { .. } => Refusal::Forbidden,
            Self::TooManyGuesses { .. } => Refusal::Guesses,
            Self::Exceeded(_) => Refusal::Limit,
            Self::Busy { .. } => Refusal::QueriesBusy,
            Self::WritesBusy { .. } => Refusal::ChangesBusy,
            Self::Behind { .. } => Refusal::Behind,
            Self::FeedsBusy { .. } => Refusal::FeedsBusy,
            Self::Timeout { .. } => Refusal::Timeout,
            Self::MemoryBusy { .. } => Refusal::MemoryBusy,
            Self::ReadOnly { .. } | Self::NotHere { .. } | Self::NotWritable { .. } => {
                Refusal::ReadOnly
            }
            Self::Killed => Refusal::Killed,
            Self::Stopping => Refusal::Stopping,
            Self::OutOfMemory { .. } | Self::TransactionMemory { .. } => Refusal::Memory,
            Self::Format(FormatError::Spill { .. }) => Refusal::Disk,
            _ => return None,
        })
    }

    /// Whether the rows found before the error are right, though incomplete.
    pub fn leaves_a_part(&self) -> bool {
        matches!(self, Self::Exceeded(_) | Self::Timeout { .. })
    }

    /// One line for people: without the control characters of quoted input, and without system
    /// error numbers.
    pub fn line(&self) -> String {
        let text = without_numbers(&self.to_string());
        let mut line = String::with_capacity(text.len());
        for word in text
            .split(char::is_whitespace)
            .filter(|word| !word.is_empty())
        {
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(word.chars().filter(|character| !character.is_control()));
        }
        line
    }
}

impl ServiceError {
    /// Converts an error of SQL, with the text of its statement.
    pub fn of_sql(error: orrery_sql::Error, text: &str) -> Self {
        match error.state {
            SqlState::OutOfMemory => Self::OutOfMemory {
                message: error.message,
            },
            SqlState::ConfigurationLimitExceeded => Self::MemoryOfAccount {
                message: error.message,
            },
            SqlState::IoError => Self::Internal {
                message: told_to_the_log(
                    "the server's database could not be read or written",
                    &error,
                ),
            },
            SqlState::InternalError => Self::Internal {
                message: told_to_the_log("a fault of this program, please report it", &error),
            },
            _ => Self::Sql(Box::new(SqlFailure::new(error, text))),
        }
    }
}

impl From<QueryError> for ServiceError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Syntax {
                message,
                line,
                column,
                detail,
            } => Self::Syntax {
                message,
                line,
                column,
                detail,
            },
            QueryError::Unsupported { what } => Self::Unsupported { what },
            QueryError::Timeout { limit } => Self::Timeout {
                limit,
                maximum: limit,
            },
            ref error @ QueryError::Service { is_timeout, .. } => Self::Endpoint {
                message: error.to_string(),
                is_timeout,
            },
            QueryError::TooManyRows { rows_max } => Exceeded::Rows { max: rows_max }.into(),
            // The payer, if known, names the budget in its own words.
            error @ QueryError::OverBudget => Self::MemoryOfAccount {
                message: error.to_string(),
            },
            error @ QueryError::Busy => Self::MemoryBusy {
                message: error.to_string(),
            },
            error @ QueryError::OutOfMemory { .. } => Self::OutOfMemory {
                message: error.to_string(),
            },
            error @ QueryError::MemoryOfAccount { .. } => Self::MemoryOfAccount {
                message: error.to_string(),
            },
            QueryError::AskFirst => Self::AskFirst,
            QueryError::Forbidden { message } => Self::Forbidden { message },
            error @ QueryError::UpdateFailed { .. } => Self::BadRequest {
                message: error.to_string(),
            },
            QueryError::Storage(error) => Self::from(error),
            ref error @ QueryError::Internal { .. } => Self::Internal {
                message: told_to_the_log("a fault of this program, please report it", error),
            },
        }
    }
}

impl From<StorageError> for ServiceError {
    fn from(error: StorageError) -> Self {
        let message = match &error {
            StorageError::CommitConflict { .. }
            | StorageError::HiddenGraphs { .. }
            | StorageError::KeepsHistory { .. }
            | StorageError::Refused { .. }
            | StorageError::StagedUnreadable
            | StorageError::TransactionMemory { .. } => error.to_string(),
            StorageError::NoSuchCommit { wanted, what, .. } => {
                format!("the database has no {wanted}; {what}")
            }
            StorageError::TransactionTooLarge { bytes, limit, .. } => format!(
                "the transaction takes {bytes} bytes in the log, the limit is {limit}; split it, or load it in bulk"
            ),
            StorageError::TooManyTerms { .. } => {
                "the database has too many new terms; ask for POST /compact, then try again"
                    .to_owned()
            }
            StorageError::NoSpace { .. } => told_to_the_log(
                "the server's disk is full; there must be room before it can go on",
                &error,
            ),
            StorageError::TurnEnded { reason, .. } => format!(
                "this server does not write the database any more: {reason}; nothing was changed, try again in a moment"
            ),
            StorageError::OutcomeUnknown { .. } => told_to_the_log(
                "it is not known whether the change was made, for this server stopped writing, or leading, meanwhile; look whether it is there before you make it again",
                &error,
            ),
            StorageError::WritingStopped { path, .. } => told_to_the_log(
                &format!(
                    "this server has stopped writing, for its log could not be written; look at {}, then restart the server",
                    storage_place(path)
                ),
                &error,
            ),
            error => told_to_the_log("the server's database could not be read or written", error),
        };
        match error {
            StorageError::NoSpace { .. }
            | StorageError::StagedUnreadable
            | StorageError::TransactionTooLarge { .. } => Self::OutOfMemory { message },
            StorageError::TransactionMemory { .. } => Self::TransactionMemory { message },
            StorageError::CommitConflict { .. } => Self::Precondition { message },
            StorageError::HiddenGraphs { .. } => Self::Forbidden { message },
            StorageError::KeepsHistory { .. } => Self::Unprocessable { message },
            StorageError::Refused { .. } => Self::BadRequest { message },
            StorageError::NoSuchCommit { .. } => Self::Missing { message },
            StorageError::TurnEnded { .. }
            | StorageError::OutcomeUnknown { .. }
            | StorageError::WritingStopped { .. }
            | StorageError::TooManyTerms { .. } => Self::NotWritable { message },
            _ => Self::Internal { message },
        }
    }
}

/// Logs an error with its paths; returns the client's sentence, with the number of the log entry.
pub fn told_to_the_log(sentence: &str, error: &dyn std::fmt::Display) -> String {
    static TROUBLES: AtomicU64 = AtomicU64::new(1);
    let number = TROUBLES.fetch_add(1, Ordering::Relaxed);
    tracing::error!("trouble {number}: {error}");
    format!("{sentence} (trouble {number} in the server's log)")
}

/// Errors of a change that became a new base.
impl From<LoadError> for ServiceError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Storage(error) => error.into(),
            other => Self::Internal {
                message: told_to_the_log("the change could not be put on the disk", &other),
            },
        }
    }
}

/// The content codings that request bodies may have.
pub const CODINGS: &str = "gzip, zstd, br, identity";

/// The message for an unserved path, which may be one of the admin socket's.
fn nothing_at(path: &str) -> String {
    let is_of_admin_socket =
        path == "/admin/access" || path == "/queries" || path.starts_with("/queries/");
    match is_of_admin_socket {
        true => format!(
            "{path}: this is not the admin socket; start the server with --admin HOST:PORT, and ask there"
        ),
        false => {
            format!("there is nothing at {path}; see / for the console and /sparql for queries")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;

    #[test]
    fn clients_are_not_told_of_paths_and_of_the_systems_numbers() {
        let path = Path::new("/var/lib/orrery/secret/log/000001.log");
        for code in [2, 5, 13, 21, 28] {
            let error = StorageError::from_io(path, "write", io::Error::from_raw_os_error(code));
            let line = ServiceError::from(error).line();
            assert!(
                !line.contains("/var/lib") && !line.contains("os error"),
                "{line}"
            );
            assert!(line.contains("in the server's log"), "{line}");
        }
        let missing = StorageError::NoSuchCommit {
            path: path.to_owned(),
            wanted: "commit 9".to_owned(),
            what: "it has 1 to 3".to_owned(),
        };
        let line = ServiceError::from(missing).line();
        assert_eq!(line, "the database has no commit 9; it has 1 to 3");
        let load = QueryError::UpdateFailed {
            message: format!("LOAD: {}", io::Error::from_raw_os_error(21)),
        };
        let line = ServiceError::from(load).line();
        assert!(line.ends_with("LOAD: Is a directory"), "{line}");
        let error = ServiceError::from(FormatError::Spill {
            directory: "/tmp/spill".into(),
            message: io::Error::from_raw_os_error(28).to_string(),
        });
        assert!(!error.line().contains("/tmp"), "{}", error.line());
    }
}
