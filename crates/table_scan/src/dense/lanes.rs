//! Arithmetic on number columns in 64-bit integers that provably cannot overflow.
//!
//! An expression becomes steps, each with the least and the greatest value that it can have; equal
//! ones are one step. A decimal is its digits, as an integer: what its scale is stands in its type,
//! and a step that changes the scale is a multiplication.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use orrery_storage::table::{ColumnId, Projection, ProjectionFile, SomeRows};

use super::super::compared::number_of;
use super::super::failed;
use super::super::told;

/// Steps of all expressions of an aggregation, at most.
const STEPS_MAX: usize = 64;

/// A number of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Of the column of the file.
    Column(usize),
    /// The same for all.
    Constant(i64),
    Sum(usize, usize),
    Difference(usize, usize),
    Product(usize, usize),
}

/// Expressions over the columns of a scan, as steps.
#[derive(Debug)]
pub(super) struct Lanes {
    steps: Vec<Step>,
    bounds: Vec<Bounds>,
}

/// The least and the greatest value of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    least: i64,
    greatest: i64,
}

impl Bounds {
    /// Of some numbers; `None` if one of them is none of 64 bits.
    fn of(numbers: &[i128]) -> Option<Self> {
        let least = numbers.iter().min()?;
        let greatest = numbers.iter().max()?;
        Some(Self {
            least: i64::try_from(*least).ok()?,
            greatest: i64::try_from(*greatest).ok()?,
        })
    }

    /// The greatest distance from zero.
    pub(super) fn magnitude(self) -> u64 {
        self.least.unsigned_abs().max(self.greatest.unsigned_abs())
    }

    fn all(self) -> [i128; 2] {
        [i128::from(self.least), i128::from(self.greatest)]
    }
}

/// What expressions are over: the columns that a scan gives.
pub(super) struct Given<'g> {
    pub(super) projection: &'g Projection,
    pub(super) columns: &'g [ColumnId],
    pub(super) schema: &'g Schema,
}

impl Given<'_> {
    /// The place of a column in the file, if that has it and none of its rows is NULL.
    pub(super) fn place(&self, column: &Column) -> Option<usize> {
        let id = self.columns.get(column.index())?;
        let place = self.projection.layout().position(*id)?;
        let known = self.projection.file()?.column_statistics(place)?;
        (known.nulls == 0).then_some(place)
    }

    /// Its bounds, if it has numbers.
    pub(super) fn bounds(&self, column: &Column) -> Option<(i64, i64)> {
        let id = self.columns.get(column.index())?;
        let place = self.projection.layout().position(*id)?;
        self.projection.file()?.has_numbers(place).then_some(())?;
        let (least, greatest) = told::bounds(self.projection, *id)?;
        Some((number_of(&least)?, number_of(&greatest)?))
    }
}

