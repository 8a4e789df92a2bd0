//! A reader of tables without a session, for mapped graphs.
//!
//! It has no settings, no transaction, no graphs; what it reads is said each time. Plans have one
//! partition, so their rows come in the order of their source, and nothing is spread over threads
//! that somebody else counts.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use orrery_postgres_tables::ForeignAccess;
use orrery_runtime::{Runtime, Spending};
use orrery_storage::table::{ColumnType, Tables};

use crate::files::{FileAccess, is_external};
use crate::names::WORK_SCHEMA;
use crate::parse::statement::parse_one;
use crate::plan::engine_state::engine_state;
use crate::plan::planner::Planner;
use crate::semantics::column_names::shown_name;
use crate::values::data_types::type_of_values;
use crate::{Error, Result, SqlState};
use orrery_table_scan::StoredTable;

/// Reads tables; see the module.
#[derive(Clone)]
pub struct TableReader {
    state: SessionState,
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableReader").finish_non_exhaustive()
    }
}

impl TableReader {
    /// A reader on the engine's memory. It reads no files, and of other servers those that it may.
    pub fn new(runtime: &Runtime, foreign: &ForeignAccess) -> Self {
        Self {
            state: engine_state(runtime, &FileAccess::refused(), foreign),
        }
    }

    /// Sets the account that is charged for reads, and its memory.
    #[must_use]
    pub fn paid_by(&self, spending: Arc<Spending>) -> Self {
        let mut state = self.state.clone();
        state.config_mut().set_extension(spending);
        Self { state }
    }

    fn planner(&self, tables: &Arc<Tables>) -> Planner {
        let mut state = self.state.clone();
        state.mark_start_execution();
        Planner::new(state, tables, None).in_one_partition()
    }

    /// The columns of a query, each with a name of its own.
    ///
    /// # Errors
    /// When the text is no query, names what is not there, or gives two columns one name.
    pub fn columns<'a>(
        &'a self,
        tables: &'a Arc<Tables>,
        query: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, ColumnType)>>> {
        Box::pin(async move {
            let plan = self.logical(&self.planner(tables), query).await?;
            let mut names = plan.schema().fields().iter().map(|field| field.name());
            // All but the first of a name have a mark.
            if let Some(twice) = names.find(|name| shown_name(name) != name.as_str()) {
                let twice = shown_name(twice);
                return Err(Error::new(
                    SqlState::DuplicateColumn,
                    format!("column \"{twice}\" specified more than once"),
                ));
            }
            columns_of(&plan)
        })
    }

    /// The columns of a view.
    ///
    /// # Errors
    /// When there is none of that name, or what it reads is there no more.
    pub fn columns_of_view<'a>(
        &'a self,
        tables: &'a Arc<Tables>,
        schema: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, ColumnType)>>> {
        Box::pin(async move {
            let view = tables.view_named(schema, name).ok_or_else(|| {
                Error::new(
                    SqlState::UndefinedTable,
                    format!("view \"{name}\" does not exist"),
                )
            })?;
            if is_external(&view.query) {
                return Err(Error::unsupported(format!(
                    "the external table {name} in a mapping"
                )));
            }
            columns_of(&self.planner(tables).view(view).await?)
        })
    }

    /// The name, in quotes, under which [`Self::rows`] knows a table with the numbers of its rows.
    pub fn numbered_name(schema: &str, name: &str) -> String {
        let name = numbered(schema, name).replace('"', "\"\"");
        format!("\"{WORK_SCHEMA}\".\"{name}\"")
    }

    /// The rows of a query. `numbered` are tables without a primary key that it names by
    /// [`Self::numbered_name`]; they have a further column of the given name.
    ///
    /// # Errors
    /// As [`Self::columns`]. Later errors come in the stream; [`Error::of_run`] converts them.
    pub fn rows<'a>(
        &'a self,
        tables: &'a Arc<Tables>,
        query: &'a str,
        numbered_tables: &'a [(String, String)],
        number: &'a str,
    ) -> BoxFuture<'a, Result<SendableRecordBatchStream>> {
        Box::pin(async move {
            let planner = self.planner(tables);
            for (schema, name) in numbered_tables {
                let table = tables.table_named(schema, name).ok_or_else(|| {
                    Error::new(
                        SqlState::UndefinedTable,
                        format!("relation \"{name}\" does not exist"),
                    )
                })?;
                let table = StoredTable::with_row_number(table.clone(), number);
                planner.add(&numbered(schema, name), Arc::new(table));
            }
            let plan = self.logical(&planner, query).await?;
            planner.stream(&plan, query).await
        })
    }

    async fn logical(&self, planner: &Planner, query: &str) -> Result<LogicalPlan> {
        let statement = parse_one(query)?;
        if !crate::session::client::is_query(&statement) {
            return Err(Error::new(
                SqlState::SyntaxError,
                "it is no query: it does not begin with SELECT, VALUES or WITH",
            ));
        }
        let plan = planner.logical(statement, query).await?;
        crate::session::client::refuse_changes(&plan)?;
        match planner.reads_graphs_or_files() {
            true => Err(Error::unsupported("files in a mapping")),
            false => Ok(plan),
        }
    }
}

fn numbered(schema: &str, name: &str) -> String {
    format!("{schema}.{name}")
}

fn columns_of(plan: &LogicalPlan) -> Result<Vec<(String, ColumnType)>> {
    let fields = plan.schema().fields().iter();
    let fields = fields.map(|field| {
        let column_type = type_of_values(field.name(), field.data_type())?;
        Ok((field.name().clone(), column_type))
    });
    fields.collect()
}
