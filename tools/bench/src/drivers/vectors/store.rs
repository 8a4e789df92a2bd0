//! The interface of a store: rows by number, and numbers by key.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array};
use arrow::datatypes::DataType;
use orrery_storage::table::SomeRows;
use serde::{Serialize, Serializer};

use super::shape::Shape;
use crate::drivers::BenchError;

/// Rows that lie together: they are found by one step of a search from above, and count as touched
/// together. As many as a vector of our columns has; the pages of the row store have as many too.
pub(super) const BLOCK_ROWS: usize = 1024;

/// How a table lies.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Store {
    /// The file of a projection, as tables and indexes of a database have it.
    Columns,
    /// Rows in Arrow's row format, in pages in memory.
    Rows,
}

impl Store {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Columns, Self::Rows];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Rows => "rows",
        }
    }
}

impl Serialize for Store {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Rows sorted by a key, numbered from zero.
pub(super) trait Stored: Send + Sync {
    /// How many there are.
    fn rows(&self) -> u64;

    /// The place that they take.
    fn bytes(&self) -> u64;

    /// Appends the values of columns of integers, dates (as days) and decimals (unscaled).
    fn numbers(
        &self,
        rows: SomeRows<'_>,
        columns: &[usize],
        out: &mut [Vec<i64>],
    ) -> Result<(), BenchError>;

    /// The texts of a column.
    fn texts(&self, rows: Range<u64>, column: usize) -> Result<ArrayRef, BenchError>;

    /// The rows that begin with each key, given as arrays for the first columns. The keys ascend
    /// strictly: so each search goes on where the one before ended. Nothing is kept from one call
    /// to the next.
    fn look_up(&self, keys: &[ArrayRef]) -> Result<Vec<Range<u64>>, BenchError>;
}

/// A table in a store.
pub(super) struct Table {
    pub(super) shape: Shape,
    pub(super) stored: Box<dyn Stored>,
}

impl Table {
    /// The place of a column.
    pub(super) fn column(&self, name: &str) -> Result<usize, BenchError> {
        let column = self.shape.column(name);
        column.ok_or_else(|| BenchError::Engine {
            message: format!("{} has no column {name}", self.shape.name),
        })
    }

    /// Numbers as arrays of the types of the first columns.
    pub(super) fn keys(&self, columns: Vec<Vec<i64>>) -> Vec<ArrayRef> {
        let count = columns.len();
        let columns = columns.into_iter().zip(self.shape.types(count));
        columns
            .map(|(numbers, of)| -> ArrayRef {
                match of {
                    // The numbers come from columns of the same type.
                    DataType::Int32 => Arc::new(Int32Array::from_iter_values(
                        numbers.into_iter().map(|number| number as i32),
                    )),
                    _ => Arc::new(Int64Array::from(numbers)),
                }
            })
            .collect()
    }
}

/// Why texts cannot be had.
pub(super) fn not_text(array: &dyn Array) -> BenchError {
    BenchError::Engine {
        message: format!("texts are expected, not {}", array.data_type()),
    }
}
