//! The group number of each row.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Date32Array, Int16Array, Int32Array, Int64Array, UInt32Array,
};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use orrery_storage::table::{ProjectionFile, SomeRows};

use super::super::failed;
use super::lanes::Given;

/// Groups that there can be, at most.
const GROUPS_MAX: u64 = 1 << 20;

/// The columns by which rows are grouped, each with a digit of the group's number.
#[derive(Debug)]
pub(super) struct Groups {
    columns: Vec<GroupColumn>,
    count: usize,
}

#[derive(Debug)]
struct GroupColumn {
    /// The column of the file.
    place: usize,
    digits: Digits,
    /// How many values it can have.
    count: u32,
    /// What it stands before: the number of groups of the columns behind it.
    weight: u32,
}

#[derive(Debug)]
enum Digits {
    /// Codes of the file's dictionary, whose values these are.
    Codes(ArrayRef),
    /// Integers from this one on.
    From(i64),
}

impl Groups {
    /// Of expressions over what a scan gives; `None` if one is no column whose values are few and
    /// known.
    pub(super) fn new(
        expressions: &[Arc<dyn PhysicalExpr>],
        given: &Given<'_>,
        file: &ProjectionFile,
    ) -> Result<Option<Self>> {
        let mut columns = Vec::with_capacity(expressions.len());
        let mut count = 1_u64;
        // The last column has the lowest digit.
        for expression in expressions.iter().rev() {
            let Some(column) = expression.downcast_ref::<Column>() else {
                return Ok(None);
            };
            let Some(place) = given.place(column) else {
                return Ok(None);
            };
            let is_integer = matches!(
                given.schema.field(column.index()).data_type(),
                DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32
            );
            let (digits, values) = if is_integer {
                let Some((least, greatest)) = given.bounds(column) else {
                    return Ok(None);
                };
                (
                    Digits::From(least),
                    greatest.abs_diff(least).saturating_add(1),
                )
            } else {
                match file.dictionary(place).map_err(failed)? {
                    Some(dictionary) => {
                        let values = dictionary.len() as u64;
                        (Digits::Codes(dictionary.array()), values)
                    }
                    None => return Ok(None),
                }
            };
            let weight = count as u32;
            count = count.saturating_mul(values.max(1));
            if count > GROUPS_MAX {
                return Ok(None);
            }
            columns.push(GroupColumn {
                place,
                digits,
                count: values.max(1) as u32,
                weight,
            });
        }
        columns.reverse();
        Ok(Some(Self {
            columns,
            count: count as usize,
        }))
    }

    /// How many there can be.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether all rows are one group.
    pub(super) fn is_one(&self) -> bool {
        self.columns.is_empty()
    }

    /// The number of the group of each row.
    pub(super) fn number(
        &self,
        file: &ProjectionFile,
        rows: &SomeRows<'_>,
        buffer: &mut Vec<i64>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let count = match rows {
            SomeRows::Range(Range { start, end }) => (end - start) as usize,
            SomeRows::Ascending(rows) => rows.len(),
        };
        out.clear();
        out.resize(count, 0);
        let gone = || DataFusionError::Internal("a column of groups is gone".to_owned());
        for column in &self.columns {
            let weight = column.weight;
            match &column.digits {
                Digits::Codes(_) => {
                    let codes = file.codes(rows.clone(), column.place).map_err(failed)?;
                    let codes = codes.ok_or_else(gone)?;
                    let pairs = out.iter_mut().zip(codes.values());
                    // A code beyond the dictionary would be of damaged bytes; it is counted as the
                    // last one, and finds no place that is not there.
                    pairs.for_each(|(out, code)| *out += weight * (*code).min(column.count - 1));
                }
                Digits::From(least) => {
                    buffer.clear();
                    let read = file.numbers(rows.clone(), column.place, buffer);
                    read.map_err(failed)?.ok_or_else(gone)?;
                    let last = u64::from(column.count - 1);
                    let pairs = out.iter_mut().zip(&*buffer);
                    pairs.for_each(|(out, value)| {
                        let digit = value.wrapping_sub(*least).cast_unsigned().min(last);
                        *out += weight * digit as u32;
                    });
                }
            }
        }
        Ok(())
    }

    /// The values of the columns of some groups, of the types of the fields.
    pub(super) fn values(&self, groups: &[u32], fields: &[Arc<Field>]) -> Result<Vec<ArrayRef>> {
        let columns = self.columns.iter().zip(fields);
        let arrays = columns.map(|(column, field)| {
            let digits = groups
                .iter()
                .map(|group| group / column.weight % column.count);
            let array: ArrayRef = match &column.digits {
                Digits::Codes(values) => {
                    take(values, &UInt32Array::from_iter_values(digits), None)?
                }
                Digits::From(least) => {
                    let values = digits.map(|digit| least.wrapping_add(i64::from(digit)));
                    match field.data_type() {
                        DataType::Int16 => {
                            Arc::new(Int16Array::from_iter_values(values.map(|it| it as i16)))
                        }
                        DataType::Int32 => {
                            Arc::new(Int32Array::from_iter_values(values.map(|it| it as i32)))
                        }
                        DataType::Date32 => {
                            Arc::new(Date32Array::from_iter_values(values.map(|it| it as i32)))
                        }
                        _ => Arc::new(Int64Array::from_iter_values(values)),
                    }
                }
            };
            match array.data_type() == field.data_type() {
                true => Ok(array),
                false => Ok(cast(&array, field.data_type())?),
            }
        });
        arrays.collect()
    }
}