/// Digits behind the point of a type whose values are numbers here.
fn scale(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(0),
        DataType::Decimal128(_, scale) => u32::try_from(*scale).ok(),
        _ => None,
    }
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            steps: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// The step that an expression is; `None` if it is none of numbers, or could run over 64 bits.
    pub(super) fn step(
        &mut self,
        expr: &Arc<dyn PhysicalExpr>,
        given: &Given<'_>,
    ) -> Option<usize> {
        let data_type = expr.data_type(given.schema).ok()?;
        if let Some(column) = expr.downcast_ref::<Column>() {
            let (least, greatest) = given.bounds(column)?;
            let place = given.place(column)?;
            return self.push(Step::Column(place), Bounds { least, greatest });
        }
        let scale_of = |expr: &Arc<dyn PhysicalExpr>| scale(&expr.data_type(given.schema).ok()?);
        let of_result = scale(&data_type)?;
        let made = if let Some(literal) = expr.downcast_ref::<Literal>() {
            self.constant(number_of(literal.value())?)
        } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let inner = self.step(cast.expr(), given)?;
            self.scaled(inner, scale_of(cast.expr())?, of_result)
        } else {
            let binary = expr.downcast_ref::<BinaryExpr>()?;
            let scales = (scale_of(binary.left())?, scale_of(binary.right())?);
            // Integers are added up by functions that fail where these run over.
            matches!(data_type, DataType::Decimal128(..)).then_some(())?;
            let left = self.step(binary.left(), given)?;
            let right = self.step(binary.right(), given)?;
            match binary.op() {
                Operator::Plus | Operator::Minus => {
                    let left = self.scaled(left, scales.0, of_result)?;
                    let right = self.scaled(right, scales.1, of_result)?;
                    match binary.op() {
                        Operator::Plus => self.sum(left, right),
                        _ => self.difference(left, right),
                    }
                }
                Operator::Multiply if scales.0 + scales.1 == of_result => self.product(left, right),
                _ => None,
            }
        }?;
        self.fits(made, &data_type).then_some(made)
    }

    pub(super) fn bounds(&self, step: usize) -> Bounds {
        self.bounds[step]
    }

    /// Whether all values of a step are values of a type.
    fn fits(&self, step: usize, data_type: &DataType) -> bool {
        let Bounds { least, greatest } = self.bounds[step];
        match data_type {
            DataType::Decimal128(digits, _) => {
                let magnitude = u128::from(self.bounds[step].magnitude());
                10_u128
                    .checked_pow(u32::from(*digits))
                    .is_none_or(|beyond| magnitude < beyond)
            }
            DataType::Int16 => least >= i64::from(i16::MIN) && greatest <= i64::from(i16::MAX),
            DataType::Int32 => least >= i64::from(i32::MIN) && greatest <= i64::from(i32::MAX),
            _ => true,
        }
    }

    fn constant(&mut self, value: i64) -> Option<usize> {
        let bounds = Bounds {
            least: value,
            greatest: value,
        };
        self.push(Step::Constant(value), bounds)
    }

    fn scaled(&mut self, step: usize, from: u32, to: u32) -> Option<usize> {
        match to.checked_sub(from)? {
            0 => Some(step),
            more => {
                let factor = self.constant(10_i64.checked_pow(more)?)?;
                self.product(step, factor)
            }
        }
    }

    fn sum(&mut self, left: usize, right: usize) -> Option<usize> {
        let (a, b) = (self.bounds[left].all(), self.bounds[right].all());
        let bounds = Bounds::of(&[a[0] + b[0], a[1] + b[1]])?;
        self.push(Step::Sum(left, right), bounds)
    }

    fn difference(&mut self, left: usize, right: usize) -> Option<usize> {
        let (a, b) = (self.bounds[left].all(), self.bounds[right].all());
        let bounds = Bounds::of(&[a[0] - b[1], a[1] - b[0]])?;
        self.push(Step::Difference(left, right), bounds)
    }

    fn product(&mut self, left: usize, right: usize) -> Option<usize> {
        let (a, b) = (self.bounds[left].all(), self.bounds[right].all());
        let bounds = Bounds::of(&[a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]])?;
        self.push(Step::Product(left, right), bounds)
    }

    /// What has one value is a constant.
    fn push(&mut self, step: Step, bounds: Bounds) -> Option<usize> {
        let is_computed = !matches!(step, Step::Column(_));
        let step = match is_computed && bounds.least == bounds.greatest {
            true => Step::Constant(bounds.least),
            false => step,
        };
        if let Some(known) = self.steps.iter().position(|other| *other == step) {
            return Some(known);
        }
        self.steps.push(step);
        self.bounds.push(bounds);
        (self.steps.len() <= STEPS_MAX).then(|| self.steps.len() - 1)
    }

    /// Computes all steps for rows of the file.
    pub(super) fn compute(
        &self,
        file: &ProjectionFile,
        rows: &SomeRows<'_>,
        numbers: &mut Numbers,
    ) -> Result<()> {
        let count = match rows {
            SomeRows::Range(Range { start, end }) => (end - start) as usize,
            SomeRows::Ascending(rows) => rows.len(),
        };
        numbers.buffers.resize_with(self.steps.len(), Vec::new);
        for (place, step) in self.steps.iter().enumerate() {
            let (before, rest) = numbers.buffers.split_at_mut(place);
            let Some(out) = rest.first_mut() else {
                continue;
            };
            out.clear();
            match *step {
                // What uses it knows it.
                Step::Constant(_) => {}
                Step::Column(column) => {
                    let read = file.numbers(rows.clone(), column, out).map_err(failed)?;
                    read.ok_or_else(|| {
                        DataFusionError::Internal("a column of numbers is gone".to_owned())
                    })?;
                }
                Step::Sum(left, right) => {
                    self.combine(before, left, right, out, |a, b| a.wrapping_add(b));
                }
                Step::Difference(left, right) => {
                    self.combine(before, left, right, out, |a, b| a.wrapping_sub(b));
                }
                Step::Product(left, right) => {
                    self.combine(before, left, right, out, |a, b| a.wrapping_mul(b));
                }
            }
        }
        // Constants that are asked for by themselves.
        for (step, buffer) in self.steps.iter().zip(&mut numbers.buffers) {
            if let Step::Constant(value) = step {
                buffer.resize(count, *value);
            }
        }
        Ok(())
    }

    /// Wrapping where it cannot come to that is what a compiler makes vector instructions of.
    fn combine(
        &self,
        before: &[Vec<i64>],
        left: usize,
        right: usize,
        out: &mut Vec<i64>,
        of: impl Fn(i64, i64) -> i64,
    ) {
        match (self.steps[left], self.steps[right]) {
            (Step::Constant(a), _) => out.extend(before[right].iter().map(|b| of(a, *b))),
            (_, Step::Constant(b)) => out.extend(before[left].iter().map(|a| of(*a, b))),
            _ => {
                let pairs = before[left].iter().zip(&before[right]);
                out.extend(pairs.map(|(a, b)| of(*a, *b)));
            }
        }
    }
}

/// The numbers of some rows, for each step.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    buffers: Vec<Vec<i64>>,
}

impl Numbers {
    pub(super) fn of(&self, step: usize) -> &[i64] {
        &self.buffers[step]
    }
}
