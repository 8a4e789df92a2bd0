//! The session of one client: database, settings, transaction, and its statements.
//!
//! Making a session makes the engine's settings ([`engine_state`]): that registers some four
//! hundred functions, which takes about a millisecond; it is for a connection, not for a query. A
//! session runs one statement at a time.

mod changing;
mod held;
mod preparing;
mod waiting;

pub use held::HeldValues;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;
use orrery_distributed::Workers;
use orrery_runtime::Runtime;
use orrery_storage::table::Tables;
use orrery_storage::{Asker, Database, ReadScope, Snapshot, Writer};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::answers::answer_max::{AnswerMax, BoundedAnswer};
use crate::answers::on_its_way::OnItsWay;
use crate::answers::outcome::Outcome;
use crate::answers::tag::Tag;
use crate::catalog::scope::{Sight, seen_by};
use crate::distributed::asked::Asked;
use crate::distributed::forward::ForwardCalls;
use crate::distributed::writer_source::WriterSource;
use crate::facts::SessionFacts;
use crate::graph::{GraphLimits, GraphSource, SeenGraphs};
use crate::mapped::GraphMappings;
use crate::parse::statement::{Statement, parse, parse_apart, parse_one};
use crate::plan::counted::{CountedAnswer, counted_stream, touches_of};
use crate::plan::engine_state::engine_state;
use crate::plan::planner::Planner;
use crate::plan::prepared::{Prepared, parameters_of};
use crate::semantics::column_names::{shown_columns, shown_rows};
use crate::session::kept::KeptStatements;
use crate::session::options::SessionOptions;
use crate::session::place::Place;
use crate::session::ruled::RuledScope;
use crate::settings::Settings;
use crate::transactions::block::{Answer, AtWork, Block, IdleMax, TransactionStatus, watch};
use crate::transactions::committing::Committing;
use crate::transactions::old_states::OldStates;
use crate::{Error, Result, SqlState, changes, definitions, mapped};

