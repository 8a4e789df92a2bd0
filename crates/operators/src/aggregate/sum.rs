//! `SUM` and `AVG`: addition from integer 0 on, as `+` does it. An error or a value that is no
//! number makes the group's result unbound.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, UInt64Array};
use arrow::datatypes::{Float32Type, Float64Type};
use datafusion_common::Result;
use num_bigint::BigInt;
use orrery_expressions::columns::{Operand, Reading, intern_value, read_ids};
use orrery_expressions::{Arithmetic, Value};
use orrery_term::TermId;
use orrery_term::inline::InlineValue;
use oxsdatatypes::{Decimal, Double, Float, Integer};

use super::groups::{Aggregate, engine, ids_of, split_u64};
use crate::context::QueryContext;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    Sum,
    Average,
}

/// `SUM` or `AVG`.
#[derive(Clone)]
pub(super) struct Sum {
    pub(super) total: Total,
    pub(super) context: Arc<QueryContext>,
}

/// What has been added up.
pub(super) struct Running {
    /// A number, or `None` after an error.
    sum: Option<Value>,
    count: u64,
}

impl Default for Running {
    fn default() -> Self {
        Self {
            sum: Some(Value::integer(0)),
            count: 0,
        }
    }
}

impl Aggregate for Sum {
    type State = Running;
    type Rows = Summands;

    fn read(&self, columns: &[ArrayRef]) -> Result<Summands> {
        if let Some(column) = columns.first() {
            if let Some(floats) = column.as_primitive_opt::<Float32Type>() {
                return Ok(Summands::Floats(floats.clone()));
            }
            if let Some(doubles) = column.as_primitive_opt::<Float64Type>() {
                return Ok(Summands::Doubles(doubles.clone()));
            }
        }
        let ids = ids_of(columns, 0)?;
        let is_inline = |bits: u64| TermId::from_bits(bits).is_inline();
        if ids.null_count() == 0 && ids.values().iter().copied().all(is_inline) {
            return Ok(Summands::Inline(ids));
        }
        read_ids(&ids, Reading::Value, self.context.expressions())
            .map(Summands::Values)
            .map_err(engine)
    }

    #[inline]
    fn update(&self, state: &mut Running, rows: &Summands, row: usize) {
        state.count += 1;
        let Some(sum) = &state.sum else {
            return;
        };
        state.sum = match rows {
            Summands::Inline(ids) => add_inline(sum, TermId::from_bits(ids.value(row))),
            Summands::Floats(floats) => floats
                .is_valid(row)
                .then(|| add_float(sum, floats.value(row).into()))
                .flatten(),
            Summands::Doubles(doubles) => doubles
                .is_valid(row)
                .then(|| add_double(sum, doubles.value(row).into()))
                .flatten(),
            Summands::Values(values) => values.get(row).and_then(|value| add(sum, value)),
        };
    }

    #[inline]
    fn update_in_place(&self, state: &mut Running, rows: &Summands, row: usize) -> bool {
        let Some(sum) = &mut state.sum else {
            return false;
        };
        match (sum, rows) {
            (Value::Integer(sum), Summands::Inline(ids)) => {
                let value = TermId::from_bits(ids.value(row)).integer_value();
                match value.and_then(|value| sum.checked_add(value)) {
                    Some(more) => *sum = more,
                    None => return false,
                }
            }
            (Value::Double(sum), Summands::Doubles(doubles)) if doubles.is_valid(row) => {
                *sum = *sum + Double::from(doubles.value(row));
            }
            _ => return false,
        }
        state.count += 1;
        true
    }

    fn merge(&self, state: &mut Running, other: Running) {
        state.count += other.count;
        state.sum = match (&state.sum, &other.sum) {
            (Some(a), Some(b)) => Arithmetic::Add.apply(a, b),
            _ => None,
        };
    }

    fn result(&self, state: &Running) -> Result<Option<TermId>> {
        let Some(sum) = &state.sum else {
            return Ok(None);
        };
        let result = match self.total {
            Total::Sum => Some(sum.clone()),
            Total::Average => average(sum, state.count),
        };
        result
            .map(|value| intern_value(&value, self.context.expressions()).map_err(engine))
            .transpose()
    }

