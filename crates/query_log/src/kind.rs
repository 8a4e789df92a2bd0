//! The kinds and outcomes of logged requests.

use serde::{Deserialize, Serialize};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A query of SPARQL that ended before it was known which form it has.
    Query,
    /// `SELECT`
    Select,
    /// `ASK`
    Ask,
    /// `CONSTRUCT`
    Construct,
    /// `DESCRIBE`
    Describe,
    /// An update of SPARQL.
    Update,
    /// Statements of SQL.
    Sql,
}

impl Kind {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::Query,
        Self::Select,
        Self::Ask,
        Self::Construct,
        Self::Describe,
        Self::Update,
        Self::Sql,
    ];

    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Select => "select",
            Self::Ask => "ask",
            Self::Construct => "construct",
            Self::Describe => "describe",
            Self::Update => "update",
            Self::Sql => "sql",
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The answer went out to its end.
    Ok,
    /// The server does not do that, not for this client, or not now.
    Refused,
    /// The text is wrong.
    Syntax,
    /// It took longer than its limit.
    Timeout,
    /// Who asked had used up what they may.
    Exceeded,
    /// It needed more memory than there was.
    Memory,
    /// The client left, an administrator ended it, or the server stopped.
    Cancelled,
    /// Anything else.
    Error,
}

impl Outcome {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Ok,
        Self::Refused,
        Self::Syntax,
        Self::Timeout,
        Self::Exceeded,
        Self::Memory,
        Self::Cancelled,
        Self::Error,
    ];

    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Syntax => "syntax",
            Self::Timeout => "timeout",
            Self::Exceeded => "exceeded",
            Self::Memory => "memory",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}
