//! `SUM` and `AVG`: addition as `+` does it, from integer 0 on. An error or a value that is no number
//! makes the group's result unbound.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::Result;
use orrery_term::TermId;
use oxsdatatypes::{Decimal, Double, Float, Integer};

use super::groups::{Aggregate, engine, ids_of, split_u64};
use crate::context::QueryContext;
use crate::expression::Arithmetic;
use crate::expression::column::{Operand, Reading, intern_value, read_ids};
use crate::expression::value::Value;

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
    type Rows = Operand;

    fn read(&self, columns: &[ArrayRef]) -> Result<Operand> {
        read_ids(&ids_of(columns, 0)?, Reading::Value, &self.context).map_err(engine)
    }

    #[inline]
    fn update(&self, state: &mut Running, rows: &Operand, row: usize) {
        state.count += 1;
        if let Some(sum) = &state.sum {
            state.sum = rows
                .get(row)
                .filter(|value| value.is_numeric())
                .and_then(|value| Arithmetic::Add.apply(sum, value));
        }
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
            .map(|value| intern_value(&value, &self.context).map_err(engine))
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
            b'f' => Some(Value::Float(Float::from_be_bytes(number.try_into().ok()?))),
            b'd' => Some(Value::Double(Double::from_be_bytes(
                number.try_into().ok()?,
            ))),
            _ => None,
        };
        Some(Running { sum, count })
    }

    fn heap_bytes(&self, _: &Running) -> usize {
        0
    }
}

/// The sum by the count, integers as decimals; 0 of nothing.
fn average(sum: &Value, count: u64) -> Option<Value> {
    if count == 0 {
        return Some(Value::integer(0));
    }
    Arithmetic::Divide.apply(sum, &Value::integer(i64::try_from(count).ok()?))
}
