//! CSV files as tables.
//!
//! Each file is read from its beginning by one partition. The columns are those that a definition
//! says, or the names of the first line with the types that fit its first rows; a later value that
//! does not fit is an error that says where it is.

use orrery_plan_node::node_methods;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::BytesMut;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Statistics, stats::Precision};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use orrery_storage::table::ColumnType;

use super::bytes::READING_BYTES;
use super::location::FoundFile;
use crate::delimited::{Dialect, Header, Reader, TextBatch, at_value, first_record, text_batches};
use crate::values::data_types::assign;
use crate::{Error, Result, SqlState};

/// What is looked at of the first file.
const SAMPLE_BYTES: usize = 1 << 20;
/// A first line may be so long.
const HEAD_BYTES_MAX: usize = 64 << 20;
/// Compressed text is taken for so many times its bytes.
const PACKED_RATIO: u64 = 4;

/// A column of a table out of files.
pub(crate) type Column = (String, ColumnType);

/// Files, and what they have.
#[derive(Debug, Clone)]
pub(crate) struct CsvTable {
    files: Arc<[FoundFile]>,
    dialect: Dialect,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    header: Header,
    /// A guess.
    rows: usize,
}

impl CsvTable {
    /// Over files that are there; with columns that are known, or those that the first file tells.
    pub(crate) async fn new(
        files: Vec<FoundFile>,
        dialect: Dialect,
        columns: Option<Vec<Column>>,
    ) -> Result<Self> {
        let first = files
            .first()
            .ok_or_else(|| Error::new(SqlState::UndefinedFile, "there is no file to be read"))?;
        let sample = Sample::of(first).await?;
        let header = match &columns {
            Some(_) => Header::Places,
            None => Header::Exact,
        };
        let columns = match columns {
            Some(columns) => columns,
            None => sample.columns(first, &dialect)?,
        };
        let fields = columns
            .iter()
            .map(|(name, of)| Field::new(name, of.arrow(), true));
        let row_bytes = sample.row_bytes();
        let size = |file: &FoundFile| match file.is_packed() {
            true => file.meta.size.saturating_mul(PACKED_RATIO),
            false => file.meta.size,
        };
        let bytes: u64 = files.iter().map(size).fold(0, u64::saturating_add);
        Ok(Self {
            rows: usize::try_from(bytes / row_bytes.max(1)).unwrap_or(usize::MAX),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            files: files.into(),
            dialect,
            header,
            columns: columns.into(),
        })
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// The beginning of a file.
struct Sample {
    bytes: BytesMut,
    is_all: bool,
}

impl Sample {
    async fn of(file: &FoundFile) -> Result<Self> {
        let mut chunks = file.bytes();
        let mut sample = Self {
            bytes: BytesMut::new(),
            is_all: false,
        };
        loop {
            let has_line = memchr::memchr(b'\n', &sample.bytes).is_some();
            if sample.bytes.len() >= SAMPLE_BYTES && has_line {
                return Ok(sample);
            }
            if sample.bytes.len() > HEAD_BYTES_MAX {
                let what = format!("file {}: the first line has no end", file.name);
                return Err(Error::new(SqlState::ProgramLimitExceeded, what));
            }
            match chunks.try_next().await? {
                Some(chunk) => sample.bytes.extend_from_slice(&chunk),
                None => {
                    sample.is_all = true;
                    return Ok(sample);
                }
            }
        }
    }

    /// How long a row is, by the lines.
    fn row_bytes(&self) -> u64 {
        let lines = memchr::memchr_iter(b'\n', &self.bytes).count().max(1);
        (self.bytes.len() / lines) as u64
    }

    fn columns(&self, file: &FoundFile, dialect: &Dialect) -> Result<Vec<Column>> {
        let input = format!("file {}", file.name);
        let first = first_record(&input, dialect, &self.bytes)?;
        let first = first.filter(|first| !first.is_empty()).ok_or_else(|| {
            Error::new(
                SqlState::BadCopyFileFormat,
                format!("{input} is empty: its columns are not known"),
            )
            .with_hint("CREATE EXTERNAL TABLE says columns.")
        })?;
        let numbered = |place: usize| format!("column{}", place + 1);
        let names = first.iter().enumerate();
        let names = names.map(
            |(place, name)| match dialect.has_header && !name.is_empty() {
                true => name.clone(),
                false => numbered(place),
            },
        );
        let names: Vec<String> = names.collect();
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(Error::new(
                SqlState::DuplicateColumn,
                format!("column \"{name}\" is there more than once"),
            )
            .with_context(format!("{input}, line 1")));
        }
        let places = (0..names.len()).map(Some).collect();
        let mut reader = Reader::new(input, dialect.clone(), names.clone(), places);
        let mut batches = reader.push(&self.bytes)?;
        batches.extend(match self.is_all {
            true => reader.finish()?,
            false => reader.rest(),
        });
        let columns = names.into_iter().enumerate();
        let columns = columns.map(|(place, name)| {
            let texts = batches.iter().map(|batch| &batch.columns[place]);
            (name, fitting(&texts.collect::<Vec<_>>()))
        });
        Ok(columns.collect())
    }
}

/// The first of some types that all texts are of.
fn fitting(texts: &[&ArrayRef]) -> ColumnType {
    const TYPES: [ColumnType; 5] = [
        ColumnType::BigInt,
        ColumnType::Double,
        ColumnType::Date,
        ColumnType::Timestamp,
        ColumnType::Boolean,
    ];
    let text = ColumnType::Text {
        length_max: None,
        is_padded: false,
    };
    let is_digits = |value: &str| {
        let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let has_values = texts.iter().any(|texts| texts.null_count() < texts.len());
    if !has_values {
        return text;
    }
    let may_be = |of: ColumnType, value: &str| match of {
        // `007` is a name, and `1e3` no integer.
        ColumnType::BigInt | ColumnType::Double => {
            let digits = value.trim_start_matches(['-', '+']);
            !(digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0."))
                && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        }
        ColumnType::Date => value.len() == 10,
        ColumnType::Timestamp => value.len() > 10,
        ColumnType::Boolean => {
            value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
        }
        _ => true,
    };
    let is_fitting = |of: &ColumnType| {
        texts.iter().all(|texts| {
            let mut values = texts.as_string_view().iter().flatten();
            values.all(|value| may_be(*of, value)) && assign(texts, "", *of).is_ok()
        })
    };
    let found = TYPES.into_iter().find(is_fitting).unwrap_or(text);
    let mut values = texts.iter().flat_map(|texts| texts.as_string_view().iter());
    // Integers that are too long are no doubles, which would make one of two.
    match found == ColumnType::Double && values.all(|value| value.is_none_or(is_digits)) {
        true => text,
        false => found,
    }
}

#[async_trait]
impl TableProvider for CsvTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let wanted: Arc<[usize]> = projection.unwrap_or(&all).as_slice().into();
        let schema = Arc::new(self.schema.project(&wanted)?);
        let partitions = state.config().target_partitions().max(1);
        let groups = self.files.len().div_ceil(partitions).max(1);
        let groups: Vec<Arc<[FoundFile]>> = self.files.chunks(groups).map(Arc::from).collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Arc::new(CsvExec {
            table: self.clone(),
            wanted,
            schema,
            groups,
            pool: Arc::clone(&state.runtime_env().memory_pool),
            properties: Arc::new(properties),
        }))
    }
}

