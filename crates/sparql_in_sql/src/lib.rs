//! SPARQL within SQL: solutions and quads as tables.
//!
//! ```text
//!   SQL plan -> GraphExec (orrery-sql) -> EngineGraphs: GraphQuery -> narrowed query
//!            -> orrery-sparql's plan -> terms -> texts of the columns' types
//! ```
//!
//! `orrery-sql` and `orrery-sparql` do not know each other; this crate stands above both, and gives
//! sessions what `sparql('...')` and `quads` read from. A query runs on the engine's threads and
//! memory and in the snapshot of the statement, and is planned as if its text had the conditions,
//! the limit and the choice of variables that come from SQL. It sees the graphs that whoever asks
//! may read.

mod values;

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use orrery_sparql::{
    Engine, Narrowing, NumberComparison, QueryError, QueryOptions, QueryResults, SolutionBatch,
    VariableCondition, VariableTest,
};
use orrery_sql::{
    Error, GraphColumn, GraphQuery, GraphRows, GraphSource, GraphTest, Result, SqlState,
};
use orrery_storage::Snapshot;
use orrery_storage::table::ColumnType;

/// What an engine of SPARQL answers within SQL.
#[derive(Debug)]
pub struct EngineGraphs {
    engine: Arc<Engine>,
    readings: Readings,
}

/// How texts of SPARQL are read, where whoever runs the engine may choose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Readings {
    /// Where a query gives no dataset: the default graph is the union of all graphs. Not in
    /// `quads`.
    pub union_default_graph: bool,
    /// Whether each prefix must be declared in the text.
    pub strict_prefixes: bool,
}

impl EngineGraphs {
    /// Of this engine.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            readings: Readings::default(),
        }
    }

    /// The same that reads texts so.
    #[must_use]
    pub fn with_readings(self, readings: Readings) -> Self {
        Self { readings, ..self }
    }

    fn options(&self, snapshot: &Arc<Snapshot>) -> QueryOptions {
        QueryOptions {
            snapshot: Some(Arc::clone(snapshot)),
            union_default_graph: self.readings.union_default_graph,
            strict_prefixes: self.readings.strict_prefixes,
            ..QueryOptions::of_process()
        }
    }

    fn options_of(&self, query: &GraphQuery) -> QueryOptions {
        let options = self.options(&query.snapshot);
        QueryOptions {
            union_default_graph: options.union_default_graph && !query.is_of_quads,
            asks_nobody: query.holds_turn,
            timeout: query.limits.timeout,
            planning_timeout: query.limits.planning_timeout,
            waiting: query.limits.waiting.clone(),
            narrowing: narrowing(query),
            scope: query.scope.clone(),
            spending: query.spending.clone(),
            ..options
        }
    }
}

impl GraphSource for EngineGraphs {
    fn columns(&self, text: &str, snapshot: &Arc<Snapshot>) -> Result<Vec<GraphColumn>> {
        let selected = self
            .engine
            .selected_variables(text, &self.options(snapshot));
        let selected = selected.map_err(|error| of_query(&error))?;
        let selected = selected.ok_or_else(|| {
            Error::new(
                SqlState::WrongObjectType,
                "sparql takes a query that selects; CONSTRUCT, DESCRIBE and ASK have no columns",
            )
        })?;
        let columns = selected.into_iter().map(|variable| GraphColumn {
            column_type: variable.datatype.as_deref().and_then(values::column_type),
            is_resource: variable.is_resource,
            name: variable.name,
        });
        Ok(columns.collect())
    }

    fn column_type(&self, datatype: &str) -> Option<ColumnType> {
        values::column_type(datatype)
    }

