//! The planner: from a statement to a plan over one state of the tables.
//!
//! A [`Planner`] sees the tables of a snapshot or of a transaction, the views over them (their
//! queries are planned in the place of their names), and what a statement needs beside these, such
//! as the rows that it returns, under names that no text can write.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemTable, MemoryCatalogProviderList, SchemaProvider,
    TableProvider,
};
use datafusion::common::{DFSchema, DataFusionError, SchemaError, TableReference};
use datafusion::datasource::ViewTable;
use datafusion::execution::{
    FunctionRegistry, SendableRecordBatchStream, SessionState, TaskContext,
};
use datafusion::logical_expr::{LogicalPlan, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner as _};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;
use orrery_postgres_tables::StatementSnapshots;
use orrery_storage::table::{RelationId, Tables, ViewDefinition};
use parking_lot::RwLock;

use crate::catalog::described::{self, DESCRIBED, described};
use crate::catalog::lookup::shown;
use crate::catalog::pg_catalog::{self, Needs, SCHEMAS, Seen, of_catalog, of_session, rewrite};
use crate::catalog::provider::catalog;
use crate::catalog::scope::{Sight, seen_by};
use crate::errors::suggested::with_suggestion;
use crate::execute::stopping::StopPlace;
use crate::execute::threads::{on_own_thread, waiting_on_own_thread};
use crate::facts::SessionFacts;
use crate::files::{ExternalTable, file_table, is_external, named_files, rename_files};
use crate::functions::offered::{may_plan_long, may_take_long};
use crate::graph::{
    ClassFunction, ClassesFunction, PropertiesFunction, QUADS, SeenGraphs, SparqlFunction,
    TextSearchFunction, declare_columns, quads,
};
use crate::mapped::is_mapped;
use crate::names::{CATALOG, SCHEMA, WORK_SCHEMA};
use crate::optimizer::join_order::ordered;
use crate::parse::number_texts::with_types_of_numbers;
use crate::parse::plan_size::refuse_large;
use crate::parse::statement::{OldTable, parse_one};
use crate::plan::counted::{Analyzed, counted_stream, task_of};
use crate::plan::counted_sets::counted;
use crate::plan::first_rows::with_first_rows;
use crate::plan::long_planning::{is_large_plan, is_large_statement};
use crate::semantics::casts::keep_casts_apart;
use crate::semantics::column_names::{name_columns, shown_rows};
use crate::semantics::distinct_on::with_keys_in_order;
use crate::semantics::lone_selects::without_lone_selects;
use crate::semantics::rows::with_rows_compared;
use crate::semantics::rules::settled;
use crate::semantics::using::name_used_columns;
use crate::transactions::old_states::OldStates;
use crate::values::times::{with_local_times, with_precisions};
use crate::{Error, Result, SqlState};
use orrery_table_scan::{ScansInShares, StoredTable};

/// Views may be made of views so often.
const VIEWS_DEEP_MAX: usize = 32;

/// Plans over one state of the tables.
pub(crate) struct Planner {
    state: SessionState,
    tables: Arc<Tables>,
    extra: Arc<Extra>,
    /// Whether a plan reads a graph, or files: it holds the state that it was made over.
    reads_graphs: Arc<AtomicBool>,
    /// Whether a plan reads tables of other servers.
    reads_foreign: Arc<AtomicBool>,
    old_states: Option<OldStates>,
    sight: Option<Arc<Sight>>,
    /// Whether nobody else waits for the thread that plans.
    has_own_thread: bool,
}

/// Tables of one statement, by schema and name.
#[derive(Default)]
struct Extra {
    /// What a statement about the catalog sees.
    catalog: RwLock<Option<Arc<Seen>>>,
    tables: RwLock<HashMap<(String, String), Arc<dyn TableProvider>>>,
}

