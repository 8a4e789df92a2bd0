//! The column store: projection files, as tables of a database have them.
//!
//! A look-up is a cursor's: over the fences of vectors of 1,024 rows in steps that double, then
//! within the vector, whose key columns are decoded once for all keys that lie in it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use orrery_storage::io::LocalFileSystem;
use orrery_storage::table::{
    ColumnId, ColumnType, KeyRows, ProjectionColumn, ProjectionFile, ProjectionLayout,
    ProjectionWriter, RelationId, SomeRows,
};

use super::shape::Shape;
use super::store::Stored;
use crate::drivers::BenchError;

/// A file of a projection.
pub(super) struct ColumnTable {
    file: Arc<ProjectionFile>,
    bytes: u64,
}

/// Writes one.
pub(super) struct ColumnWriter {
    writer: ProjectionWriter,
    layout: ProjectionLayout,
}

impl ColumnWriter {
    pub(super) fn new(path: &Path, shape: &Shape) -> Result<Self, BenchError> {
        let layout = layout(shape)?;
        let writer = ProjectionWriter::create(&LocalFileSystem, path, &layout)?;
        Ok(Self { writer, layout })
    }

    /// Appends rows, whose keys ascend.
    pub(super) fn push(&mut self, columns: &[ArrayRef]) -> Result<(), BenchError> {
        Ok(self.writer.push(columns)?)
    }

    /// Opens what was written.
    pub(super) fn finish(self, path: &Path) -> Result<ColumnTable, BenchError> {
        self.writer.finish()?;
        let file = ProjectionFile::open(&LocalFileSystem, path, &self.layout, &[])?;
        let metadata = std::fs::metadata(path).map_err(|source| BenchError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(ColumnTable {
            file: Arc::new(file),
            bytes: metadata.len(),
        })
    }
}

fn layout(shape: &Shape) -> Result<ProjectionLayout, BenchError> {
    let columns = shape.columns.iter().zip(1..).map(|((name, of), number)| {
        let column_type = match of {
            DataType::Int64 => ColumnType::BigInt,
            DataType::Int32 => ColumnType::Integer,
            DataType::Date32 => ColumnType::Date,
            DataType::Decimal128(precision, scale) => ColumnType::Decimal {
                precision: *precision,
                scale: scale.unsigned_abs(),
            },
            DataType::Utf8View => ColumnType::Text {
                length_max: None,
                is_padded: false,
            },
            other => {
                return Err(BenchError::Engine {
                    message: format!("{name}: a column of type {other} is not expected"),
                });
            }
        };
        Ok(ProjectionColumn {
            id: ColumnId(number),
            column_type,
            is_nullable: false,
        })
    });
    Ok(ProjectionLayout {
        relation: RelationId(1),
        columns: columns.collect::<Result<_, _>>()?,
        key_columns: shape.key_columns,
    })
}

impl Stored for ColumnTable {
    fn rows(&self) -> u64 {
        self.file.rows()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn numbers(
        &self,
        rows: SomeRows<'_>,
        columns: &[usize],
        out: &mut [Vec<i64>],
    ) -> Result<(), BenchError> {
        for (column, out) in columns.iter().zip(out) {
            let read = self.file.numbers(rows.clone(), *column, out)?;
            read.ok_or_else(|| BenchError::Engine {
                message: format!("column {column} of a file has no numbers"),
            })?;
        }
        Ok(())
    }

    fn texts(&self, rows: Range<u64>, column: usize) -> Result<ArrayRef, BenchError> {
        let mut read = self.file.read(rows, &[column])?;
        Ok(read.swap_remove(0))
    }

    fn look_up(&self, keys: &[ArrayRef]) -> Result<Vec<Range<u64>>, BenchError> {
        let mut encoded = KeyRows::default();
        self.file.key_encoder().encode_rows(keys, &mut encoded)?;
        let mut cursor = self.file.cursor();
        let found = encoded.iter().map(|key| Ok(cursor.find(key)?));
        found.collect()
    }
}