    fn solutions(&self, query: Arc<GraphQuery>) -> BoxStream<'static, Result<GraphRows>> {
        let engine = Arc::clone(&self.engine);
        let options = self.options_of(&query);
        let solutions = async move {
            // The planner looks now and then; short queries are planned before it does.
            let waiting = query.limits.waiting.as_ref();
            if waiting.is_some_and(|waiting| waiting.strong_count() == 0) {
                return Err(Error::new(
                    SqlState::QueryCanceled,
                    "nobody waits for the answer any more",
                ));
            }
            let prepared = engine.prepare(&query.text, &options);
            let prepared = prepared.map_err(|error| of_query(&error))?;
            let spending = query.spending.as_ref();
            let counted = spending.map(|spending| spending.watch(prepared.touch_reader().of_run()));
            let results = prepared.execute().await;
            let QueryResults::Solutions(solutions) = results.map_err(|error| of_query(&error))?
            else {
                return Err(Error::new(
                    SqlState::InternalError,
                    "a query that selects has no solutions",
                ));
            };
            Ok(solutions.map(move |batch| {
                // As long as it runs.
                let _ = &counted;
                match batch {
                    Ok(batch) => rows(&batch, &query),
                    Err(error) => Err(of_query(&error)),
                }
            }))
        };
        futures::stream::once(solutions).try_flatten().boxed()
    }
}

fn narrowing(query: &GraphQuery) -> Narrowing {
    let conditions = query.conditions.iter().map(|condition| VariableCondition {
        variable: condition.variable.clone(),
        test: match &condition.test {
            GraphTest::IriIn(iris) => VariableTest::IriIn(iris.clone()),
            GraphTest::TextIn(texts) => VariableTest::TextIn(texts.clone()),
            GraphTest::AtLeast(number) => {
                VariableTest::Number(NumberComparison::GreaterOrEqual, number.clone())
            }
            GraphTest::AtLeastOrNan(number) => {
                VariableTest::Number(NumberComparison::NotLess, number.clone())
            }
            GraphTest::AtMost(number) => {
                VariableTest::Number(NumberComparison::LessOrEqual, number.clone())
            }
            GraphTest::IsBound => VariableTest::Bound,
        },
    });
    Narrowing {
        variables: Some(query.columns.iter().map(|(name, _)| name.clone()).collect()),
        conditions: conditions.collect(),
        limit: query.limit,
    }
}

/// The terms of some solutions as texts.
fn rows(batch: &SolutionBatch, query: &GraphQuery) -> Result<GraphRows> {
    let columns = query.columns.iter().enumerate();
    let columns = columns.map(|(place, (name, column_type))| {
        let mut texts = StringViewBuilder::with_capacity(batch.rows());
        for row in 0..batch.rows() {
            match batch.term(row, place) {
                None => texts.append_null(),
                Some(term) => texts.append_value(values::text(term, *column_type, name)?),
            }
        }
        Ok(Arc::new(texts.finish()) as ArrayRef)
    });
    Ok(GraphRows {
        rows: batch.rows(),
        columns: columns.collect::<Result<_>>()?,
    })
}

/// What befell the query, with the code that SQL has for it. Places are of the text of the query.
fn of_query(error: &QueryError) -> Error {
    let state = match error {
        QueryError::Syntax { .. } => SqlState::SyntaxError,
        QueryError::Unsupported { .. } => SqlState::FeatureNotSupported,
        QueryError::Timeout { .. } | QueryError::TooManyRows { .. } => SqlState::QueryCanceled,
        QueryError::OutOfMemory { .. } | QueryError::Busy => SqlState::OutOfMemory,
        QueryError::MemoryOfAccount { .. } | QueryError::OverBudget => {
            SqlState::ConfigurationLimitExceeded
        }
        QueryError::Service { .. } => SqlState::ForeignDataError,
        QueryError::Storage(_) => SqlState::IoError,
        QueryError::Forbidden { .. } => SqlState::InsufficientPrivilege,
        QueryError::AskFirst | QueryError::UpdateFailed { .. } | QueryError::Internal { .. } => {
            SqlState::InternalError
        }
    };
    Error::new(state, format!("in SPARQL: {error}"))
}