/// The session of one client; see the module.
#[derive(Clone)]
pub struct Session {
    pub(crate) state: SessionState,
    pub(crate) database: Arc<Database>,
    writer: WriterSource,
    pub(crate) options: SessionOptions,
    pub(crate) block: Arc<Mutex<Block>>,
    pub(crate) settings: Arc<Mutex<Settings>>,
    /// Statements by their names.
    pub(crate) kept: Arc<Mutex<KeptStatements>>,
    committing: Committing,
    pool: Arc<dyn MemoryPool>,
    memory_bytes: u64,
    graphs: Option<Arc<dyn GraphSource>>,
    mappings: Option<Arc<dyn GraphMappings>>,
    graph_limits: GraphLimits,
    turns: Arc<Semaphore>,
    /// What it may read and change, where that is not everything.
    pub(crate) sight: Option<Arc<Sight>>,
    /// How rules by query found that: their state is read in place of the newest.
    ruled: Option<Arc<RuledScope>>,
    /// How long the answer to a query may be.
    answer_max: Option<AnswerMax>,
    /// Those that large queries are divided among.
    pub(crate) processes: Option<Arc<Workers>>,
    /// What other processes, to which statements are forwarded, know the user by.
    passport: Option<Arc<str>>,
    /// Where the statement that runs computes.
    place: Arc<Mutex<Place>>,
    /// How many of its portals and cursors hold memory.
    waiting: Arc<AtomicUsize>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("database", &self.database.directory())
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

/// A query that is understood and can be run: once, for its operators keep what they build, and
/// filters that they find on the way.
#[derive(Debug)]
pub struct PlannedQuery {
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
}

impl Session {
    /// A session over a database; read-only without a writer.
    pub fn new(
        runtime: &Runtime,
        database: Arc<Database>,
        writer: Option<Writer>,
        options: SessionOptions,
    ) -> Self {
        let mut state = engine_state(runtime, &options.files, &options.foreign);
        let writer = WriterSource::Fixed(writer);
        let settings = Settings::of(&options.user, writer.standing()).shared();
        state
            .config_mut()
            .set_extension(SessionFacts::new(&settings, &options.user));
        Self {
            database,
            writer,
            options,
            block: Arc::default(),
            settings,
            kept: Arc::default(),
            committing: Committing::default(),
            pool: Arc::clone(&state.runtime_env().memory_pool),
            state,
            memory_bytes: runtime.memory_bytes(),
            graphs: None,
            mappings: None,
            graph_limits: GraphLimits::default(),
            turns: Arc::clone(runtime.turns()),
            sight: None,
            ruled: None,
            answer_max: None,
            processes: runtime.processes().cloned(),
            passport: None,
            place: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Sets the source of the writer.
    #[must_use]
    pub fn with_writer_of(mut self, source: WriterSource) -> Self {
        self.settings.lock().set_standing(source.standing());
        self.writer = source;
        self
    }

    /// Sets the source of `sparql('...')` and `quads`, which else do not exist.
    #[must_use]
    pub fn with_graphs(mut self, source: Arc<dyn GraphSource>) -> Self {
        self.graphs = Some(source);
        self
    }

    /// Sets the implementation of mapped graphs, which are else refused.
    #[must_use]
    pub fn with_mappings(mut self, mappings: Arc<dyn GraphMappings>) -> Self {
        self.mappings = Some(mappings);
        self
    }

    /// Sets the timeout of what statements read of graphs.
    #[must_use]
    pub fn with_graph_limits(mut self, limits: GraphLimits) -> Self {
        self.graph_limits = limits;
        self
    }

    /// Sets the user's passport: the text by which another process recognizes the user when it
    /// makes this session's changes.
    #[must_use]
    pub fn with_passport(mut self, passport: Option<Arc<str>>) -> Self {
        self.passport = passport;
        self
    }

    /// A session of another client over the same database, cheaper than a new one.
    #[must_use]
    pub fn another(&self) -> Self {
        self.another_with(self.options.clone())
    }

    /// Sets the user, and the name that commits carry.
    #[must_use]
    pub fn another_of(&self, user: &str, who: String) -> Self {
        self.another_with(SessionOptions {
            user: user.to_owned(),
            who,
            ..self.options.clone()
        })
    }

    fn another_with(&self, options: SessionOptions) -> Self {
        let settings = Settings::of(&options.user, self.writer.standing()).shared();
        let mut state = self.state.clone();
        let facts = SessionFacts::new(&settings, &options.user);
        state.config_mut().set_extension(facts);
        let mut another = Self {
            state,
            database: Arc::clone(&self.database),
            writer: self.writer.clone(),
            options,
            block: Arc::default(),
            settings,
            kept: Arc::default(),
            committing: Committing::default(),
            pool: Arc::clone(&self.pool),
            memory_bytes: self.memory_bytes,
            graphs: self.graphs.clone(),
            mappings: self.mappings.clone(),
            graph_limits: GraphLimits::default(),
            turns: Arc::clone(&self.turns),
            sight: self.sight.clone(),
            ruled: None,
            answer_max: None,
            processes: self.processes.clone(),
            passport: None,
            place: Arc::default(),
            waiting: Arc::default(),
        };
        // Who pays here has no part in it.
        another.set_spending(None);
        another
    }

    /// Parses a text into statements.
    ///
    /// # Errors
    /// When it is not SQL.
    pub fn statements(&self, text: &str) -> Result<Vec<Statement>> {
        Ok(statements_of(text, parse(text)?))
    }

    /// Parses a text into statements, a long one on a thread of its own.
    ///
    /// # Errors
    /// When it is not SQL.
    pub fn statements_apart<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<Statement>>> {
        Box::pin(async move { Ok(statements_of(text, parse_apart(text).await?)) })
    }

    /// Whether a transaction is open.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.block.lock().status()
    }

    /// Registers a statement whose rows are fetched in portions.
    ///
    /// # Errors
    /// When the transaction that it began in has failed since.
    pub fn go_on(&self) -> Result<()> {
        self.block.lock().note_statement()
    }

    /// Prepares a query over the current state.
    ///
    /// # Errors
    /// When the text is not SQL, names what is not there, or is no query.
    pub fn plan<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<PlannedQuery>> {
        Box::pin(async move {
            let statement = parse_one(text)?;
            let planner = self.planner(&self.seen()?);
            let plan = planner.logical(statement, text).await?;
            refuse_changes(&plan)?;
            Ok(PlannedQuery {
                plan: planner.physical(&plan, text).await?,
                task: planner.task(),
            })
        })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// When it names what is not there, breaks a constraint, is not supported, or fails as it runs.
    /// Its changes are undone then, and an open transaction has failed.
    pub fn execute<'a>(&'a self, statement: &'a Statement) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            let at_work = AtWork::new(&self.block);
            let done = self.run_statement(statement).await;
            drop(at_work);
            self.note_end(done.is_err());
            done
        })
    }

