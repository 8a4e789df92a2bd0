//! `COPY ... FROM`: parsing of bytes into table rows.
//!
//! ```text
//! bytes -> texts -> values, defaults, conditions, foreign keys --\
//!   few rows     held until the end is there, then inserted       +-- a row that is wrong: its line, its column
//!   many         the bulk load's rows: a file is read anew, what a client sends goes on from where it is
//! ```

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::sql::sqlparser::ast::{CopyOption, Ident, ObjectName};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use orrery_storage::table::Tables;
use parking_lot::Mutex;

use super::options::{Format, Options};
use crate::catalog::lookup::table_named;
use crate::catalog::scope::{RowsChange, Sight};
use crate::changes::change::{Change, pay_up_to};
use crate::changes::load::{load, load_once};
use crate::changes::references;
use crate::changes::rows::joined;
use crate::changes::{Maker, given_columns, insert_query, schema_of};
use crate::delimited::{Dialect, Reader, TextBatch, at_value, text_batches};
use crate::files::{FoundFile, READING_BYTES};
use crate::{Error, Result, SqlState};

/// From so many rows on they go to new files of the table.
const BULK_ROWS_MIN: usize = 100_000;
/// Rows are held up to this part of the memory, an eighth, until it is known whether they are many.
const HELD_SHARE: u64 = 8;
/// Batches of texts that are inserted together.
const BATCHES_AT_ONCE: usize = 4;

/// A statement that is understood.
#[derive(Debug, Clone)]
pub(crate) struct CopyFrom {
    table: ObjectName,
    columns: Vec<Ident>,
    options: Options,
}

/// Where its data are.
pub(crate) enum Source {
    /// A client has sent them.
    Client(BoxStream<'static, Result<Bytes>>),
    /// They are in files, one after the other.
    Files(Vec<FoundFile>),
}

impl CopyFrom {
    pub(crate) fn new(
        table: &ObjectName,
        columns: &[Ident],
        options: &[CopyOption],
    ) -> Result<Self> {
        Ok(Self {
            table: table.clone(),
            columns: columns.to_vec(),
            options: Options::of(options, false)?,
        })
    }

    /// The columns of a record; fails where the table is not there, or has no such columns.
    pub(crate) fn given(&self, tables: &Tables) -> Result<Vec<String>> {
        let definition = table_named(tables, &self.table)?.definition();
        given_columns(definition, &self.columns)
    }

    /// Fails unless its rows may come into the table.
    pub(crate) fn require_rows(
        &self,
        sight: &Sight,
        all: &Arc<Tables>,
        seen: &Tables,
    ) -> Result<()> {
        let definition = table_named(seen, &self.table)?.definition();
        sight.require_rows(all, definition, RowsChange::Come)
    }

    /// Whether the data are Parquet, which no client sends row by row.
    pub(crate) fn is_parquet(&self) -> bool {
        self.options.format == Format::Parquet
    }

    /// Inserts all rows, and says how many.
    pub(crate) async fn run(&self, change: &mut Change, source: Source) -> Result<u64> {
        let definition = Arc::clone(table_named(&*change.seen()?, &self.table)?.definition());
        change.require_rows(&definition, RowsChange::Come)?;
        let tables = change.tables()?;
        let given = given_columns(&definition, &self.columns)?;
        let maker = Maker::new(change.state(), &definition, &given)?;
        match (&self.options.format, source) {
            (Format::Parquet, Source::Client(_)) => Err(Error::unsupported(
                "COPY FROM STDIN with the format parquet",
            )),
            (Format::Parquet, Source::Files(files)) => {
                let plan = crate::files::parquet_plan(change.state(), &files).await?;
                if plan.schema().fields().len() != given.len() {
                    return Err(Error::new(
                        SqlState::BadCopyFileFormat,
                        format!(
                            "{} has {} columns, and {} are wanted",
                            files.first().map_or("the file", |file| file.name.as_str()),
                            plan.schema().fields().len(),
                            given.len()
                        ),
                    ));
                }
                insert_query(change, &maker, &plan, "").await
            }
            (Format::Delimited(dialect), source) => {
                let texts = Texts {
                    dialect: dialect.clone(),
                    never_null: self
                        .options
                        .force_not_null
                        .flags("FORCE_NOT_NULL", &given)?,
                    null_if_quoted: self.options.force_null.flags("FORCE_NULL", &given)?,
                    given,
                    rows: Rows::new(maker, tables),
                };
                texts.run(change, source).await
            }
        }
    }
}

/// What makes rows of texts and other values, and puts them into the table.
#[derive(Clone)]
pub(super) struct Rows {
    maker: Maker,
    /// As they are before the statement.
    tables: Arc<Tables>,
    schema: SchemaRef,
}

/// What reads them.
#[derive(Clone)]
struct Texts {
    dialect: Dialect,
    given: Vec<String>,
    never_null: Vec<bool>,
    null_if_quoted: Vec<bool>,
    rows: Rows,
}

pub(super) type Made = BoxStream<'static, Result<RecordBatch>>;

impl Texts {
    async fn run(&self, change: &mut Change, source: Source) -> Result<u64> {
        let reading = change.memory("reading of a COPY");
        let (mut made, files) = match source {
            Source::Client(bytes) => {
                let name = format!("COPY {}", self.rows.maker.definition.name);
                (self.made(bytes, &name, reading)?, None)
            }
            Source::Files(files) => (self.made_of_files(files.clone(), reading), Some(files)),
        };
        let held = self.rows.hold(change, &mut made).await?;
        match (held.is_many, files) {
            (false, _) => self.rows.insert(change, held.batches).await,
            (true, None) => self.rows.load_rest(change, held, made).await,
            (true, Some(files)) => {
                drop((held, made));
                self.load_files(change, files).await
            }
        }
    }