impl Planner {
    /// A planner with the settings and functions of a state, over these tables.
    pub(crate) fn new(
        mut state: SessionState,
        tables: &Arc<Tables>,
        graphs: Option<SeenGraphs>,
    ) -> Self {
        let extra = Arc::new(Extra::default());
        let reads_graphs = Arc::new(AtomicBool::new(false));
        if let Some(graphs) = &graphs {
            let function = SparqlFunction {
                graphs: graphs.clone(),
                is_called: Arc::clone(&reads_graphs),
            };
            state.register_udtf("class", Arc::new(ClassFunction(function.clone())));
            state.register_udtf("classes", Arc::new(ClassesFunction(function.clone())));
            let properties = PropertiesFunction(function.clone());
            state.register_udtf("class_properties", Arc::new(properties));
            let texts = TextSearchFunction(function.clone());
            state.register_udtf("text_search", Arc::new(texts));
            state.register_udtf("sparql", Arc::new(function));
        }
        let seen = SeenCatalog {
            stored: catalog(tables),
            tables: Arc::clone(tables),
            extra: Arc::clone(&extra),
            graphs: graphs.map(Arc::new),
            reads_graphs: Arc::clone(&reads_graphs),
        };
        let list = MemoryCatalogProviderList::new();
        list.register_catalog(CATALOG.to_owned(), Arc::new(seen));
        state.register_catalog_list(Arc::new(list));
        // All that a statement reads of one other server is of one state.
        let snapshots = Arc::new(StatementSnapshots::default());
        state.config_mut().set_extension(snapshots);
        Self {
            state,
            tables: Arc::clone(tables),
            extra,
            reads_graphs,
            reads_foreign: Arc::default(),
            old_states: None,
            sight: None,
            has_own_thread: false,
        }
    }

    /// The same that knows old states, as somebody sees them.
    #[must_use]
    pub(crate) fn with_old_states(
        mut self,
        old_states: Option<OldStates>,
        sight: Option<Arc<Sight>>,
    ) -> Self {
        self.old_states = old_states;
        self.sight = sight;
        self
    }

    /// Whether what was planned so far reads a graph, files or other servers: such a plan is not to
    /// be kept.
    pub(crate) fn reads_graphs(&self) -> bool {
        self.reads_graphs_or_files() || self.reads_foreign.load(Ordering::Relaxed)
    }

    /// The same without other servers.
    pub(crate) fn reads_graphs_or_files(&self) -> bool {
        self.reads_graphs.load(Ordering::Relaxed)
    }

    /// Gives a table to this planner alone; the name under which a statement has it.
    pub(crate) fn add(&self, name: &str, table: Arc<dyn TableProvider>) -> ast::ObjectName {
        let place = (WORK_SCHEMA.to_owned(), name.to_owned());
        self.extra.tables.write().insert(place, table);
        let part = |name: &str| ast::Ident::with_quote('"', name);
        ast::ObjectName::from(vec![part(WORK_SCHEMA), part(name)])
    }

    /// The same for rows in memory.
    pub(crate) fn add_rows(
        &self,
        name: &str,
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
    ) -> Result<ast::ObjectName> {
        let table = MemTable::try_new(schema, vec![rows]);
        let table = table.map_err(|error| Error::of_run(&error))?;
        Ok(self.add(name, Arc::new(table)))
    }

    /// The logical plan of a statement. `text` is what it was parsed from.
    pub(crate) async fn logical(&self, statement: Statement, text: &str) -> Result<LogicalPlan> {
        self.logical_at(statement, text, 0).await
    }

    /// The same for a query that was put together from parts of a text.
    pub(crate) async fn query(&self, query: ast::Query, text: &str) -> Result<LogicalPlan> {
        let statement = ast::Statement::Query(Box::new(query));
        self.logical(Statement::Statement(Box::new(statement)), text)
            .await
    }

