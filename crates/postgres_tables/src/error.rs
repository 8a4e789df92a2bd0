//! The errors of foreign tables, by what can be done about them.

use datafusion::common::DataFusionError;

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// See the module. No variant holds a password, or an address with one.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nobody allowed this session, or this server, to connect there.
    #[error("permission denied to connect to {host}: {reason}")]
    NotAllowed {
        /// The host and its port.
        host: String,
        /// Why not.
        reason: String,
    },
    /// An address, or an option, that cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// Something of the source that is not read.
    #[error("{what}")]
    Unsupported {
        /// What it is.
        what: String,
        /// What can be done.
        hint: String,
    },
    /// There is no such table there.
    #[error("{server} has no table {table}")]
    NoTable {
        /// The server.
        server: String,
        /// The table's name there.
        table: String,
    },
    /// No connection, or none that may be used.
    #[error("could not connect to {server}: {words}")]
    Connect {
        /// The server.
        server: String,
        /// Why, with the server's own SQLSTATE where it answered.
        words: String,
    },
    /// The server refused the statement, or gave up within it.
    #[error("external table \"{table}\": {server} says: {message} (SQLSTATE {code})")]
    Source {
        /// The table.
        table: String,
        /// The server.
        server: String,
        /// The server's SQLSTATE.
        code: String,
        /// The server's message.
        message: String,
        /// Its detail and hint.
        detail: Option<String>,
    },
    /// The connection broke in the middle.
    #[error("external table \"{table}\": the connection to {server} was lost: {words}")]
    Lost {
        /// The table.
        table: String,
        /// The server.
        server: String,
        /// How.
        words: String,
    },
    /// The table there is no longer as it was defined here.
    #[error("external table \"{table}\" has changed at its source: {words}")]
    Changed {
        /// The table.
        table: String,
        /// What is different.
        words: String,
    },
    /// A value that our type does not have.
    #[error("external table \"{table}\", column \"{column}\": {words}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Which value, and why.
        words: String,
    },
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

impl Error {
    /// What a server, or the connection to it, said while a table was read.
    pub(crate) fn of_read(error: &tokio_postgres::Error, table: &str, server: &str) -> Self {
        let (table, server) = (table.to_owned(), server.to_owned());
        let Some(said) = error.as_db_error() else {
            return Self::Lost {
                table,
                server,
                words: with_causes(error),
            };
        };
        let code = said.code().code();
        // A column or the table is not there any more, or is of another type than when the
        // statement was prepared.
        if matches!(code, "42703" | "42P01" | "3F000") || said.message().contains("cached plan") {
            return Self::Changed {
                table,
                words: format!("{} (SQLSTATE {code})", said.message()),
            };
        }
        let detail = [said.detail(), said.hint()];
        let detail: Vec<&str> = detail.into_iter().flatten().collect();
        Self::Source {
            table,
            server,
            code: code.to_owned(),
            message: said.message().to_owned(),
            detail: (!detail.is_empty()).then(|| detail.join(" ")),
        }
    }

    /// What went wrong before there was a connection.
    pub(crate) fn of_connect(error: &tokio_postgres::Error, server: &str) -> Self {
        let words = match error.as_db_error() {
            Some(said) => format!("{} (SQLSTATE {})", said.message(), said.code().code()),
            None => with_causes(error),
        };
        Self::Connect {
            server: server.to_owned(),
            words,
        }
    }
}

/// An error with what led to it, once each.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}
