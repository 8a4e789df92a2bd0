//! A builder of small tables, row by row.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int64Array, Int64Builder, ListBuilder, RecordBatch, StringArray,
    StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::DataFusionError;

/// Said of a column of arrays whose values PostgreSQL writes as `1 2`: its type `int2vector`.
pub const VECTOR: &str = "postgresql.int2vector";

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(String),
    Integers(Vec<i64>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<i64>> for Cell {
    fn from(value: Vec<i64>) -> Self {
        Self::Integers(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of values of different types.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::catalog::pg_catalog::cells::Cell::from($value)),*] };
}
pub(super) use row;

/// A table of rows. Columns are a text of names, each followed by its type: `b`oolean, `i`nteger,
/// `t`ext, `I` and `T` for arrays of them, `V` for an array of numbers that PostgreSQL writes with
/// blanks between them.
pub(super) fn table(
    columns: &str,
    rows: Vec<Vec<Cell>>,
) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let mut words = columns.split_whitespace();
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    while let (Some(name), Some(kind)) = (words.next(), words.next()) {
        let place = fields.len();
        let cells = rows.iter().map(|row| row.get(place).unwrap_or(&Cell::Null));
        let array = array(kind, cells);
        let mut field = Field::new(name, array.data_type().clone(), true);
        if kind == "V" {
            let mark = (VECTOR.to_owned(), String::new());
            field = field.with_metadata([mark].into());
        }
        fields.push(field);
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

fn array<'c>(kind: &str, cells: impl Iterator<Item = &'c Cell>) -> ArrayRef {
    match kind {
        "b" => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
            Cell::Boolean(value) => Some(*value),
            _ => None,
        }))),
        "i" => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
            Cell::Integer(value) => Some(*value),
            _ => None,
        }))),
        "I" | "V" => {
            let field = Field::new_list_field(DataType::Int64, true);
            let mut builder = ListBuilder::new(Int64Builder::new()).with_field(field);
            for cell in cells {
                match cell {
                    Cell::Integers(values) => {
                        builder.values().append_slice(values);
                        builder.append(true);
                    }
                    _ => builder.append(false),
                }
            }
            Arc::new(builder.finish())
        }
        "T" => {
            let field = Field::new_list_field(DataType::Utf8, true);
            let mut builder = ListBuilder::new(StringBuilder::new()).with_field(field);
            // None of them has a value here.
            cells.for_each(|_| builder.append(false));
            Arc::new(builder.finish())
        }
        _ => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
            Cell::Text(value) => Some(value.as_str()),
            _ => None,
        }))),
    }
}