    fn logical_at<'p>(
        &'p self,
        mut statement: Statement,
        text: &'p str,
        depth: usize,
    ) -> futures::future::BoxFuture<'p, Result<LogicalPlan>> {
        if !self.has_own_thread && is_large_statement(&statement) {
            let mut planner = self.with_state(self.state.clone());
            planner.has_own_thread = true;
            let text = text.to_owned();
            return Box::pin(waiting_on_own_thread(move || async move {
                planner.logical_at(statement, &text, depth).await
            }));
        }
        if let Some(parsed) = parsed(&mut statement) {
            with_precisions(parsed);
            with_keys_in_order(parsed);
        }
        Box::pin(async move {
            let of_engine = |error: DataFusionError| {
                with_suggestion(Error::of_engine(&error, text), &self.state)
            };
            name_columns(&mut statement);
            if let Some(parsed) = parsed(&mut statement) {
                without_lone_selects(parsed);
                with_rows_compared(parsed)?;
                // Behind the names of columns, to which a number is one.
                with_types_of_numbers(parsed);
                with_local_times(parsed);
                keep_casts_apart(parsed);
                name_used_columns(parsed, &|name| self.columns_of(name))?;
            }
            let needs = rewrite(&mut statement);
            declare_columns(&mut statement)?;
            let mut files = Vec::new();
            for name in named_files(&statement) {
                let table = file_table(&self.state, &name).await?;
                self.reads_graphs.store(true, Ordering::Relaxed);
                files.push((name.clone(), self.add(&name, table)));
            }
            rename_files(&mut statement, &files);
            let named = self.state.resolve_table_references(&statement);
            for reference in named.map_err(of_engine)? {
                let schema = reference.schema().unwrap_or(SCHEMA);
                match OldTable::of(schema, reference.table()) {
                    Some(old) => self.add_old(&old, reference.table()).await?,
                    None => self.add_view(&reference, depth).await?,
                }
            }
            let plan = match needs.is_anything() {
                true => {
                    let state = self.with_catalog(needs, depth).await?;
                    state.statement_to_plan(statement).await
                }
                false => self.state.statement_to_plan(statement).await,
            };
            let plan = plan
                .and_then(counted)
                .and_then(with_first_rows)
                .map_err(of_engine)?;
            refuse_large(&plan)?;
            Ok(plan)
        })
    }

    /// The columns of a stored table, by its name in a text.
    fn columns_of(&self, name: &ast::ObjectName) -> Option<Vec<String>> {
        let reference = object_name_to_table_reference(name.clone(), true).ok()?;
        let schema = reference.schema().unwrap_or(SCHEMA);
        let table = self.tables.table_named(schema, reference.table())?;
        let columns = table.definition().columns.iter();
        Some(columns.map(|column| column.name.clone()).collect())
    }

    /// Whether no table is hidden.
    fn shows_all_tables(&self) -> bool {
        let sight = self.sight.as_ref();
        sight.is_none_or(|sight| sight.scope.reads.is_none())
    }

    /// What plans a statement about the session or the catalog: with the functions that it asks
    /// for, and the catalog's tables.
    async fn with_catalog(&self, needs: Needs, depth: usize) -> Result<SessionState> {
        let mut state = self.state.clone();
        let facts = SessionFacts::of(state.config());
        let mut functions = of_session(&facts);
        if needs.catalog {
            // It shows settings, too.
            self.reads_graphs.store(true, Ordering::Relaxed);
            // A view over the catalog has no columns there while it is itself planned.
            let views = match needs.columns && depth == 0 {
                true => self.columns_of_views().await,
                false => HashMap::new(),
            };
            let settings = facts.settings.lock().all();
            let seen = Arc::new(Seen::new(
                &self.tables,
                views,
                settings,
                &facts.user,
                self.shows_all_tables(),
            ));
            functions.extend(of_catalog(&seen));
            *self.extra.catalog.write() = Some(seen);
        }
        for function in functions {
            let known = state.register_udf(Arc::new(function));
            known.map_err(|error| Error::of_run(&error))?;
        }
        Ok(state)
    }

    /// The columns of views and external tables, of those that can be planned now.
    async fn columns_of_views(&self) -> HashMap<RelationId, SchemaRef> {
        let mut columns = HashMap::new();
        for view in self.tables.views().filter(|it| !is_mapped(&it.query)) {
            let reference = TableReference::partial(view.schema.as_str(), view.name.as_str());
            if let Err(error) = self.add_view(&reference, 0).await {
                tracing::debug!("the columns of view {} are not known: {error}", view.name);
            }
            let place = (view.schema.clone(), view.name.clone());
            if let Some(table) = self.extra.tables.read().get(&place) {
                columns.insert(view.id, table.schema());
            }
        }
        columns
    }

    /// A table as it was, under the name that stands for it.
    async fn add_old(&self, old: &OldTable, name: &str) -> Result<()> {
        let states = self.old_states.as_ref();
        let states = states.ok_or_else(|| Error::unsupported("FOR SYSTEM_TIME here"))?;
        let state = states.state(&old.at).await?;
        let tables = &seen_by(self.sight.as_ref(), state.tables());
        let Some(table) = tables.table_named(&old.schema, &old.table) else {
            if tables.view_named(&old.schema, &old.table).is_some() {
                return Err(Error::unsupported("FOR SYSTEM_TIME with a view"));
            }
            let name = shown(&old.schema, &old.table);
            let message = format!(
                "relation \"{name}\" does not exist as of commit {}",
                state.commit()
            );
            return Err(Error::new(SqlState::UndefinedTable, message));
        };
        // What a time means may be another state tomorrow.
        self.reads_graphs.store(true, Ordering::Relaxed);
        self.add(name, Arc::new(StoredTable::among(table.clone(), tables)));
        Ok(())
    }

    /// Plans the view of this name, if there is one.
    async fn add_view(&self, reference: &TableReference, depth: usize) -> Result<()> {
        let schema = reference.schema().unwrap_or(SCHEMA);
        let Some(view) = self.tables.view_named(schema, reference.table()) else {
            return Ok(());
        };
        let place = (schema.to_owned(), view.name.clone());
        if self.extra.tables.read().contains_key(&place) {
            return Ok(());
        }
        if depth >= VIEWS_DEEP_MAX {
            return Err(Error::new(
                SqlState::StatementTooComplex,
                format!("views are nested more than {VIEWS_DEEP_MAX} deep"),
            ));
        }
        let table: Arc<dyn TableProvider> = match is_external(&view.query) {
            true => {
                let table = ExternalTable::parse(&view.query)?;
                let is_read = match table.is_foreign() {
                    true => &self.reads_foreign,
                    false => &self.reads_graphs,
                };
                is_read.store(true, Ordering::Relaxed);
                table.provider(&self.state).await?
            }
            false => {
                let plan = self.plan_of_view(view, depth + 1).await?;
                Arc::new(ViewTable::new(plan, Some(view.query.clone())))
            }
        };
        self.extra.tables.write().insert(place, table);
        Ok(())
    }

    /// The plan of a view's query.
    pub(crate) async fn view(&self, view: &ViewDefinition) -> Result<LogicalPlan> {
        self.plan_of_view(view, 1).await
    }

    async fn plan_of_view(&self, view: &ViewDefinition, depth: usize) -> Result<LogicalPlan> {
        let statement = parse_one(&view.query)?;
        let plan = self.logical_at(statement, &view.query, depth).await;
        // Places are in the view's text, not in that of the statement.
        let plan = plan.map_err(|error| Error {
            position: None,
            ..error
        })?;
        named_columns(plan, &view.columns)
    }

    /// The same with other settings.
    fn with_state(&self, state: SessionState) -> Self {
        Self {
            state,
            tables: Arc::clone(&self.tables),
            extra: Arc::clone(&self.extra),
            reads_graphs: Arc::clone(&self.reads_graphs),
            reads_foreign: Arc::clone(&self.reads_foreign),
            old_states: self.old_states.clone(),
            sight: self.sight.clone(),
            has_own_thread: self.has_own_thread,
        }
    }

    /// One that makes plans of one partition, whose rows come in the order of their source.
    pub(crate) fn in_one_partition(&self) -> Self {
        let mut state = self.state.clone();
        state.config_mut().options_mut().execution.target_partitions = 1;
        self.with_state(state)
    }

    /// One that makes plans of so many partitions, which have shares of the rows of stored tables
    /// and may run in different processes.
    pub(crate) fn in_shares(&self, partitions: usize) -> Self {
        let mut state = self.state.clone();
        let config = state.config_mut();
        config.options_mut().execution.target_partitions = partitions;
        // Rows are spread by their shares.
        config
            .options_mut()
            .optimizer
            .enable_round_robin_repartition = false;
        config.set_extension(Arc::new(ScansInShares));
        self.with_state(state)
    }

    /// The optimized plan of a query, with its joins in order; physical plans for different numbers
    /// of partitions can be made of it. The first plan that a planner optimizes numbers the names
    /// of common subexpressions from the start: two planners that optimize the same plan use the
    /// same names.
    pub(crate) fn optimized<'a>(
        &'a self,
        plan: &'a LogicalPlan,
        text: &'a str,
    ) -> BoxFuture<'a, Result<LogicalPlan>> {
        Box::pin(async move {
            let optimized = changed(plan, &self.state, |plan, state| {
                let optimized = state.optimize(plan);
                optimized.and_then(|plan| ordered(plan, state))
            });
            let optimized = optimized.await?;
            optimized.map_err(|error| of_planning(&error, text))
        })
    }

    /// The physical plan of a query.
    pub(crate) async fn physical(
        &self,
        plan: &LogicalPlan,
        text: &str,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.physical_of(&self.optimized(plan, text).await?, text)
            .await
    }

    /// The physical plan of a query that is optimized, or of a subquery in it.
    pub(crate) fn physical_of<'a>(
        &'a self,
        optimized: &'a LogicalPlan,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move {
            let planner = DefaultPhysicalPlanner::default();
            let physical = if is_large_plan(optimized) {
                let (state, plan) = (StopPlace::within(&self.state), optimized.clone());
                let physical = waiting_on_own_thread(move || async move {
                    Ok(planner.create_physical_plan(&plan, &state).await)
                });
                physical.await?
            } else if may_take_long(optimized) {
                let state = StopPlace::within(&self.state);
                planner.create_physical_plan(optimized, &state).await
            } else {
                planner.create_physical_plan(optimized, &self.state).await
            };
            physical.map_err(|error| of_planning(&error, text))
        })
    }

    /// What runs plans.
    pub(crate) fn task(&self) -> Arc<TaskContext> {
        task_of(&self.state)
    }

    /// Begins to run a query.
    pub(crate) async fn stream(
        &self,
        plan: &LogicalPlan,
        text: &str,
    ) -> Result<SendableRecordBatchStream> {
        let is_analyzed = matches!(plan, LogicalPlan::Analyze(_));
        let plan = self.physical(plan, text).await?;
        self.started(plan, is_analyzed)
    }

    /// Begins to run a physical plan.
    pub(crate) fn started(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        is_analyzed: bool,
    ) -> Result<SendableRecordBatchStream> {
        let task = self.task();
        let analyzed = is_analyzed.then(|| Analyzed::new(&plan, &task));
        let rows = counted_stream(plan, task).map(shown_rows);
        let rows = rows.map_err(|error| Error::of_run(&error))?;
        Ok(match analyzed {
            Some(analyzed) => analyzed.behind(rows),
            None => rows,
        })
    }
}

