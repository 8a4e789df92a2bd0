//! The errors of mappings and of their rows.

use orrery_sql::SqlState;

/// What the parts of this crate give, or why not.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a mapping cannot be used, or produces no triples.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no Turtle.
    #[error("the mapping is no Turtle: line {line}, column {column}: {message}")]
    Turtle {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What was found.
        message: String,
    },
    /// The text is Turtle, and no mapping.
    #[error("the triples map {triples_map}{}: {message}", of_property(property))]
    Mapping {
        /// The triples map in which it is.
        triples_map: String,
        /// The property at which it is; empty where it is the triples map itself.
        property: String,
        /// What is wrong.
        message: String,
    },
    /// The mapping is right, and no term can be made of a value.
    #[error("{term} of the triples map {triples_map}: {message}")]
    Data {
        /// The triples map.
        triples_map: String,
        /// What was to be made.
        term: String,
        /// What is wrong with it.
        message: String,
    },
    /// A name that something else has.
    #[error("{0}")]
    Taken(String),
    /// Something else, which whoever knows the place puts into one of the others.
    #[error("{0}")]
    Words(String),
    /// The tables could not be read.
    #[error(transparent)]
    Sql(#[from] orrery_sql::Error),
    /// The store could not be read or written.
    #[error(transparent)]
    Storage(#[from] orrery_storage::Error),
}

fn of_property(property: &str) -> String {
    match property.is_empty() {
        true => String::new(),
        false => format!(", {property}"),
    }
}

impl Error {
    /// The same where it is known where it is.
    pub(crate) fn at(self, triples_map: &str, property: &str) -> Self {
        let message = match self {
            Self::Words(words) => words,
            Self::Sql(error) => error.to_string(),
            other => return other,
        };
        Self::Mapping {
            triples_map: triples_map.to_owned(),
            property: property.to_owned(),
            message,
        }
    }
}

impl From<Error> for orrery_sql::Error {
    fn from(error: Error) -> Self {
        let state = match &error {
            Error::Turtle { .. } | Error::Mapping { .. } | Error::Words(_) => {
                SqlState::InvalidParameterValue
            }
            Error::Taken(_) => SqlState::DuplicateObject,
            Error::Data { .. } => SqlState::InvalidTextRepresentation,
            Error::Storage(orrery_storage::Error::TransactionMemory { .. }) => {
                SqlState::OutOfMemory
            }
            Error::Storage(_) => SqlState::IoError,
            Error::Sql(_) => SqlState::InternalError,
        };
        match error {
            Error::Sql(error) => error,
            other => Self::new(state, other.to_string()),
        }
    }
}