    /// Many of files, which can be read as often as wanted.
    async fn load_files(&self, change: &mut Change, files: Vec<FoundFile>) -> Result<u64> {
        let task = change.planner()?.task();
        let memory = change.memory("reading of a COPY");
        let threads = task.session_config().target_partitions().max(1);
        let plan = |is_one: bool| {
            let parts: Vec<Made> = match is_one {
                true => vec![self.made_of_files(files.clone(), memory.new_empty())],
                false => {
                    let share = files.len().div_ceil(threads).max(1);
                    let shares = files.chunks(share);
                    shares
                        .map(|files| self.made_of_files(files.to_vec(), memory.new_empty()))
                        .collect()
                }
            };
            let plan = self.rows.plan(parts);
            async move { plan }
        };
        let table = self.rows.maker.table;
        load(change.transaction_mut()?, table, plan, &task).await
    }

    fn made_of_files(&self, files: Vec<FoundFile>, memory: MemoryReservation) -> Made {
        let texts = self.clone();
        let streams = futures::stream::iter(files).map(move |file| {
            let name = format!("file {}", file.name);
            let memory = memory.new_empty();
            memory
                .try_grow(READING_BYTES)
                .map_err(|error| Error::of_run(&error))?;
            texts.made(file.bytes(), &name, memory)
        });
        streams.try_flatten().boxed()
    }

    fn made(
        &self,
        bytes: BoxStream<'static, Result<Bytes>>,
        name: &str,
        memory: MemoryReservation,
    ) -> Result<Made> {
        let places = (0..self.given.len()).map(Some).collect();
        let (dialect, given) = (self.dialect.clone(), self.given.clone());
        let reader = Reader::new(name.to_owned(), dialect, given, places)
            .with_nulls(self.never_null.clone(), self.null_if_quoted.clone());
        let (rows, name) = (self.rows.clone(), name.to_owned());
        let made = text_batches(bytes, reader, memory);
        Ok(made.map(move |texts| rows.made(&texts?, &name)).boxed())
    }
}

/// The first rows, until it is known whether they are many.
struct Held {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
    is_many: bool,
}

impl Rows {
    pub(super) fn new(maker: Maker, tables: Arc<Tables>) -> Self {
        Self {
            schema: schema_of(&maker.definition),
            tables,
            maker,
        }
    }

    /// Inserts rows that come once.
    pub(super) async fn take(&self, change: &mut Change, mut made: Made) -> Result<u64> {
        let held = self.hold(change, &mut made).await?;
        match held.is_many {
            false => self.insert(change, held.batches).await,
            true => self.load_rest(change, held, made).await,
        }
    }

    /// Holds rows until there are no more, or so many that they are to be loaded.
    async fn hold(&self, change: &Change, made: &mut Made) -> Result<Held> {
        let memory = change.memory("rows of a COPY");
        let of_memory = |error| Error::of_run(&error);
        let mut held = Held {
            batches: Vec::new(),
            memory,
            is_many: false,
        };
        let mut rows = 0;
        let can_be_bulk = !self.maker.refers_to_itself();
        while let Some(batch) = made.try_next().await? {
            rows += batch.num_rows();
            // Before more of it is held.
            change.pay_up_to(rows as u64)?;
            let grown = held.memory.try_grow(2 * batch.get_array_memory_size());
            held.batches.push(batch);
            // The sort wants the rest of the memory, and what is held counts until it has it.
            let is_much = held.memory.size() as u64 >= change.memory_bytes() / HELD_SHARE;
            if can_be_bulk && (rows >= BULK_ROWS_MIN || is_much || grown.is_err()) {
                held.is_many = true;
                return Ok(held);
            }
            grown.map_err(of_memory)?;
        }
        Ok(held)
    }

