//! Arrow and Parquet: solutions as typed columns.
//!
//! The type of a column is written before its values, but whether all values of a variable are
//! integers, say, is known only after the last. So rows are buffered, in memory or in a temporary
//! file, while each column's [`Shape`] is learnt; at the end they are read again and written batch
//! by batch. Memory is bounded by a batch and a Parquet row group, whatever the answer's size.
//!
//! ```text
//!   row -> Shape of each column, RowStore        finish -> RowStore -> builders -> batch -> bytes
//! ```
//!
//! What the columns mean stands in docs/formats.md.

mod shape;
mod store;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use orrery_term::Term;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::path::Path;

use self::shape::Shape;
use self::store::{RowReader, RowStore};
use self::values::ColumnBuilder;
use super::FormatError;

/// Rows of a record batch.
const BATCH_ROWS: usize = 8_192;
/// Bytes of terms after which a batch ends earlier.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes that a Parquet row group may hold in memory before it is written.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// The file formats of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Arrow IPC, streaming format.
    Arrow,
    /// Parquet.
    Parquet,
}

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Columnar {
    container: Container,
    variables: Vec<String>,
    shapes: Vec<Shape<'static>>,
    state: State,
}

#[derive(Debug)]
enum State {
    Collecting(RowStore),
    Writing {
        rows: RowReader,
        schema: SchemaRef,
        sink: Box<Sink>,
    },
    Done,
}

pub(super) enum Sink {
    Arrow(StreamWriter<Vec<u8>>),
    Parquet(ArrowWriter<Vec<u8>>),
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Arrow(_) => "Arrow",
            Self::Parquet(_) => "Parquet",
        })
    }
}

impl Columnar {
    pub(super) fn new(container: Container, variables: &[String], temp_dir: &Path) -> Self {
        Self {
            container,
            variables: variables.to_vec(),
            shapes: vec![Shape::Empty; variables.len()],
            state: State::Collecting(RowStore::new(temp_dir)),
        }
    }

    /// Where rows go that do not stay in memory; before the first row.
    pub(super) fn spill_to(&mut self, temp_dir: &Path) {
        if let State::Collecting(rows) = &mut self.state {
            *rows = RowStore::new(temp_dir);
        }
    }

    /// Keeps a row.
    pub(super) fn row<'a>(
        &mut self,
        row: impl Iterator<Item = Option<&'a Term<'a>>>,
    ) -> Result<(), FormatError> {
        let State::Collecting(rows) = &mut self.state else {
            return Ok(());
        };
        for (shape, term) in self.shapes.iter_mut().zip(row) {
            if let Some(term) = term {
                shape.absorb(term);
            }
            rows.push(term)?;
        }
        rows.end_row();
        Ok(())
    }

    /// Appends some more of the answer; true after the last of it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Result<bool, FormatError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => Ok(true),
            State::Collecting(rows) => {
                let schema = self.schema();
                let sink = Sink::new(self.container, &schema)?;
                self.state = State::Writing {
                    rows: rows.into_reader()?,
                    schema,
                    sink: Box::new(sink),
                };
                Ok(false)
            }
            State::Writing {
                mut rows,
                schema,
                mut sink,
            } => {
                let Some(batch) = self.batch(&mut rows, &schema)? else {
                    sink.finish(out)?;
                    return Ok(true);
                };
                sink.write(&batch, out)?;
                self.state = State::Writing { rows, schema, sink };
                Ok(false)
            }
        }
    }

    fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self
            .variables
            .iter()
            .zip(&self.shapes)
            .map(|(name, shape)| {
                Field::new(name, shape.data_type(), true).with_metadata(shape.metadata())
            })
            .collect();
        Arc::new(Schema::new(fields))
    }

    fn batch(
        &self,
        rows: &mut RowReader,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>, FormatError> {
        let mut builders: Vec<ColumnBuilder> = self.shapes.iter().map(ColumnBuilder::new).collect();
        let (mut count, mut bytes) = (0, 0);
        while count < BATCH_ROWS && bytes < BATCH_BYTES && rows.begin_row() {
            for builder in &mut builders {
                bytes += rows.next(|term| builder.append(term))?;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = builders.into_iter().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
            .map(Some)
            .map_err(failed)
    }

    /// Appends the answer of an ASK: one row with one column, `boolean`.
    pub(super) fn boolean(
        container: Container,
        value: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let column: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![value]));
        let batch = RecordBatch::try_from_iter([("boolean", column)]).map_err(failed)?;
        let mut sink = Box::new(Sink::new(container, &batch.schema())?);
        sink.write(&batch, out)?;
        sink.finish(out)
    }
}

impl Sink {
    pub(super) fn new(container: Container, schema: &SchemaRef) -> Result<Self, FormatError> {
        match container {
            Container::Arrow => StreamWriter::try_new(Vec::new(), schema)
                .map(Self::Arrow)
                .map_err(failed),
            Container::Parquet if schema.fields().is_empty() => Err(FormatError::Inexpressible {
                format: "parquet",
                reason: "the query has no variables".to_owned(),
            }),
            Container::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties))
                    .map(Self::Parquet)
                    .map_err(failed)
            }
        }
    }

    pub(super) fn write(
        &mut self,
        batch: &RecordBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        match self {
            Self::Arrow(writer) => {
                writer.write(batch).map_err(failed)?;
                out.append(writer.get_mut());
            }
            Self::Parquet(writer) => {
                writer.write(batch).map_err(failed)?;
                if writer.in_progress_size() >= ROW_GROUP_BYTES {
                    writer.flush().map_err(failed)?;
                }
                out.append(writer.inner_mut());
            }
        }
        Ok(())
    }

    pub(super) fn finish(self: Box<Self>, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut rest = match *self {
            Self::Arrow(mut writer) => {
                writer.finish().map_err(failed)?;
                writer.into_inner().map_err(failed)?
            }
            Self::Parquet(mut writer) => {
                writer.finish().map_err(failed)?;
                std::mem::take(writer.inner_mut())
            }
        };
        out.append(&mut rest);
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> FormatError {
    FormatError::Columns {
        message: error.to_string(),
    }
}
