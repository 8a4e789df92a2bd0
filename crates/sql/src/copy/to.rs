//! `COPY ... TO`: query rows written as bytes.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::sql::sqlparser::ast::{CopyOption, CopySource, Query, SelectItem, SetExpr};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::{ObjectStoreExt as _, WriteMultipart};

use super::options::{Chosen, Format, Options};
use super::stream::CopyRows;
use crate::answers::outcome::Rows;
use crate::delimited::{Dialect, Form};
use crate::files::{Location, of_store};
use crate::parse::statement::parse_one;
use crate::values::texts::ValueTexts;
use crate::{Error, Result, SqlState};

/// A row group of a Parquet file has so many rows: it is in memory until it is whole.
const GROUP_ROWS: usize = 128 * 1024;
/// Parts of a file that are on their way at the same time, and their size.
const PARTS_AT_ONCE: usize = 2;
const PART_BYTES: usize = 8 << 20;

/// A statement that is understood.
#[derive(Debug, Clone)]
pub(crate) struct CopyTo {
    pub(crate) query: Query,
    options: Options,
}

impl CopyTo {
    /// Of a table or a query.
    pub(crate) fn new(source: &CopySource, options: &[CopyOption]) -> Result<Self> {
        let query = match source {
            CopySource::Query(query) => (**query).clone(),
            CopySource::Table {
                table_name,
                columns,
            } => {
                let mut query = template()?;
                if let SetExpr::Select(select) = &mut *query.body {
                    if let Some(from) = select.from.first_mut()
                        && let datafusion::sql::sqlparser::ast::TableFactor::Table { name, .. } =
                            &mut from.relation
                    {
                        *name = table_name.clone();
                    }
                    if !columns.is_empty() {
                        let columns = columns.iter().cloned();
                        let columns = columns
                            .map(datafusion::sql::sqlparser::ast::Expr::Identifier)
                            .map(SelectItem::UnnamedExpr);
                        select.projection = columns.collect();
                    }
                }
                query
            }
        };
        Ok(Self {
            query,
            options: Options::of(options, true)?,
        })
    }

    /// Whether it makes a file of Parquet, which no client takes row by row.
    pub(crate) fn is_parquet(&self) -> bool {
        self.options.format == Format::Parquet
    }

    /// The rows as bytes.
    pub(crate) fn chunks(
        &self,
        rows: Rows,
        memory: MemoryReservation,
    ) -> Result<BoxStream<'static, Result<CopyRows>>> {
        let schema = rows.schema();
        let encoder = match &self.options.format {
            Format::Delimited(dialect) => {
                Encoder::Delimited(Lines::new(dialect, &self.options.force_quote, &schema)?)
            }
            Format::Parquet => Encoder::Parquet(Box::new(Parquet::new(&schema, memory)?)),
        };
        let state = Some((rows, encoder));
        let chunks = futures::stream::try_unfold(state, |state| async {
            let Some((mut rows, mut encoder)) = state else {
                return Ok(None);
            };
            match rows.next().await {
                Some(batch) => {
                    let batch = batch.map_err(|error| Error::of_run(&error))?;
                    let chunk = encoder.batch(&batch)?;
                    Ok(Some((chunk, Some((rows, encoder)))))
                }
                None => Ok(Some((encoder.end()?, None))),
            }
        });
        let is_empty = |chunk: &Result<CopyRows>| matches!(chunk, Ok(chunk) if chunk.bytes.is_empty() && chunk.count == 0);
        Ok(chunks
            .filter(move |chunk| futures::future::ready(!is_empty(chunk)))
            .boxed())
    }
}

/// `SELECT * FROM t`.
fn template() -> Result<Query> {
    let broken = || Error::new(SqlState::InternalError, "the template of a query is none");
    let datafusion::sql::parser::Statement::Statement(statement) = parse_one("SELECT * FROM t")?
    else {
        return Err(broken());
    };
    match *statement {
        datafusion::sql::sqlparser::ast::Statement::Query(query) => Ok(*query),
        _ => Err(broken()),
    }
}

