//! The accumulators of dense aggregation: row counts, sums, minima and maxima per group.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, UInt64Array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DataFusionError, Result};

use super::lanes::Numbers;
use crate::OutOfRange;

/// Sums of this many groups are first made of 64 bits, for the rows of a chunk.
const NARROW_GROUPS_MAX: usize = 1024;
/// Each of these stands so many times, for rows that follow each other: most are of one group, and
/// an addition would wait for the one before it.
const LANES: usize = 4;

/// An aggregate of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregate {
    /// Its rows.
    Count,
    /// The sum of a step.
    Sum(usize),
    /// The sum of a step, and the rows.
    Average(usize),
    Least(usize),
    Greatest(usize),
}

/// A value of each group.
#[derive(Debug)]
struct Table {
    step: usize,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Sums, and those of the chunk at hand, where they fit.
    Sum {
        all: Vec<i128>,
        chunk: Option<Vec<[i64; LANES]>>,
    },
    Least(Vec<i64>),
    Greatest(Vec<i64>),
}

/// The tables of one partition.
#[derive(Debug)]
pub(super) struct GroupTables {
    /// One place more than there are groups: for rows that do not pass.
    rows: Vec<u64>,
    /// Those of the chunk at hand, of few groups.
    rows_of_chunk: Option<Vec<[u32; LANES]>>,
    tables: Vec<Table>,
}

impl GroupTables {
    /// For so many groups. `magnitude` is how far a step's values are from zero, at most, and
    /// `chunk_rows` how many rows come at once.
    pub(super) fn new(
        groups: usize,
        aggregates: &[Aggregate],
        magnitude: impl Fn(usize) -> u64,
        chunk_rows: usize,
    ) -> Self {
        let mut made = Self {
            rows: vec![0; groups + 1],
            rows_of_chunk: (groups <= NARROW_GROUPS_MAX).then(|| vec![[0; LANES]; groups + 1]),
            tables: Vec::new(),
        };
        for aggregate in aggregates {
            if made.find(*aggregate).is_some() {
                continue;
            }
            let (step, values) = match *aggregate {
                Aggregate::Count => continue,
                Aggregate::Sum(step) | Aggregate::Average(step) => {
                    let sum = magnitude(step).checked_mul(chunk_rows as u64);
                    let is_narrow = groups <= NARROW_GROUPS_MAX
                        && sum.is_some_and(|sum| sum <= i64::MAX.cast_unsigned());
                    let all = vec![0; groups + 1];
                    let chunk = is_narrow.then(|| vec![[0; LANES]; groups + 1]);
                    (step, Values::Sum { all, chunk })
                }
                Aggregate::Least(step) => (step, Values::Least(vec![i64::MAX; groups + 1])),
                Aggregate::Greatest(step) => (step, Values::Greatest(vec![i64::MIN; groups + 1])),
            };
            made.tables.push(Table { step, values });
        }
        made
    }

    /// The bytes of such tables.
    pub(super) fn bytes(groups: usize, aggregates: &[Aggregate]) -> usize {
        const ROWS: usize = size_of::<u64>() + LANES * size_of::<u32>();
        const SUM: usize = size_of::<i128>() + LANES * size_of::<i64>();
        (groups + 1).saturating_mul(ROWS + SUM * aggregates.len())
    }

    fn find(&self, aggregate: Aggregate) -> Option<&Table> {
        self.tables
            .iter()
            .find(|table| match (&table.values, aggregate) {
                (Values::Sum { .. }, Aggregate::Sum(step) | Aggregate::Average(step))
                | (Values::Least(_), Aggregate::Least(step))
                | (Values::Greatest(_), Aggregate::Greatest(step)) => table.step == step,
                _ => false,
            })
    }

    /// Adds rows with the numbers of their groups, of which the last stands for none.
    pub(super) fn add(&mut self, groups: &[u32], numbers: &Numbers) {
        match &mut self.rows_of_chunk {
            Some(chunk) => {
                let (fours, rest) = groups.as_chunks::<LANES>();
                for four in fours {
                    for lane in 0..LANES {
                        chunk[four[lane] as usize][lane] += 1;
                    }
                }
                rest.iter().for_each(|group| chunk[*group as usize][0] += 1);
                for (all, chunk) in self.rows.iter_mut().zip(chunk) {
                    let lanes = std::mem::take(chunk);
                    *all += lanes.into_iter().map(u64::from).sum::<u64>();
                }
            }
            None => groups
                .iter()
                .for_each(|group| self.rows[*group as usize] += 1),
        }
        for table in &mut self.tables {
            let values = numbers.of(table.step);
            let pairs = groups.iter().zip(values);
            match &mut table.values {
                Values::Sum {
                    all,
                    chunk: Some(chunk),
                } => {
                    add_in_lanes(groups, values, chunk);
                    for (all, chunk) in all.iter_mut().zip(chunk) {
                        let lanes = std::mem::take(chunk);
                        *all += lanes.into_iter().map(i128::from).sum::<i128>();
                    }
                }
                Values::Sum { all, chunk: None } => {
                    pairs.for_each(|(group, value)| all[*group as usize] += i128::from(*value));
                }
                Values::Least(all) => pairs.for_each(|(group, value)| {
                    let least = &mut all[*group as usize];
                    *least = (*least).min(*value);
                }),
                Values::Greatest(all) => pairs.for_each(|(group, value)| {
                    let greatest = &mut all[*group as usize];
                    *greatest = (*greatest).max(*value);
                }),
            }
        }
    }