    /// The definitions that a statement would see now.
    ///
    /// # Errors
    /// When the open transaction has failed.
    pub fn tables(&self) -> Result<Arc<Tables>> {
        Ok(self.tables_in(&*self.looked_at()?))
    }

    /// The tables of a state that may be read.
    pub(crate) fn tables_in(&self, snapshot: &Snapshot) -> Arc<Tables> {
        seen_by(self.sight.as_ref(), snapshot.tables())
    }

    /// Opens a transaction as BEGIN does.
    pub fn begin_block(&self) {
        self.block.lock().begin();
        self.settings.lock().begin(false);
    }

    /// Ends the transaction as COMMIT or ROLLBACK do; the number of its commit, where it has made
    /// one here.
    ///
    /// # Errors
    /// When it cannot be committed; it is over then, too.
    pub fn end_block(&self, commits: bool) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async move {
            match commits {
                true => match self.commit().await? {
                    (TransactionStatus::Idle | TransactionStatus::Open, number) => Ok(number),
                    (TransactionStatus::Failed, _) => Err(Error::new(
                        SqlState::InFailedSqlTransaction,
                        "the transaction had failed, nothing of it was committed",
                    )),
                },
                false => {
                    self.block.lock().end();
                    self.settings.lock().end(false);
                    Ok(None)
                }
            }
        })
    }

    /// Whether a commit of this session has begun, to be looked at while its statements run.
    pub fn committing(&self) -> Committing {
        self.committing.clone()
    }

    /// Notes that something has failed outside of a statement: an open transaction has, then.
    pub fn fail(&self) {
        let mut block = self.block.lock();
        let number = block.number();
        block.fail_statement(number);
    }

    /// Runs a prepared statement with these values.
    ///
    /// # Errors
    /// As [`Self::execute`]; and when the number of values is not that of the parameters, or a
    /// value is not of its parameter's type.
    pub fn run<'a>(
        &'a self,
        prepared: &'a Prepared,
        values: &'a [ScalarValue],
    ) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            let at_work = AtWork::new(&self.block);
            let done = self.run_prepared(prepared, values).await;
            drop(at_work);
            self.note_end(done.is_err());
            done
        })
    }

    async fn run_prepared(&self, prepared: &Prepared, values: &[ScalarValue]) -> Result<Outcome> {
        let statement = &prepared.statement;
        if self.is_forwarded(statement) {
            self.block.lock().note_statement()?;
            let values = prepared.typed(values)?;
            let done = self.forwarded(statement, Some((prepared, &values))).await?;
            if let Some(outcome) = done {
                return Ok(outcome);
            }
        }
        match is_query(&statement.parsed) {
            true => self.run_query(prepared, values).await,
            false => self.run_statement(&prepared.with_values(values)?).await,
        }
    }

    /// After a statement: a block that is open has failed with it, and is looked after.
    fn note_end(&self, is_failed: bool) {
        if is_failed {
            let mut block = self.block.lock();
            let number = block.number();
            block.fail_statement(number);
        }
        if self.block.lock().number().is_some() {
            watch(&self.block, self.idle_max());
        }
    }

    /// How long its block may be open without a word.
    pub(crate) fn idle_max(&self) -> IdleMax {
        let wanted = self.settings.lock().idle_timeout();
        let max = self.options.idle_max;
        IdleMax {
            with_turn: wanted.map_or(max, |wanted| wanted.min(max)),
            without: wanted,
        }
    }

    pub(crate) fn run_statement<'a>(
        &'a self,
        statement: &'a Statement,
    ) -> BoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            // PREPARE has parameters without values; what EXECUTE runs is counted there.
            if let Some(done) = self.own(statement).await? {
                return Ok(done);
            }
            if parameters_of(statement)? > 0 {
                return Err(Error::new(
                    SqlState::UndefinedParameter,
                    "a parameter has no value: there is no parameter $1",
                ));
            }
            if let Parsed::Statement(parsed) = &statement.parsed {
                self.forward_savepoint(statement).await?;
                if let Some(done) = self.control(parsed).await? {
                    return Ok(Outcome::Done(done));
                }
            }
            self.block.lock().note_statement()?;
            if self.is_forwarded(statement)
                && let Some(outcome) = self.forwarded(statement, None).await?
            {
                self.note_touches(|| touches_of(&outcome));
                return Ok(outcome);
            }
            match &statement.parsed {
                Parsed::Statement(parsed) => match parsed.as_ref() {
                    ast::Statement::Copy { .. } => self.copy(parsed).await,
                    parsed if is_about_cursor(parsed) => {
                        let outcome = self.run_cursor(parsed, &statement.text).await?;
                        self.note_touches(|| touches_of(&outcome));
                        Ok(outcome)
                    }
                    parsed if changes::is_change(parsed) || definitions::is_definition(parsed) => {
                        self.change(parsed, &statement.text).await
                    }
                    parsed => match mapped::of(parsed) {
                        Some(graph) => self.mapped_graph(&graph).await,
                        None => self.query(statement.parsed.clone(), &statement.text).await,
                    },
                },
                Parsed::CreateExternalTable(external) => self.create_external(external).await,
                other => self.query(other.clone(), &statement.text).await,
            }
        })
    }

    /// Statements about transactions; `None` for any other.
    async fn control(&self, statement: &ast::Statement) -> Result<Option<Tag>> {
        use ast::Statement as Sql;
        let name = |name: &ast::Ident| crate::parse::identifiers::folded(name);
        Ok(Some(Tag::Words(match statement {
            Sql::StartTransaction {
                modes,
                begin,
                statements,
                exception,
                ..
            } if statements.is_empty() && exception.is_none() => {
                let mut block = self.block.lock();
                block.note_statement()?;
                let read_only =
                    ast::TransactionMode::AccessMode(ast::TransactionAccessMode::ReadOnly);
                block.begin();
                self.settings.lock().begin(modes.contains(&read_only));
                if *begin { "BEGIN" } else { "START TRANSACTION" }
            }
            Sql::Commit { chain: false, .. } => match self.commit().await?.0 {
                TransactionStatus::Failed => "ROLLBACK",
                TransactionStatus::Idle | TransactionStatus::Open => "COMMIT",
            },
            Sql::Rollback {
                chain: false,
                savepoint: None,
            } => {
                self.block.lock().end();
                self.settings.lock().end(false);
                "ROLLBACK"
            }
            Sql::Rollback {
                savepoint: Some(savepoint),
                ..
            } => {
                self.block.lock().roll_back_to(&name(savepoint)?)?;
                "ROLLBACK"
            }
            Sql::Savepoint { name: savepoint } => {
                let mut block = self.block.lock();
                block.note_statement()?;
                block.set_savepoint(name(savepoint)?)?;
                "SAVEPOINT"
            }
            Sql::ReleaseSavepoint { name: savepoint } => {
                let mut block = self.block.lock();
                block.note_statement()?;
                block.release(&name(savepoint)?)?;
                "RELEASE"
            }
            Sql::Set(ast::Set::SetTransaction {
                snapshot: Some(snapshot),
                ..
            }) => {
                self.read_old(&snapshot.value).await?;
                "SET"
            }
            _ => return Ok(None),
        })))
    }

    /// Lets the open transaction read the state that a value names: by the number of a commit, or
    /// by a time.
    async fn read_old(&self, named: &ast::Value) -> Result<()> {
        {
            let mut block = self.block.lock();
            block.note_statement()?;
            block.refuse_queries_before()?;
        }
        let text = match named {
            ast::Value::Number(number, _) => number.to_string(),
            other => other.clone().into_string().unwrap_or_default(),
        };
        let old = self.old_states().state(&text).await?;
        self.block.lock().read_old(old)?;
        self.settings.lock().set_read_only(true)
    }

    pub(crate) fn block(&self) -> &Mutex<Block> {
        &self.block
    }

    /// How whoever writes is asked, where that may be another process.
    pub(crate) fn writer_calls(&self) -> Option<Arc<dyn ForwardCalls>> {
        self.writer.calls()
    }

    /// Whether this process writes now.
    pub(crate) fn has_writer(&self) -> bool {
        self.writer.writer().is_some()
    }

    /// What another process knows the user by.
    pub(crate) fn passport(&self) -> Option<String> {
        self.passport.as_deref().map(str::to_owned)
    }

    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// What reads see.
    pub(crate) fn seen(&self) -> Result<Arc<Snapshot>> {
        self.block.lock().read(|| self.newest())
    }

    /// What a statement is prepared over: as [`Self::seen`], but the open transaction is not bound
    /// to it.
    pub(crate) fn looked_at(&self) -> Result<Arc<Snapshot>> {
        self.block.lock().look(|| self.newest())
    }

    fn newest(&self) -> Arc<Snapshot> {
        if let Some(ruled) = &self.ruled {
            return Arc::clone(&ruled.state);
        }
        // Where another process writes, this one follows it.
        if self.writer.writer().is_none()
            && let Err(error) = self.database.refresh()
        {
            tracing::warn!("what was committed meanwhile cannot be read: {error}");
        }
        self.database.snapshot()
    }

    /// The graphs of a state, as far as they are seen.
    fn graphs_in(
        &self,
        snapshot: &Arc<Snapshot>,
        sight: Option<&Arc<Sight>>,
        holds_turn: bool,
    ) -> Option<SeenGraphs> {
        Some(SeenGraphs {
            source: Arc::clone(self.graphs.as_ref()?),
            snapshot: Arc::clone(snapshot),
            limits: self.graph_limits.clone(),
            holds_turn,
            spending: self.spending(),
            scope: match sight {
                Some(sight) => sight.scope.graphs.clone(),
                None => ReadScope::all_graphs(Asker::Process),
            },
        })
    }

    pub(crate) fn planner(&self, snapshot: &Arc<Snapshot>) -> Planner {
        let mut state = self.state.clone();
        // `now()` is when this statement began.
        state.mark_start_execution();
        let holds_turn = self.block.lock().holds_turn();
        let graphs = self.graphs_in(snapshot, self.sight.as_ref(), holds_turn);
        let planner = Planner::new(state, &self.tables_in(snapshot), graphs);
        planner.with_old_states(Some(self.old_states()), self.sight.clone())
    }

    fn old_states(&self) -> OldStates {
        OldStates::new(&self.database, self.writer.writer().is_none())
    }

    async fn query(&self, statement: Parsed, text: &str) -> Result<Outcome> {
        let snapshot = self.seen()?;
        let planner = self.planner(&snapshot);
        let plan = planner.logical(statement, text).await?;
        refuse_changes(&plan)?;
        let asked = Asked::new(text, snapshot.commit());
        let stream = self.started(&planner, &plan, asked).await?;
        Ok(Outcome::Query(self.answer(stream)))
    }

    /// Begins to run a query, divided among processes if that pays.
    pub(crate) fn started<'a>(
        &'a self,
        planner: &'a Planner,
        plan: &'a LogicalPlan,
        asked: Asked<'a>,
    ) -> BoxFuture<'a, Result<SendableRecordBatchStream>> {
        Box::pin(async move {
            let is_analyzed = matches!(plan, LogicalPlan::Analyze(_));
            let optimized = planner.optimized(plan, asked.text).await?;
            let physical = planner.physical_of(&optimized, asked.text).await?;
            let plans = (plan, &optimized, &physical);
            let divided = self.divided(planner, plans, asked).await?;
            planner.started(divided.unwrap_or(physical), is_analyzed)
        })
    }

    /// The rows of a query for who asks: as many as they may have, and each is paid for. A failure
    /// is that of the open transaction.
    pub(crate) fn answer(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let rows = OnItsWay::new(self.bounded(rows), self.pool());
        self.failing(Box::pin(rows))
    }

    /// As many rows of a query as who asks may have.
    pub(crate) fn bounded(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        match &self.answer_max {
            Some(max) => Box::pin(BoundedAnswer::new(rows, max.clone())),
            None => rows,
        }
    }

    /// Rows each of which is paid for, and whose failure is that of the open transaction.
    pub(crate) fn failing(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let stream: SendableRecordBatchStream = match self.spending() {
            Some(spending) => Box::pin(CountedAnswer::new(stream, spending)),
            None => stream,
        };
        Box::pin(Answer::new(&self.block, stream))
    }
}