/// What optimizers make of a plan. What is large, or has functions of constants that may take long,
/// is on a thread of its own, and ends when what is returned is dropped.
pub(crate) async fn changed(
    plan: &LogicalPlan,
    state: &SessionState,
    change: impl FnOnce(&LogicalPlan, &SessionState) -> Result<LogicalPlan, DataFusionError>
    + Send
    + 'static,
) -> Result<Result<LogicalPlan, DataFusionError>> {
    if !(is_large_plan(plan) || may_plan_long(plan)) {
        return Ok(change(plan, state));
    }
    let (state, plan) = (state.clone(), plan.clone());
    on_own_thread(move || Ok(change(&plan, &state))).await
}

fn of_planning(error: &DataFusionError, text: &str) -> Error {
    match error.find_root() {
        // The text's names are known by now: it is one that the optimizer did not bring to where it
        // is.
        DataFusionError::SchemaError(of_schema, _)
            if matches!(**of_schema, SchemaError::FieldNotFound { .. }) =>
        {
            Error::unsupported("LATERAL, or a subquery about the row at hand, in this place")
        }
        DataFusionError::NotImplemented(words) if words.contains("OuterReferenceColumn") => {
            Error::unsupported("LATERAL, or a subquery about the row at hand, in this place")
        }
        DataFusionError::NotImplemented(words)
            if words.starts_with("Physical plan does not support logical expression") =>
        {
            Error::unsupported("EXISTS, IN or another subquery in this place")
        }
        DataFusionError::Plan(words) if words.contains("__correlated_sq") => {
            Error::unsupported("LATERAL within a subquery, in this place")
        }
        _ => Error::of_engine(error, text),
    }
}

