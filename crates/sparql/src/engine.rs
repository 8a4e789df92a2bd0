//! The face of the crate: an engine prepares queries, a prepared query runs.

use std::sync::Arc;

use crate::error::QueryError;
use crate::options::{EngineOptions, QueryOptions};
use crate::parse;
use crate::results::QueryResults;

/// Answers SPARQL queries over one database. Cheap to share by `Arc`.
pub struct Engine {
    options: EngineOptions,
}

/// The four forms of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// `SELECT`: solutions.
    Select,
    /// `ASK`: a truth value.
    Ask,
    /// `CONSTRUCT`: triples made from a template.
    Construct,
    /// `DESCRIBE`: triples about some terms.
    Describe,
}

/// A query with its plan, over the snapshot that was current when it was prepared.
pub struct PreparedQuery {
    kind: QueryKind,
    variables: Arc<[String]>,
}

impl Engine {
    /// Parses and plans a query over the newest snapshot.
    pub fn prepare(&self, text: &str, options: &QueryOptions) -> Result<PreparedQuery, QueryError> {
        parse::measure(text, self.options.query_bytes_max)?;
        parse::parse(text, options.base_iri.as_deref())?;
        Err(QueryError::unsupported(
            "queries, until the planner is here",
        ))
    }

    /// The settings.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }
}

impl PreparedQuery {
    /// The form of the query, which decides the form of its answer.
    pub fn kind(&self) -> QueryKind {
        self.kind
    }

    /// The projected variables of a `SELECT`, without `?`; empty for other forms.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The plan as text, with estimates.
    pub fn explain(&self) -> String {
        String::new()
    }

    /// Runs the query, drops its answer, and returns the plan with actual rows and times.
    pub async fn analyze(&self) -> Result<String, QueryError> {
        Ok(String::new())
    }

    /// Starts the query. Streams run on the caller's tokio runtime, as they are polled;
    /// `ASK` runs here to its end.
    pub async fn execute(&self) -> Result<QueryResults, QueryError> {
        Err(QueryError::unsupported(
            "queries, until the planner is here",
        ))
    }
}