/// What a text was taken apart into.
fn statements_of(text: &str, parsed: VecDeque<Parsed>) -> Vec<Statement> {
    let whole: Arc<str> = text.into();
    let statements = parsed.into_iter().enumerate();
    let with_text = statements.map(|(place, parsed)| Statement {
        parsed,
        text: Arc::clone(&whole),
        place,
    });
    with_text.collect()
}

impl PlannedQuery {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        shown_columns(&self.plan.schema())
    }

    /// The physical plan.
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// Begins to run it. What fails later is in the stream, of which [`Error::of_run`] makes one of
    /// ours.
    ///
    /// # Errors
    /// When an operator cannot begin.
    pub fn run(self) -> Result<SendableRecordBatchStream> {
        let rows = counted_stream(self.plan, self.task);
        rows.map(shown_rows).map_err(|error| Error::of_run(&error))
    }
}

/// Settings of a transaction that ends, however its commit comes to an end.
struct EndingSettings<'a> {
    settings: &'a Mutex<Settings>,
    is_committed: bool,
}

impl Drop for EndingSettings<'_> {
    fn drop(&mut self) {
        self.settings.lock().end(self.is_committed);
    }
}

/// What a statement is called.
pub(crate) fn first_word(statement: &ast::Statement) -> String {
    let words = statement.to_string();
    let word = words.split_whitespace().next();
    word.unwrap_or_default().to_owned()
}