    /// Few rows: as `INSERT` does it.
    async fn insert(&self, change: &mut Change, held: Vec<RecordBatch>) -> Result<u64> {
        let mut count = 0;
        for batches in held.chunks(BATCHES_AT_ONCE) {
            let pieces = batches.iter().map(|batch| batch.columns().to_vec());
            let pieces: Vec<Vec<ArrayRef>> = pieces.collect();
            let table = self.maker.table;
            count += change
                .apply(move |transaction| Ok(transaction.insert_rows(table, &joined(&pieces)?)?))
                .await?;
        }
        if self.maker.refers_to_itself() {
            let tables = change.tables()?;
            for batch in &held {
                references::require(&tables, &self.maker.definition, batch.columns())?;
            }
        }
        Ok(count)
    }

    /// Many that come once: those that are held, and those that come.
    async fn load_rest(&self, change: &mut Change, held: Held, rest: Made) -> Result<u64> {
        let spending = change.spending();
        let mut rows: usize = held.batches.iter().map(RecordBatch::num_rows).sum();
        let rest = rest.map(move |batch| {
            let batch = batch?;
            rows += batch.num_rows();
            pay_up_to(spending.as_deref(), rows as u64)?;
            Ok(batch)
        });
        let memory = held.memory;
        let held = held.batches.into_iter().map(move |batch| {
            memory.shrink(memory.size().min(2 * batch.get_array_memory_size()));
            Ok(batch)
        });
        let held = futures::stream::iter(held);
        let plan = self.plan([held.chain(rest).boxed()])?;
        let task = change.planner()?.task();
        let table = self.maker.table;
        load_once(change.transaction_mut()?, table, plan, &task).await
    }

    /// Rows of the table out of a client's, if all of them are right.
    pub(super) fn assigned(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let made = RecordBatch::try_new(Arc::clone(&self.schema), self.attempt(batch)?);
        made.map_err(|error| Error::of_run(&error.into()))
    }

    /// Rows of the table, if all of them are right; otherwise why the first is not, and where.
    fn made(&self, texts: &TextBatch, name: &str) -> Result<RecordBatch> {
        let fields = 0..texts.columns.len();
        let fields = fields.map(|it| Field::new(it.to_string(), DataType::Utf8View, true));
        let options = RecordBatchOptions::new().with_row_count(Some(texts.rows));
        let batch = RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            texts.columns.clone(),
            &options,
        );
        let batch = batch.map_err(|error| Error::of_run(&error.into()))?;
        let error = match self.attempt(&batch) {
            Ok(rows) => {
                let made = RecordBatch::try_new(Arc::clone(&self.schema), rows);
                return made.map_err(|error| Error::of_run(&error.into()));
            }
            Err(error) => error,
        };
        let (mut start, mut rows, mut error) = (0, texts.rows, error);
        while rows > 1 {
            let half = rows / 2;
            match self.attempt(&batch.slice(start, half)) {
                Err(earlier) => (rows, error) = (half, earlier),
                Ok(_) => (start, rows) = (start + half, rows - half),
            }
        }
        let alone = batch.slice(start, rows);
        if let Err(of_row) = self.attempt(&alone) {
            error = of_row;
        }
        let column = self.maker.misfit(&alone);
        let column = column.map(|(column, place)| {
            let values = batch.column(place).as_string_view();
            let value =
                (values.len() > start && values.is_valid(start)).then(|| values.value(start));
            (column, value)
        });
        Err(at_value(error, name, texts.line(start), column))
    }

    fn attempt(&self, texts: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let rows = self.maker.rows(texts)?;
        self.maker.check(&rows)?;
        if !self.maker.refers_to_itself() {
            references::require(&self.tables, &self.maker.definition, &rows)?;
        }
        Ok(rows)
    }

    /// A plan that gives rows once, each stream in a partition of its own.
    fn plan(&self, parts: impl IntoIterator<Item = Made>) -> Result<Arc<dyn ExecutionPlan>> {
        let parts = parts.into_iter().map(|rows| {
            Arc::new(Once {
                schema: Arc::clone(&self.schema),
                rows: Mutex::new(Some(rows)),
            }) as Arc<dyn PartitionStream>
        });
        let schema = Arc::clone(&self.schema);
        let plan = StreamingTableExec::try_new(schema, parts.collect(), None, None, false, None);
        Ok(Arc::new(plan.map_err(|error| Error::of_run(&error))?))
    }
}

/// Rows that are there once.
struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<Made>>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().take();
        let rows = match rows {
            Some(rows) => rows.map_err(DataFusionError::from).boxed(),
            None => {
                let error = Error::new(SqlState::InternalError, "rows of a COPY are read twice");
                futures::stream::once(async { Err(error.into()) }).boxed()
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ))
    }
}