/// Writes all chunks to a file, which is there when all of it is; how many rows there were.
pub(crate) async fn write_file(
    location: &Location,
    mut chunks: BoxStream<'static, Result<CopyRows>>,
) -> Result<u64> {
    if location.url.get_glob().is_some() || location.url.is_collection() {
        return Err(Error::new(
            SqlState::InvalidParameterValue,
            format!("{} is no name of one file", location.name),
        ));
    }
    if location.name.ends_with(".gz") {
        return Err(Error::unsupported(
            "COPY TO a file that is to be compressed",
        ));
    }
    location.refuse_what_is_no_file()?;
    let failed = |error: object_store::Error| of_store(&location.name, &error);
    let upload = location.store.put_multipart(location.url.prefix()).await;
    let upload = upload.map_err(failed)?;
    let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    let mut count = 0;
    while let Some(chunk) = chunks.next().await {
        let written = match chunk {
            Ok(chunk) => {
                count += chunk.count;
                let ready = writer.wait_for_capacity(PARTS_AT_ONCE).await;
                ready.map_err(failed).map(|()| writer.put(chunk.bytes))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            if let Err(left) = writer.abort().await {
                tracing::warn!("parts of {} are left: {left}", location.name);
            }
            return Err(error);
        }
    }
    writer.finish().await.map_err(failed)?;
    Ok(count)
}

enum Encoder {
    Delimited(Lines),
    Parquet(Box<Parquet>),
}

impl Encoder {
    fn batch(&mut self, batch: &RecordBatch) -> Result<CopyRows> {
        match self {
            Self::Delimited(lines) => lines.batch(batch),
            Self::Parquet(parquet) => parquet.batch(batch),
        }
    }

    fn end(self) -> Result<CopyRows> {
        match self {
            Self::Delimited(mut lines) => Ok(lines.head().unwrap_or_else(nothing)),
            Self::Parquet(parquet) => parquet.end(),
        }
    }
}

fn nothing() -> CopyRows {
    CopyRows {
        bytes: Bytes::new(),
        ends: Vec::new(),
        count: 0,
    }
}

/// Writes lines of text or CSV.
struct Lines {
    dialect: Dialect,
    force_quote: Vec<bool>,
    /// The line of names, until it is written.
    head: Option<String>,
}

impl Lines {
    fn new(dialect: &Dialect, force_quote: &Chosen, schema: &SchemaRef) -> Result<Self> {
        let names = schema.fields().iter().map(|field| field.name().clone());
        let names: Vec<String> = names.collect();
        let mut lines = Self {
            dialect: dialect.clone(),
            force_quote: force_quote.flags("FORCE_QUOTE", &names)?,
            head: None,
        };
        if dialect.has_header {
            let mut head = String::new();
            for (place, name) in names.iter().enumerate() {
                lines.field(place, Some(name), names.len() == 1, false, &mut head);
            }
            head.push('\n');
            lines.head = Some(head);
        }
        Ok(lines)
    }

    fn head(&mut self) -> Option<CopyRows> {
        let head = self.head.take()?;
        Some(CopyRows {
            ends: vec![head.len()],
            bytes: Bytes::from(head),
            count: 0,
        })
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<CopyRows> {
        let mut text = self.head.take().unwrap_or_default();
        let mut ends = Vec::with_capacity(batch.num_rows() + 1);
        if !text.is_empty() {
            ends.push(text.len());
        }
        let columns = batch.columns().iter().map(ValueTexts::new);
        let columns: Vec<ValueTexts<'_>> = columns.collect::<Result<_>>()?;
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            for (place, column) in columns.iter().enumerate() {
                value.clear();
                let is_there = column.write(row, &mut value)?;
                let is_alone = columns.len() == 1;
                let forced = self.force_quote[place];
                self.field(
                    place,
                    is_there.then_some(&value),
                    is_alone,
                    forced,
                    &mut text,
                );
            }
            text.push('\n');
            ends.push(text.len());
        }
        Ok(CopyRows {
            bytes: Bytes::from(text),
            ends,
            count: batch.num_rows() as u64,
        })
    }

    fn field(
        &self,
        place: usize,
        value: Option<&String>,
        is_alone: bool,
        is_forced: bool,
        text: &mut String,
    ) {
        let Dialect {
            delimiter,
            null,
            quote,
            escape,
            ..
        } = &self.dialect;
        let delimiter = char::from(*delimiter);
        if place > 0 {
            text.push(delimiter);
        }
        let Some(value) = value else {
            text.push_str(null);
            return;
        };
        match self.dialect.form {
            Form::Text => {
                for c in value.chars() {
                    match c {
                        '\\' => text.push_str("\\\\"),
                        '\u{8}' => text.push_str("\\b"),
                        '\u{c}' => text.push_str("\\f"),
                        '\n' => text.push_str("\\n"),
                        '\r' => text.push_str("\\r"),
                        '\t' => text.push_str("\\t"),
                        '\u{b}' => text.push_str("\\v"),
                        c if c == delimiter => text.extend(['\\', c]),
                        c => text.push(c),
                    }
                }
            }
            Form::Csv => {
                let (quote, escape) = (char::from(*quote), char::from(*escape));
                let is_quoted = is_forced
                    || value == null
                    || value.contains([delimiter, quote, '\n', '\r'])
                    || (is_alone && value == "\\.");
                if !is_quoted {
                    text.push_str(value);
                    return;
                }
                text.push(quote);
                for c in value.chars() {
                    if c == quote || c == escape {
                        text.push(escape);
                    }
                    text.push(c);
                }
                text.push(quote);
            }
        }
    }
}

/// Writes a file of Parquet.
struct Parquet {
    writer: ArrowWriter<Vec<u8>>,
    memory: MemoryReservation,
}

impl Parquet {
    fn new(schema: &SchemaRef, memory: MemoryReservation) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties));
        Ok(Self {
            writer: writer.map_err(of_parquet)?,
            memory,
        })
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<CopyRows> {
        self.writer.write(batch).map_err(of_parquet)?;
        let held = self.writer.memory_size();
        let held = self.memory.try_resize(held);
        held.map_err(|error| Error::of_run(&error))?;
        Ok(self.written(batch.num_rows() as u64))
    }

    fn end(mut self: Box<Self>) -> Result<CopyRows> {
        self.writer.finish().map_err(of_parquet)?;
        Ok(self.written(0))
    }

    /// What is ready to go.
    fn written(&mut self, count: u64) -> CopyRows {
        let bytes = Bytes::from(std::mem::take(self.writer.inner_mut()));
        CopyRows {
            ends: vec![bytes.len()],
            bytes,
            count,
        }
    }
}

fn of_parquet(error: ParquetError) -> Error {
    Error::of_run(&error.into())
}