/// What the planner is given, also below EXPLAIN.
fn parsed(statement: &mut Statement) -> Option<&mut ast::Statement> {
    match statement {
        Statement::Explain(explain) => parsed(&mut explain.statement),
        Statement::Statement(parsed) => Some(parsed),
        _ => None,
    }
}

/// Computes an expression over the columns of one table.
pub(crate) fn expression(
    state: &SessionState,
    expr: &ast::Expr,
    schema: &DFSchema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let mut expr = expr.clone();
    with_precisions(&mut expr);
    with_rows_compared(&mut expr)?;
    with_types_of_numbers(&mut expr);
    with_local_times(&mut expr);
    let written = ast::ExprWithAlias { expr, alias: None };
    let compile = || -> Result<_, DataFusionError> {
        let expr = state.create_logical_expr_from_sql_expr(written, schema)?;
        state.create_physical_expr(settled(state, expr, schema)?, schema)
    };
    compile().map_err(|error| with_suggestion(Error::of_run(&error), state))
}

/// A plan whose columns have other names, as far as there are names.
pub(crate) fn named_columns(plan: LogicalPlan, names: &[String]) -> Result<LogicalPlan> {
    use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
    if names.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    let columns = columns.into_iter().enumerate().map(|(place, column)| {
        let name = names.get(place).cloned();
        let name = name.unwrap_or_else(|| column.name.clone());
        Expr::Column(column).alias(name)
    });
    let columns: Vec<Expr> = columns.collect();
    let named = LogicalPlanBuilder::from(plan)
        .project(columns)
        .and_then(LogicalPlanBuilder::build);
    named.map_err(|error| Error::of_run(&error))
}