/// Whether a statement is a query, as far as its form tells.
pub(crate) fn is_query(statement: &Parsed) -> bool {
    matches!(statement, Parsed::Statement(parsed) if matches!(**parsed, ast::Statement::Query(_)))
}

/// `COMMIT`, `ROLLBACK` and `ROLLBACK TO`, which a transaction that has failed takes too.
fn ends_transaction(statement: &Parsed) -> bool {
    matches!(statement, Parsed::Statement(parsed) if matches!(
        parsed.as_ref(),
        ast::Statement::Commit { .. } | ast::Statement::Rollback { .. }
    ))
}

/// `DECLARE`, `FETCH`, `CLOSE`.
fn is_about_cursor(statement: &ast::Statement) -> bool {
    matches!(
        statement,
        ast::Statement::Declare { .. }
            | ast::Statement::Fetch { .. }
            | ast::Statement::Close { .. }
    )
}

/// Statements that change no rows and give none.
fn is_without_rows(statement: &ast::Statement) -> bool {
    use ast::Statement as Sql;
    definitions::is_definition(statement)
        || mapped::of(statement).is_some()
        || matches!(
            statement,
            Sql::Copy { .. }
                | Sql::Set(_)
                | Sql::Discard { .. }
                | Sql::Deallocate { .. }
                | Sql::Prepare { .. }
                | Sql::Execute { .. }
                | Sql::StartTransaction { .. }
                | Sql::Savepoint { .. }
                | Sql::ReleaseSavepoint { .. }
                | Sql::Declare { .. }
                | Sql::Close { .. }
        )
}

/// EXPLAIN ANALYZE runs what it explains, so the whole plan is looked at.
pub(crate) fn refuse_changes(plan: &LogicalPlan) -> Result<()> {
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
        return Err(Error::unsupported(what));
    }
    Ok(())
}
