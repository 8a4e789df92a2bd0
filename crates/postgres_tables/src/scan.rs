//! The plan node that scans a foreign table.
//!
//! ```text
//!   first poll -> hints -> connection -> [snapshot] -> prepare: columns of the types that were defined? -> run -> rows -> batches
//! ```
//!
//! One partition. It begins at the first poll, when the other side of a join above is there, whose
//! keys then go along (`hints`). Rows are read no faster than batches are asked for, and a batch
//! has a bound in rows and in bytes. When it is dropped early the source's statement is cancelled.
//! An end of rows is one only if the source said so.

use orrery_plan_node::node_methods;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, RecordOutput};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, RowStream, Statement};

use crate::access::ForeignAccess;
use crate::address::Server;
use crate::columns::ForeignColumn;
use crate::error::Error;
use crate::hints::conditions;
use crate::lease::Lease;
use crate::snapshots::Snapshot;
use crate::statement::Selection;
use crate::values::Values;

/// A batch ends when its values have so many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Memory that reading takes: a batch, and what the connection has read ahead.
const READING_BYTES: usize = 4 << 20;
/// A statement that gets longer by its hints is sent without them.
const HINTS_BYTES_MAX: usize = 64 << 10;

/// See the module.
#[derive(Clone)]
pub(crate) struct ForeignExec {
    table: Arc<Asked>,
    schema: SchemaRef,
    rows: Option<usize>,
    /// Filters over the schema that operators above change while they run.
    hints: Vec<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is asked, and whom.
struct Asked {
    name: String,
    server: Arc<Server>,
    access: ForeignAccess,
    snapshot: Option<Arc<Snapshot>>,
    selection: Selection,
}

impl fmt::Debug for ForeignExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignExec")
            .field("table", &self.table.name)
            .field("selection", &self.table.selection)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl ForeignExec {
    pub(crate) fn new(
        name: String,
        server: Arc<Server>,
        access: ForeignAccess,
        snapshot: Option<Arc<Snapshot>>,
        selection: Selection,
        schema: SchemaRef,
        rows: Option<usize>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            table: Arc::new(Asked {
                name,
                server,
                access,
                snapshot,
                selection,
            }),
            schema,
            rows,
            hints: Vec::new(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl Asked {
    fn failed(&self, error: &tokio_postgres::Error) -> Error {
        Error::of_read(error, &self.name, &self.server.to_string())
    }

    /// Sends the statement; the rows that come, and the connection that they come from.
    async fn begin(&self, text: &str) -> crate::Result<(Pin<Box<RowStream>>, Lease, bool)> {
        let before = match &self.snapshot {
            Some(snapshot) => {
                snapshot
                    .begin(&self.access, &self.server, &self.name)
                    .await?
            }
            None => None,
        };
        let (lease, statement) = loop {
            let mut lease = self.access.lease(&self.server).await?;
            lease.is_busy = true;
            match prepare(lease.client()?, before.as_deref(), text).await {
                // The server has ended it while nobody read.
                Err(error) if lease.was_ended(&error) => {}
                Err(error) => return Err(self.failed(&error)),
                Ok(statement) => break (lease, statement),
            }
        };
        self.check(&statement)?;
        let rows = lease
            .client()?
            .query_raw(&statement, std::iter::empty::<&str>())
            .await
            .map_err(|error| self.failed(&error))?;
        Ok((Box::pin(rows), lease, before.is_some()))
    }

    /// Fails where a column is no longer of the type that it was defined with.
    fn check(&self, statement: &Statement) -> crate::Result<()> {
        let wanted = &self.selection.columns;
        if statement.columns().len() != wanted.len() {
            return Err(self.changed("it has other columns".to_owned()));
        }
        for (found, wanted) in statement.columns().iter().zip(wanted) {
            let expected = wanted.source.kind.wire_type();
            if *found.type_() != expected {
                return Err(self.changed(format!(
                    "the column \"{}\" was of the type {expected}, and is of {}",
                    wanted.name,
                    found.type_()
                )));
            }
        }
        Ok(())
    }

    fn changed(&self, words: String) -> Error {
        Error::Changed {
            table: self.name.clone(),
            words,
        }
    }
}

async fn prepare(
    client: &Client,
    before: Option<&str>,
    text: &str,
) -> Result<Statement, tokio_postgres::Error> {
    if let Some(before) = before {
        client.batch_execute(before).await?;
    }
    client.prepare(text).await
}

/// Reads batches.
struct Reader {
    table: Arc<Asked>,
    rows: Pin<Box<RowStream>>,
    lease: Lease,
    is_in_transaction: bool,
    values: Vec<Values>,
    schema: SchemaRef,
    batch_rows: usize,
    _memory: MemoryReservation,
}

impl Reader {
    /// The next batch; gives the connection back behind the last.
    async fn next(mut self) -> Result<Option<(RecordBatch, Option<Self>)>> {
        let (mut rows, mut bytes) = (0, 0);
        let mut is_end = false;
        while rows < self.batch_rows && bytes < BATCH_BYTES {
            let row = self.rows.try_next().await;
            let Some(row) = row.map_err(|error| self.table.failed(&error))? else {
                is_end = true;
                break;
            };
            for (place, values) in self.values.iter_mut().enumerate() {
                let column = &self.table.selection.columns[place];
                let raw = row.try_get::<_, Option<Raw<'_>>>(place);
                let raw = raw.map_err(|error| self.table.failed(&error))?;
                let raw = raw.map(|raw| raw.0);
                bytes += raw.map_or(0, <[u8]>::len);
                values
                    .push(raw)
                    .map_err(|words| self.table.wrong(column, words))?;
            }
            rows += 1;
            // Rows without columns have nothing that could be counted.
            bytes += 1;
        }
        let columns = self.values.iter_mut().map(Values::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        if !is_end {
            return Ok(Some((batch, Some(self))));
        }
        self.end().await;
        Ok((rows > 0).then_some((batch, None)))
    }

    async fn end(mut self) {
        let is_clean = match (self.is_in_transaction, self.lease.client()) {
            (true, Ok(client)) => client.batch_execute("ROLLBACK").await.is_ok(),
            (_, client) => client.is_ok(),
        };
        self.lease.is_busy = !is_clean;
        self.lease.give_back();
    }
}

impl Asked {
    fn wrong(&self, column: &ForeignColumn, words: String) -> Error {
        Error::Value {
            table: self.name.clone(),
            column: column.name.clone(),
            words,
        }
    }
}

/// A value's bytes, whatever its type: which it is was looked at before.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl DisplayAs for ForeignExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.table.selection.text(&[]);
        if matches!(format, DisplayFormatType::TreeRender) {
            return writeln!(f, "statement={text}");
        }
        write!(
            f,
            "ForeignExec: server={}, statement={text}",
            self.table.server
        )?;
        if !self.hints.is_empty() {
            let hints = self.hints.iter().map(ToString::to_string);
            write!(f, ", hints={}", hints.collect::<Vec<_>>().join(" AND "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ForeignExec {
    node_methods!("ForeignExec", leaf, own expressions);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for hint in &self.hints {
            if f(hint)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("reading of an external table");
        let memory = memory.register(context.memory_pool());
        let (table, hints) = (Arc::clone(&self.table), self.hints.clone());
        let batch_rows = context.session_config().batch_size();
        let counts = BaselineMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        // Begun at the first poll, when the other side of a join is there.
        let batches = futures::stream::once(async move {
            memory.try_grow(READING_BYTES)?;
            let columns = &table.selection.columns;
            let mut more = conditions(&hints, columns)?;
            if more.iter().map(String::len).sum::<usize>() > HINTS_BYTES_MAX {
                more.clear();
            }
            let text = table.selection.text(&more);
            tracing::debug!(server = %table.server, "statement of an external table: {text}");
            let (rows, lease, is_in_transaction) = table.begin(&text).await?;
            let reader = Reader {
                values: columns.iter().map(Values::new).collect(),
                table,
                rows,
                lease,
                is_in_transaction,
                schema,
                batch_rows,
                _memory: memory,
            };
            let batches = futures::stream::try_unfold(Some(reader), |reader| async move {
                match reader {
                    Some(reader) => reader.next().await,
                    None => Ok(None),
                }
            });
            Ok::<_, DataFusionError>(batches.map(move |batch| batch.record_output(&counts)))
        });
        let schema = Arc::clone(&self.schema);
        let batches = batches.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut told = Statistics::new_unknown(&self.schema);
        if let (None | Some(0), Some(rows)) = (args.partition(), self.rows) {
            told.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(told))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // Behind a limit are other rows than before it.
        if self.table.selection.limit.is_some() || pushed.parent_filters.is_empty() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let mut node = self.clone();
        let mut answers = Vec::with_capacity(pushed.parent_filters.len());
        for pushed in pushed.parent_filters {
            let filter = pushed.filter;
            if DynamicFilterTracking::classify(&filter).contains_dynamic_filter() {
                node.hints.push(filter);
            }
            answers.push(PushedDown::No);
        }
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        Ok(answer.with_updated_node(Arc::new(node)))
    }
}
