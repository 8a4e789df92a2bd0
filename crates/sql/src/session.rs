//! What one client has: the tables that it sees, its settings, and the way from a text to batches.
//!
//! Settings differ from DataFusion's own where PostgreSQL does: its dialect, names folded to lower case unless quoted, literals like `0.06` are
//! decimals and not floats, NULLs sort last. Plans are made for as many partitions as the engine has threads.
//!
//! Making a session registers some four hundred functions, which takes about a millisecond; it is for a connection, not for a query.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider};
use datafusion::common::DataFusionError;
use datafusion::config::Dialect;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use orrery_runtime::Runtime;

use crate::names::{CATALOG, SCHEMA};
use crate::statement::{STACK_BYTES_MIN, parse};
use crate::{Error, Result, SqlState};

/// One client's; see the module.
pub struct Session {
    context: SessionContext,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A query that is understood and can be run: once, for its operators keep what they build, and filters that they find on the way.
#[derive(Debug)]
pub struct PlannedQuery {
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
}

impl Session {
    /// A session that sees these tables as the schema `public`, on the engine's memory and threads.
    ///
    /// # Errors
    /// When the schema cannot be registered.
    pub fn new(runtime: &Runtime, tables: Arc<dyn SchemaProvider>) -> Result<Self> {
        // For the whole process, and always the same.
        recursive::set_minimum_stack_size(STACK_BYTES_MIN);
        recursive::set_stack_allocation_size(4 * STACK_BYTES_MIN);
        let task = runtime.task(None);
        let threads = runtime.workers().threads();
        let state = SessionStateBuilder::new()
            .with_config(config(task.session_config().batch_size(), threads))
            .with_runtime_env(task.runtime_env())
            .with_default_features()
            .build();
        let context = SessionContext::new_with_state(state);
        let catalog = MemoryCatalogProvider::new();
        let registered = catalog.register_schema(SCHEMA, tables);
        registered.map_err(|error| Error::of_run(&error))?;
        context.register_catalog(CATALOG, Arc::new(catalog));
        Ok(Self { context })
    }

    /// Understands a text of one statement.
    ///
    /// # Errors
    /// When the text is not SQL, names what is not there, or is no query.
    pub async fn plan(&self, text: &str) -> Result<PlannedQuery> {
        let statement = parse(text)?;
        // A state of its own: `now()` is when this statement began.
        let state = self.context.state();
        let of_engine = |error: DataFusionError| Error::of_engine(&error, text);
        let plan = state
            .statement_to_plan(statement)
            .await
            .map_err(of_engine)?;
        refuse_changes(&plan)?;
        let plan = state.create_physical_plan(&plan).await.map_err(of_engine)?;
        Ok(PlannedQuery {
            plan,
            task: state.task_ctx(),
        })
    }
}

impl PlannedQuery {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The physical plan.
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// Begins to run it. What fails later is in the stream, of which [`Error::of_run`] makes one of ours.
    ///
    /// # Errors
    /// When an operator cannot begin.
    pub fn run(self) -> Result<SendableRecordBatchStream> {
        execute_stream(self.plan, self.task).map_err(|error| Error::of_run(&error))
    }
}

fn config(batch_rows: usize, threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = Dialect::PostgreSQL;
    parser.parse_float_as_decimal = true;
    parser.collect_spans = true;
    config
}

/// EXPLAIN ANALYZE runs what it explains, so the whole plan is looked at.
fn refuse_changes(plan: &LogicalPlan) -> Result<()> {
    let mut rest = vec![plan];
    while let Some(plan) = rest.pop() {
        let what = match plan {
            LogicalPlan::Ddl(statement) => statement.name().to_owned(),
            LogicalPlan::Dml(statement) => statement.op.to_string(),
            LogicalPlan::Copy(_) => "COPY".to_owned(),
            LogicalPlan::Statement(statement) => statement.name().to_owned(),
            _ => {
                rest.extend(plan.inputs());
                continue;
            }
        };
        return Err(Error::new(
            SqlState::FeatureNotSupported,
            format!("{what} is not supported"),
        ));
    }
    Ok(())
}
