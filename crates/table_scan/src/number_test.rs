//! Conditions that compare a number column, evaluated on the file's 64-bit integers.
//!
//! Several conditions on one column are one range, so the column is read once. Where the file has
//! NULL in a column, or numbers of two lanes, the condition is evaluated as any other.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use orrery_storage::table::{ColumnId, ColumnType, Projection, ProjectionFile, SomeRows};

use super::bits::bits_of;
use super::compared::{comparison, number_of};
use super::failed;
use super::key_bits::KeyBits;

/// What is asked of the numbers of a row.
#[derive(Debug, Clone)]
pub(super) enum NumberTest {
    /// A column of the file is between two values, both of which it may be.
    Between {
        place: usize,
        least: i64,
        greatest: i64,
    },
    /// Two columns compare so.
    Pair {
        left: usize,
        operator: Operator,
        right: usize,
    },
    /// A column is one of the keys of a join.
    Key { place: usize, keys: Arc<KeyBits> },
}

/// Room for the numbers of a chunk, used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    one: Vec<i64>,
    other: Vec<i64>,
}

impl NumberTest {
    /// What a condition over columns with these numbers asks; `None` if it is none of those.
    pub(super) fn new(
        condition: &Arc<dyn PhysicalExpr>,
        ids: &[ColumnId],
        projection: &Projection,
    ) -> Option<Self> {
        if let Some((column, operator, value)) = comparison(condition) {
            let (place, column_type) = number_column(column, ids, projection)?;
            let value = number(value, column_type)?;
            let (least, greatest) = match operator {
                Operator::Eq => (value, value),
                Operator::Lt => (i64::MIN, value.checked_sub(1)?),
                Operator::LtEq => (i64::MIN, value),
                Operator::Gt => (value.checked_add(1)?, i64::MAX),
                Operator::GtEq => (value, i64::MAX),
                _ => return None,
            };
            return Some(Self::Between {
                place,
                least,
                greatest,
            });
        }
        let binary = condition.downcast_ref::<BinaryExpr>()?;
        let operator = *binary.op();
        let left = number_column(binary.left().downcast_ref()?, ids, projection)?;
        let right = number_column(binary.right().downcast_ref()?, ids, projection)?;
        let is_compared = matches!(
            operator,
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
        );
        (is_compared && left.1 == right.1).then_some(Self::Pair {
            left: left.0,
            operator,
            right: right.0,
        })
    }

    /// Both at once, if they are about one column.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (
                Self::Between {
                    place,
                    least,
                    greatest,
                },
                Self::Between {
                    place: other_place,
                    least: other_least,
                    greatest: other_greatest,
                },
            ) if place == other_place => Some(Self::Between {
                place: *place,
                least: *least.max(other_least),
                greatest: *greatest.min(other_greatest),
            }),
            _ => None,
        }
    }

    /// Of each of some rows whether it is true.
    pub(super) fn of(
        &self,
        file: &ProjectionFile,
        rows: &SomeRows<'_>,
        scratch: &mut Scratch,
    ) -> Result<BooleanBuffer> {
        match self {
            Self::Between {
                place,
                least,
                greatest,
            } => {
                read(file, rows, *place, &mut scratch.one)?;
                // One comparison: the distance from the least value, as a number without a sign.
                let range = match greatest.checked_sub(*least) {
                    Some(range) if range >= 0 => range.cast_unsigned(),
                    Some(_) => return Ok(BooleanBuffer::new_unset(scratch.one.len())),
                    None if least > greatest => {
                        return Ok(BooleanBuffer::new_unset(scratch.one.len()));
                    }
                    None => greatest.abs_diff(*least),
                };
                let least = *least;
                Ok(bits_of(&scratch.one, |value| {
                    value.wrapping_sub(least).cast_unsigned() <= range
                }))
            }
            Self::Pair {
                left,
                operator,
                right,
            } => {
                read(file, rows, *left, &mut scratch.one)?;
                read(file, rows, *right, &mut scratch.other)?;
                let (left, right) = (&scratch.one[..], &scratch.other[..]);
                let each = |holds: fn(i64, i64) -> bool| {
                    let count = left.len().min(right.len());
                    BooleanBuffer::collect_bool(count, |row| holds(left[row], right[row]))
                };
                Ok(match operator {
                    Operator::Eq => each(|a, b| a == b),
                    Operator::NotEq => each(|a, b| a != b),
                    Operator::Lt => each(|a, b| a < b),
                    Operator::LtEq => each(|a, b| a <= b),
                    Operator::Gt => each(|a, b| a > b),
                    _ => each(|a, b| a >= b),
                })
            }
            Self::Key { place, keys } => {
                read(file, rows, *place, &mut scratch.one)?;
                Ok(keys.has(&scratch.one))
            }
        }
    }

    /// The same of a range of rows.
    pub(super) fn of_range(
        &self,
        file: &ProjectionFile,
        rows: Range<u64>,
        scratch: &mut Scratch,
    ) -> Result<BooleanBuffer> {
        self.of(file, &SomeRows::Range(rows), scratch)
    }
}

fn read(
    file: &ProjectionFile,
    rows: &SomeRows<'_>,
    place: usize,
    out: &mut Vec<i64>,
) -> Result<()> {
    out.clear();
    let read = file.numbers(rows.clone(), place, out).map_err(failed)?;
    read.ok_or_else(|| DataFusionError::Internal("a column of numbers is gone".to_owned()))
}

/// A column of the file that has numbers, none of them NULL, and their type.
fn number_column(
    column: &Column,
    ids: &[ColumnId],
    projection: &Projection,
) -> Option<(usize, ColumnType)> {
    let place = projection.layout().position(*ids.get(column.index())?)?;
    let file = projection.file()?;
    let is_whole = file.column_statistics(place)?.nulls == 0;
    (is_whole && file.has_numbers(place))
        .then(|| (place, projection.layout().columns[place].column_type))
}

/// The number that a value of a column's type is in the file.
fn number(value: &ScalarValue, column_type: ColumnType) -> Option<i64> {
    if value.data_type() != column_type.arrow() {
        return None;
    }
    match value {
        ScalarValue::TimestampMicrosecond(value, _) => *value,
        value => number_of(value),
    }
}