    /// Adds rows of the one group that there is.
    pub(super) fn add_all(&mut self, rows: usize, numbers: &Numbers) {
        self.rows[0] += rows as u64;
        for table in &mut self.tables {
            let values = numbers.of(table.step);
            match &mut table.values {
                Values::Sum {
                    all,
                    chunk: Some(_),
                } => {
                    all[0] += i128::from(values.iter().sum::<i64>());
                }
                Values::Sum { all, chunk: None } => {
                    all[0] += values.iter().map(|value| i128::from(*value)).sum::<i128>();
                }
                Values::Least(all) => all[0] = values.iter().fold(all[0], |a, b| a.min(*b)),
                Values::Greatest(all) => all[0] = values.iter().fold(all[0], |a, b| a.max(*b)),
            }
        }
    }

    /// The groups that have rows.
    pub(super) fn found(&self) -> Vec<u32> {
        let groups = self.rows.len() - 1;
        let rows = self.rows[..groups].iter().enumerate();
        let found = rows.filter(|(_, rows)| **rows > 0);
        found.map(|(group, _)| group as u32).collect()
    }

    /// The states of an aggregate of some groups, of the types of the fields.
    pub(super) fn states(
        &self,
        aggregate: Aggregate,
        groups: &[u32],
        fields: &[Arc<Field>],
    ) -> Result<Vec<ArrayRef>> {
        let counts = || groups.iter().map(|group| self.rows[*group as usize]);
        let empty = counts().any(|rows| rows == 0);
        let nulls =
            empty.then(|| NullBuffer::new(BooleanBuffer::from_iter(counts().map(|rows| rows > 0))));
        let values = |field: &Field| -> Result<ArrayRef> {
            let Some(table) = self.find(aggregate) else {
                return Err(DataFusionError::Internal(
                    "an aggregate has no table".to_owned(),
                ));
            };
            let all = groups.iter().map(|group| match &table.values {
                Values::Sum { all, .. } => all[*group as usize],
                Values::Least(all) | Values::Greatest(all) => i128::from(all[*group as usize]),
            });
            array(all, field.data_type(), nulls.clone())
        };
        Ok(match (aggregate, fields) {
            (Aggregate::Count, [_]) => {
                let counts = counts().map(|rows| rows as i64);
                vec![Arc::new(Int64Array::from_iter_values(counts))]
            }
            (Aggregate::Average(_), [_, sum]) => {
                vec![
                    Arc::new(UInt64Array::from_iter_values(counts())),
                    values(sum)?,
                ]
            }
            (_, fields) => fields
                .iter()
                .map(|field| values(field))
                .collect::<Result<_>>()?,
        })
    }
}

fn add_in_lanes(groups: &[u32], values: &[i64], sums: &mut [[i64; LANES]]) {
    let (group_fours, groups) = groups.as_chunks::<LANES>();
    let (value_fours, values) = values.as_chunks::<LANES>();
    for (groups, values) in group_fours.iter().zip(value_fours) {
        for lane in 0..LANES {
            sums[groups[lane] as usize][lane] += values[lane];
        }
    }
    for (group, value) in groups.iter().zip(values) {
        sums[*group as usize][0] += value;
    }
}

/// Numbers as values of a type.
fn array(
    values: impl Iterator<Item = i128>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let mut runs_over = false;
    let mut narrow = Vec::new();
    let mut wide = Vec::new();
    let is_decimal = matches!(data_type, DataType::Decimal128(..));
    for (row, value) in values.enumerate() {
        let value = if is_null(row) { 0 } else { value };
        match is_decimal {
            true => wide.push(value),
            false => {
                let value = i64::try_from(value);
                runs_over |= value.is_err();
                narrow.push(value.unwrap_or(0));
            }
        }
    }
    if runs_over {
        return Err(DataFusionError::External(Box::new(OutOfRange("bigint"))));
    }
    Ok(match data_type {
        DataType::Decimal128(precision, scale) => Arc::new(
            Decimal128Array::new(wide.into(), nulls)
                .with_precision_and_scale(*precision, *scale)?,
        ),
        DataType::Int16 => {
            let values: Vec<i16> = narrow.into_iter().map(|it| it as i16).collect();
            Arc::new(Int16Array::new(values.into(), nulls))
        }
        DataType::Int32 => {
            let values: Vec<i32> = narrow.into_iter().map(|it| it as i32).collect();
            Arc::new(Int32Array::new(values.into(), nulls))
        }
        DataType::Date32 => {
            let values: Vec<i32> = narrow.into_iter().map(|it| it as i32).collect();
            Arc::new(Date32Array::new(values.into(), nulls))
        }
        _ => Arc::new(Int64Array::new(narrow.into(), nulls)),
    })
}
