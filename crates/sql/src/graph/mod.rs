//! Graphs in SQL: SPARQL solutions and quads as tables.
//!
//! ```text
//!   sparql('SELECT ...' [, 'a text, b numeric(10,2)'])   function -> GraphTable -> GraphExec -> GraphSource
//!   class('iri', 'columns with their properties')        function -/    filters, limit, hints of joins on the way
//!   quads (s, p, o, g, datatype, language)               catalog  -/
//! ```
//!
//! This crate does not know SPARQL: whoever puts both languages together gives a session a
//! [`GraphSource`]. A request for a table's rows travels to it as a [`GraphQuery`]: needed columns,
//! conditions on them, a limit. The rows come back as typed columns, from the same snapshot as the
//! statement's tables, on the same memory.
//!
//! The type of a column is known before the first row: what the statement declares, else what the
//! text of the query says by a cast or a count, else `text` (an IRI, the characters of a literal,
//! `_:b12` for a blank node). A value that is not of the column's type is an error that names it.

mod class;
mod condition;
mod declared;
mod function;
mod node;
mod quads;
mod table;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use datafusion::arrow::array::ArrayRef;
use futures::stream::BoxStream;
use orrery_runtime::Spending;
use orrery_storage::table::ColumnType;
use orrery_storage::{ReadScope, Snapshot};

use crate::Result;

pub(crate) use class::{ENTITY, IRI_TYPE};
pub(crate) use declared::declare_columns;
pub(crate) use function::{
    ClassFunction, ClassesFunction, PropertiesFunction, SparqlFunction, TextSearchFunction,
};
pub(crate) use node::is_of_graphs;
pub(crate) use quads::{QUADS, quads};

/// The source of SPARQL answers for SQL.
pub trait GraphSource: fmt::Debug + Send + Sync {
    /// The columns of a query: its selected variables.
    ///
    /// # Errors
    /// When the text is no query that selects.
    fn columns(&self, text: &str, snapshot: &Arc<Snapshot>) -> Result<Vec<GraphColumn>>;

    /// The type of a column all whose values are of a datatype; none where that is text.
    fn column_type(&self, datatype: &str) -> Option<ColumnType>;

    /// Runs a query. Each piece has a text for each solution and each asked column.
    fn solutions(&self, query: Arc<GraphQuery>) -> BoxStream<'static, Result<GraphRows>>;
}

/// A selected variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphColumn {
    /// Without `?`.
    pub name: String,
    /// What the text of the query says of its type.
    pub column_type: Option<ColumnType>,
    /// Whether no value can be a literal.
    pub is_resource: bool,
}

/// Graphs as a statement sees them.
#[derive(Debug, Clone)]
pub(crate) struct SeenGraphs {
    pub(crate) source: Arc<dyn GraphSource>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) limits: GraphLimits,
    /// Whether other writers wait for the statement.
    pub(crate) holds_turn: bool,
    /// Who pays for what is read.
    pub(crate) spending: Option<Arc<Spending>>,
    /// The graphs that may be read.
    pub(crate) scope: ReadScope,
}

/// The timeouts of graph reads.
#[derive(Debug, Clone, Default)]
pub struct GraphLimits {
    /// A query may be planned so long.
    pub planning_timeout: Option<Duration>,
    /// It may run so long.
    pub timeout: Option<Duration>,
    /// Planning ends when nobody holds this any more. Without it, nobody is known to wait.
    pub waiting: Option<Weak<()>>,
}

/// A query to a graph source.
#[derive(Debug, Clone)]
pub struct GraphQuery {
    /// SPARQL.
    pub text: Arc<str>,
    /// Whether it is that of `quads`: the default graph is itself there, whatever it is for other
    /// queries.
    pub is_of_quads: bool,
    /// Whether other writers wait for its end: nobody else may be asked for anything.
    pub holds_turn: bool,
    /// How long it is waited for.
    pub limits: GraphLimits,
    /// What counts its cost, and where its memory comes from; nothing without one.
    pub spending: Option<Arc<Spending>>,
    /// The state to read.
    pub snapshot: Arc<Snapshot>,
    /// Who asks, and the graphs that they may read.
    pub scope: ReadScope,
    /// The variables that are needed, and what their values must be.
    pub columns: Vec<(String, ColumnType)>,
    /// All must hold.
    pub conditions: Vec<GraphCondition>,
    /// Solutions that are enough.
    pub limit: Option<usize>,
}

/// Some solutions.
#[derive(Debug, Clone)]
pub struct GraphRows {
    /// How many there are, for there may be no columns.
    pub rows: usize,
    /// A column of texts (`Utf8View`) for each that was asked for, as SQL reads values of its type.
    pub columns: Vec<ArrayRef>,
}

/// A condition on a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphCondition {
    /// Without `?`.
    pub variable: String,
    /// What must hold.
    pub test: GraphTest,
}

/// The conditions that a source can test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphTest {
    /// It is one of these IRIs.
    IriIn(Vec<String>),
    /// Its text is one of these.
    TextIn(Vec<String>),
    /// It is a number of at least so much.
    AtLeast(String),
    /// The same, or no number at all (NaN), which SQL has above all others.
    AtLeastOrNan(String),
    /// It is a number of at most so much.
    AtMost(String),
    /// It has a value.
    IsBound,
}

impl fmt::Display for GraphCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 3;
        let variable = &self.variable;
        match &self.test {
            GraphTest::IriIn(values) | GraphTest::TextIn(values) => {
                let shown = values
                    .iter()
                    .take(SHOWN_MAX)
                    .map(|value| format!("{value:?}"));
                let shown: Vec<String> = shown.collect();
                let more = if values.len() > SHOWN_MAX {
                    ", ..."
                } else {
                    ""
                };
                write!(f, "?{variable} IN ({}{more})", shown.join(", "))
            }
            GraphTest::AtLeast(number) => write!(f, "?{variable} >= {number}"),
            GraphTest::AtLeastOrNan(number) => write!(f, "NOT ?{variable} < {number}"),
            GraphTest::AtMost(number) => write!(f, "?{variable} <= {number}"),
            GraphTest::IsBound => write!(f, "BOUND(?{variable})"),
        }
    }
}
