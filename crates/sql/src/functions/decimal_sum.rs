//! `sum` of decimals that fails on overflow.
//!
//! DataFusion's wraps. Where its result has ten digits more than what is added, no number of rows
//! is enough for that, and it stays; this one takes the place of the others, whose results have the
//! 38 digits that there are (`arithmetic`). It adds 128-bit integers, each addition checked; what
//! comes out has at most 38 digits. A sum that runs over on its way fails too, though later rows
//! might have brought it back.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF,
    Signature, Volatility,
};
use orrery_storage::table::DECIMAL_DIGITS_MAX;

use crate::{Error, SqlState};

/// Digits that DataFusion's sum has more than what it adds.
const DIGITS_OF_ROWS: u8 = 10;
/// The least number of more digits than a decimal has.
const BEYOND: u128 = 10_u128.pow(DECIMAL_DIGITS_MAX as u32);

/// The function for arguments of a type; `None` where DataFusion's does as well.
pub(crate) fn sum_of(argument: &DataType) -> Option<Arc<AggregateUDF>> {
    static SUM: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(DecimalSum {
            signature: Signature::any(1, Volatility::Immutable),
        }))
    });
    let DataType::Decimal128(precision, _) = argument else {
        return None;
    };
    (precision + DIGITS_OF_ROWS > DECIMAL_DIGITS_MAX).then(|| Arc::clone(&SUM))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalSum {
    signature: Signature,
}

impl AggregateUDFImpl for DecimalSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Decimal128(_, scale)] => {
                Ok(DataType::Decimal128(DECIMAL_DIGITS_MAX, *scale))
            }
            other => Err(Error::new(
                SqlState::InternalError,
                format!("a sum of decimals is asked of {other:?}"),
            )
            .into()),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let data_type = args.return_field.data_type().clone();
        Ok(vec![Arc::new(match args.is_distinct {
            true => Field::new_list(
                format_state_name(args.name, "sum distinct"),
                Field::new_list_field(data_type, true),
                false,
            ),
            false => Field::new(format_state_name(args.name, "sum"), data_type, true),
        })])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type().clone();
        if args.is_distinct {
            return Ok(Box::new(DistinctSum {
                values: HashSet::new(),
                data_type,
            }));
        }
        Ok(Box::new(Sum {
            sum: 0,
            rows: 0,
            data_type,
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return Err(Error::unsupported("sum(DISTINCT ...) over a window that moves").into());
        }
        self.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Sums {
            sums: Vec::new(),
            has_rows: Vec::new(),
            data_type: args.return_field.data_type().clone(),
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn out_of_range() -> Error {
    Error::new(SqlState::NumericValueOutOfRange, "numeric field overflow")
        .with_detail(format!("A sum has more than {DECIMAL_DIGITS_MAX} digits."))
}

fn fits(sum: i128) -> Result<i128> {
    if sum.unsigned_abs() < BEYOND {
        Ok(sum)
    } else {
        Err(out_of_range().into())
    }
}

fn scalar(value: Option<i128>, data_type: &DataType) -> Result<ScalarValue> {
    match (value, data_type) {
        (value, DataType::Decimal128(precision, scale)) => {
            let value = value.map(fits).transpose()?;
            Ok(ScalarValue::Decimal128(value, *precision, *scale))
        }
        (_, other) => Err(Error::new(
            SqlState::InternalError,
            format!("a sum of decimals has the type {other}"),
        )
        .into()),
    }
}

/// The sum of the values that are there, and how many these are.
fn add_all(values: &PrimitiveArray<Decimal128Type>) -> Result<(i128, u64)> {
    let mut sum = 0_i128;
    for value in values.iter().flatten() {
        sum = sum.checked_add(value).ok_or_else(out_of_range)?;
    }
    Ok((sum, (values.len() - values.null_count()) as u64))
}

/// One sum.
#[derive(Debug)]
struct Sum {
    sum: i128,
    /// Rows in it; without one it is NULL.
    rows: u64,
    data_type: DataType,
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, rows) = add_all(values[0].as_primitive())?;
        self.sum = self.sum.checked_add(sum).ok_or_else(out_of_range)?;
        self.rows += rows;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (sum, rows) = add_all(values[0].as_primitive())?;
        self.sum = self.sum.checked_sub(sum).ok_or_else(out_of_range)?;
        self.rows -= rows;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar((self.rows > 0).then_some(self.sum), &self.data_type)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// One sum of different values.
#[derive(Debug)]
struct DistinctSum {
    values: HashSet<i128>,
    data_type: DataType,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values: &PrimitiveArray<Decimal128Type> = values[0].as_primitive();
        self.values.extend(values.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = 0_i128;
        for value in &self.values {
            sum = sum.checked_add(*value).ok_or_else(out_of_range)?;
        }
        scalar((!self.values.is_empty()).then_some(sum), &self.data_type)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = Decimal128Array::from_iter_values(self.values.iter().copied());
        let values = values.with_data_type(self.data_type.clone());
        let list = SingleRowListArrayBuilder::new(Arc::new(values));
        Ok(vec![list.build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<i128>()
    }
}

/// Sums of many groups.
#[derive(Debug)]
struct Sums {
    sums: Vec<i128>,
    has_rows: Vec<bool>,
    data_type: DataType,
}

impl GroupsAccumulator for Sums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_count: usize,
    ) -> Result<()> {
        self.sums.resize(groups_count, 0);
        self.has_rows.resize(groups_count, false);
        let values: &PrimitiveArray<Decimal128Type> = values[0].as_primitive();
        let nulls = counted(values, filter);
        let mut runs_over = false;
        let mut add = |group: usize, value: i128| {
            let (sum, is_over) = self.sums[group].overflowing_add(value);
            self.sums[group] = sum;
            self.has_rows[group] = true;
            runs_over |= is_over;
        };
        let rows = groups.iter().zip(values.values());
        match nulls {
            None => rows.for_each(|(&group, &value)| add(group, value)),
            Some(nulls) => rows
                .zip(nulls.iter())
                .filter(|(_, is_counted)| *is_counted)
                .for_each(|((&group, &value), _)| add(group, value)),
        }
        match runs_over {
            true => Err(out_of_range().into()),
            false => Ok(()),
        }
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = emit.take_needed(&mut self.sums);
        let has_rows = emit.take_needed(&mut self.has_rows);
        for sum in &sums {
            fits(*sum)?;
        }
        let nulls = has_rows
            .contains(&false)
            .then(|| NullBuffer::from(has_rows));
        let sums = Decimal128Array::new(sums.into(), nulls);
        Ok(Arc::new(sums.with_data_type(self.data_type.clone())))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_count: usize,
    ) -> Result<()> {
        self.update_batch(states, groups, None, groups_count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values: &PrimitiveArray<Decimal128Type> = values[0].as_primitive();
        let states = Decimal128Array::new(values.values().clone(), counted(values, filter));
        Ok(vec![Arc::new(
            states.with_data_type(self.data_type.clone()),
        )])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.has_rows.capacity()
    }
}

/// The rows that count: not NULL, and true in the filter.
fn counted(
    values: &PrimitiveArray<Decimal128Type>,
    filter: Option<&BooleanArray>,
) -> Option<NullBuffer> {
    let filter = filter.map(|filter| match filter.nulls() {
        Some(nulls) => NullBuffer::from(filter.values() & nulls.inner()),
        None => NullBuffer::from(filter.values().clone()),
    });
    NullBuffer::union(values.nulls(), filter.as_ref())
}