/// Reads some columns of the files.
struct CsvExec {
    table: CsvTable,
    wanted: Arc<[usize]>,
    schema: SchemaRef,
    groups: Vec<Arc<[FoundFile]>>,
    pool: Arc<dyn MemoryPool>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for CsvExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvExec")
            .field("files", &self.table.files.len())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for CsvExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let columns = names.collect::<Vec<_>>().join(", ");
        write!(
            f,
            "CsvExec: files={}, columns=[{columns}]",
            self.table.files.len()
        )
    }
}

impl ExecutionPlan for CsvExec {
    node_methods!("CsvExec", leaf, own metrics);

    fn execute(
        &self,
        partition: usize,
        _: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let files = self.groups.get(partition).cloned().unwrap_or_default();
        let rows = Rows {
            columns: Arc::clone(&self.table.columns),
            wanted: Arc::clone(&self.wanted),
            schema: Arc::clone(&self.schema),
            header: self.table.header,
        };
        let (dialect, pool) = (self.table.dialect.clone(), Arc::clone(&self.pool));
        let batches = futures::stream::iter(0..files.len()).map(move |number| {
            let file = &files[number];
            let name: Arc<str> = format!("file {}", file.name).into();
            let memory = MemoryConsumer::new("reading of a file").register(&pool);
            memory.try_grow(READING_BYTES)?;
            let reader = rows.reader(&name, dialect.clone());
            let rows = rows.clone();
            let texts = text_batches(file.bytes(), reader, memory);
            let made = texts.map(move |texts| {
                let made = texts.and_then(|texts| rows.made(&texts, &name));
                made.map_err(DataFusionError::from)
            });
            Ok::<_, DataFusionError>(made)
        });
        let batches = batches.try_flatten();
        let schema = Arc::clone(&self.schema);
        let stream = RecordBatchStreamAdapter::new(schema, batches.boxed());
        Ok(Box::pin(cooperative(stream)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut told = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            told.num_rows = Precision::Inexact(self.table.rows);
        }
        Ok(Arc::new(told))
    }
}

/// What makes values of texts.
#[derive(Clone)]
struct Rows {
    columns: Arc<[Column]>,
    wanted: Arc<[usize]>,
    schema: SchemaRef,
    header: Header,
}

impl Rows {
    fn reader(&self, name: &str, dialect: Dialect) -> Reader {
        let names = self.columns.iter().map(|(name, _)| name.clone());
        let place = |column: usize| self.wanted.iter().position(|wanted| *wanted == column);
        let places = (0..self.columns.len()).map(place);
        Reader::new(name.to_owned(), dialect, names.collect(), places.collect())
            .with_header(self.header)
    }

    fn made(&self, texts: &TextBatch, name: &str) -> Result<RecordBatch> {
        let pairs = self.wanted.iter().zip(&texts.columns);
        let columns = pairs.map(|(number, values)| {
            let (column, of) = &self.columns[*number];
            assign(values, column, *of)
                .map_err(|error| misplaced(error, values, (column, *of), texts, name))
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(texts.rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map_err(|error| Error::of_run(&error.into()))
    }
}

/// The error of the first value that is none of a column's type, with its place.
fn misplaced(
    error: Error,
    values: &ArrayRef,
    (column, of): (&String, ColumnType),
    texts: &TextBatch,
    name: &str,
) -> Error {
    let (mut start, mut rows) = (0, values.len());
    while rows > 1 {
        let half = rows / 2;
        match assign(&values.slice(start, half), column, of) {
            Err(_) => rows = half,
            Ok(_) => (start, rows) = (start + half, rows - half),
        }
    }
    let alone = assign(&values.slice(start, rows), column, of);
    let error = alone.err().unwrap_or(error);
    let strings = values.as_string_view();
    let value = (start < strings.len() && strings.is_valid(start)).then(|| strings.value(start));
    at_value(error, name, texts.line(start), Some((column, value)))
}