    fn write(&self, state: &Running, out: &mut Vec<u8>) {
        out.extend_from_slice(&state.count.to_le_bytes());
        match &state.sum {
            Some(Value::Integer(sum)) => {
                out.push(b'i');
                out.extend_from_slice(&sum.to_be_bytes());
            }
            Some(Value::Decimal(sum)) => {
                out.push(b'c');
                out.extend_from_slice(&sum.to_be_bytes());
            }
            Some(Value::LargeInteger(sum)) => {
                out.push(b'I');
                out.extend_from_slice(&sum.to_signed_bytes_be());
            }
            Some(Value::LargeDecimal(raw)) => {
                out.push(b'C');
                out.extend_from_slice(&raw.to_signed_bytes_be());
            }
            Some(Value::Float(sum)) => {
                out.push(b'f');
                out.extend_from_slice(&sum.to_be_bytes());
            }
            Some(Value::Double(sum)) => {
                out.push(b'd');
                out.extend_from_slice(&sum.to_be_bytes());
            }
            _ => out.push(b'e'),
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Running> {
        let (count, rest) = split_u64(bytes)?;
        let (kind, number) = rest.split_first()?;
        let sum = match kind {
            b'i' => Some(Value::Integer(Integer::from_be_bytes(
                number.try_into().ok()?,
            ))),
            b'c' => Some(Value::Decimal(Decimal::from_be_bytes(
                number.try_into().ok()?,
            ))),
            b'I' => Some(Value::LargeInteger(Box::new(BigInt::from_signed_bytes_be(
                number,
            )))),
            b'C' => Some(Value::LargeDecimal(Box::new(BigInt::from_signed_bytes_be(
                number,
            )))),
            b'f' => Some(Value::Float(Float::from_be_bytes(number.try_into().ok()?))),
            b'd' => Some(Value::Double(Double::from_be_bytes(
                number.try_into().ok()?,
            ))),
            _ => None,
        };
        Some(Running { sum, count })
    }

    /// After an error there is no sum, whatever comes.
    fn is_settled(&self, state: &Running) -> bool {
        state.sum.is_none()
    }

    fn heap_bytes(&self, state: &Running) -> usize {
        match &state.sum {
            Some(Value::LargeInteger(number) | Value::LargeDecimal(number)) => {
                size_of::<BigInt>() + number.bits().div_ceil(8) as usize
            }
            _ => 0,
        }
    }
}

/// The argument of a batch.
pub(super) enum Summands {
    /// All in their ids: no need to make values of them.
    Inline(UInt64Array),
    /// Plain `xsd:float`s.
    Floats(Float32Array),
    /// Plain `xsd:double`s.
    Doubles(Float64Array),
    Values(Operand),
}

#[inline]
fn add_inline(sum: &Value, id: TermId) -> Option<Value> {
    if let (Value::Integer(sum), Some(value)) = (sum, id.integer_value())
        && let Some(sum) = sum.checked_add(value)
    {
        return Some(Value::Integer(sum));
    }
    match (sum, id.inline_value()?) {
        (Value::Double(sum), InlineValue::Double(value)) => {
            Some(Value::Double(*sum + Double::from(value)))
        }
        _ => add(sum, &Value::from_inline(id)?),
    }
}

#[inline]
fn add_float(sum: &Value, number: Float) -> Option<Value> {
    match sum {
        Value::Float(sum) => Some(Value::Float(*sum + number)),
        _ => add(sum, &Value::Float(number)),
    }
}

#[inline]
fn add_double(sum: &Value, number: Double) -> Option<Value> {
    match sum {
        Value::Double(sum) => Some(Value::Double(*sum + number)),
        _ => add(sum, &Value::Double(number)),
    }
}

fn add(sum: &Value, value: &Value) -> Option<Value> {
    // Durations add up too, but there is no zero to start from.
    value
        .is_numeric()
        .then(|| Arithmetic::Add.apply(sum, value))
        .flatten()
}

/// The sum by the count, integers as decimals; 0 of nothing.
fn average(sum: &Value, count: u64) -> Option<Value> {
    if count == 0 {
        return Some(Value::integer(0));
    }
    Arithmetic::Divide.apply(sum, &Value::integer(i64::try_from(count).ok()?))
}