/// Stored tables, views, and what the statement needs.
struct SeenCatalog {
    stored: Arc<dyn CatalogProvider>,
    tables: Arc<Tables>,
    extra: Arc<Extra>,
    graphs: Option<Arc<SeenGraphs>>,
    reads_graphs: Arc<AtomicBool>,
}

/// One schema of it.
struct SeenSchema {
    name: String,
    stored: Option<Arc<dyn SchemaProvider>>,
    tables: Arc<Tables>,
    extra: Arc<Extra>,
    graphs: Option<Arc<SeenGraphs>>,
    reads_graphs: Arc<AtomicBool>,
}

impl fmt::Debug for SeenCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenCatalog").finish_non_exhaustive()
    }
}

impl fmt::Debug for SeenSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeenSchema")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl CatalogProvider for SeenCatalog {
    fn schema_names(&self) -> Vec<String> {
        let stored = self.stored.schema_names().into_iter();
        stored.chain(SCHEMAS.map(str::to_owned)).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let stored = self.stored.schema(name);
        let is_ours = matches!(name, WORK_SCHEMA | DESCRIBED) || SCHEMAS.contains(&name);
        (stored.is_some() || is_ours).then(|| {
            Arc::new(SeenSchema {
                name: name.to_owned(),
                stored,
                tables: Arc::clone(&self.tables),
                extra: Arc::clone(&self.extra),
                graphs: self.graphs.clone(),
                reads_graphs: Arc::clone(&self.reads_graphs),
            }) as Arc<dyn SchemaProvider>
        })
    }
}

impl SeenSchema {
    /// The quads, where no table has their name.
    fn quads(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let graphs = self.graphs.as_ref().filter(|_| self.has_quads(name))?;
        self.reads_graphs.store(true, Ordering::Relaxed);
        Some(Arc::new(quads(graphs)))
    }

    fn has_quads(&self, name: &str) -> bool {
        self.graphs.is_some() && self.name == SCHEMA && name == QUADS
    }

    /// A table of the catalog: also without its schema, where no other has the name.
    fn of_catalog(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let schema = match self.name == SCHEMA {
            true => SCHEMAS[0],
            false => self.name.as_str(),
        };
        match &*self.extra.catalog.read() {
            Some(seen) => pg_catalog::table(schema, name, seen),
            None => Ok(None),
        }
    }

    fn extra(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let place = (self.name.clone(), name.to_owned());
        self.extra.tables.read().get(&place).cloned()
    }
}

#[async_trait]
impl SchemaProvider for SeenSchema {
    fn table_names(&self) -> Vec<String> {
        let stored = self.stored.as_ref().map(|stored| stored.table_names());
        let views = self.tables.views().filter(|view| view.schema == self.name);
        let views = views.map(|view| view.name.clone());
        stored.into_iter().flatten().chain(views).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let found = match (self.extra(name), &self.stored) {
            (Some(extra), _) => Some(extra),
            (None, Some(stored)) => stored.table(name).await?,
            (None, None) if self.name == DESCRIBED => described(&self.tables, name)?,
            (None, None) => None,
        };
        match found.or_else(|| self.quads(name)) {
            Some(found) => Ok(Some(found)),
            None => self.of_catalog(name),
        }
    }

    /// A view's is known without its plan, which is made for the statements alone that name it.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>, DataFusionError> {
        if let Some(view) = self.tables.view_named(&self.name, name) {
            return Ok(Some(match is_external(&view.query) {
                true => TableType::Base,
                false => TableType::View,
            }));
        }
        let table = self.table(name).await?;
        Ok(table.map(|table| table.table_type()))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.extra(name).is_some()
            || self.tables.view_named(&self.name, name).is_some()
            || self.stored.as_ref().is_some_and(|it| it.table_exist(name))
            || self.has_quads(name)
            || (self.name == DESCRIBED && described::NAMES.contains(&name))
    }
}
