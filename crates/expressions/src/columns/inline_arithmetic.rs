//! Arithmetic over columns of inline integers and doubles, from id to id.
//!
//! The common case of arithmetic in a filter (`?a < ?b + 120`). As soon as one row is something
//! else, or its result does not fit into an id, the whole batch goes the general way over values:
//! this one is three times as quick, and need not know any rule of the other.

use arrow::array::{Array, UInt64Array};
use orrery_term::TermId;
use orrery_term::inline::InlineValue;

use crate::columns::column::Column;
use crate::values::operator::Arithmetic;

/// An operand of every row.
enum InlineOperand<'a> {
    Ids(&'a UInt64Array),
    Constant(InlineNumber),
}

#[derive(Clone, Copy)]
enum InlineNumber {
    Integer(i64),
    Double(f64),
}

impl InlineNumber {
    #[inline]
    fn of(id: TermId) -> Option<Self> {
        if let Some(value) = id.integer_value() {
            return Some(Self::Integer(value));
        }
        match id.inline_value()? {
            InlineValue::Double(value) => Some(Self::Double(value)),
            _ => None,
        }
    }

    fn double(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}

impl<'a> InlineOperand<'a> {
    fn of(column: &'a Column) -> Option<Self> {
        match column {
            Column::Ids(ids) => Some(Self::Ids(ids)),
            Column::Constant(Some(constant)) => InlineNumber::of(constant.id).map(Self::Constant),
            _ => None,
        }
    }

    fn has_nulls(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.null_count() > 0)
    }

    /// Whether a side without nulls has the same id in every row.
    fn is_uniform(&self) -> bool {
        match self {
            // Most columns that are not show it at their ends.
            Self::Ids(ids) => match (ids.values().first(), ids.values().last()) {
                (Some(first), Some(last)) if first == last => {
                    ids.values().iter().fold(0, |seen, id| seen | (id ^ first)) == 0
                }
                _ => false,
            },
            Self::Constant(_) => true,
        }
    }

    /// The operand of a row: outer `None` if it is no inline integer or double, inner if it is
    /// null.
    #[inline]
    fn get(&self, row: usize) -> Option<Option<InlineNumber>> {
        match self {
            Self::Ids(ids) if ids.is_null(row) => Some(None),
            Self::Ids(ids) => InlineNumber::of(TermId::from_bits(ids.value(row))).map(Some),
            Self::Constant(number) => Some(Some(*number)),
        }
    }
}

/// The results of all rows, if all of them are inline integers or doubles. Operands that are the
/// same in every row (the one product that all others are compared with) are computed with once.
pub(crate) fn apply_inline(
    operator: Arithmetic,
    left: &Column,
    right: &Column,
    rows: usize,
) -> Option<UInt64Array> {
    let (left, right) = (InlineOperand::of(left)?, InlineOperand::of(right)?);
    let result = |row| match (left.get(row)?, right.get(row)?) {
        (Some(a), Some(b)) => Some(Some(apply(operator, a, b)?.bits())),
        _ => Some(None),
    };
    if left.has_nulls() || right.has_nulls() {
        return (0..rows).map(result).collect();
    }
    if rows > 0 && left.is_uniform() && right.is_uniform() {
        return Some(UInt64Array::from_value(result(0)??, rows));
    }
    let results: Option<Vec<u64>> = (0..rows).map(|row| result(row)?).collect();
    results.map(UInt64Array::from)
}

#[inline]
fn apply(operator: Arithmetic, a: InlineNumber, b: InlineNumber) -> Option<TermId> {
    if let (InlineNumber::Integer(a), InlineNumber::Integer(b)) = (a, b) {
        return TermId::integer(match operator {
            Arithmetic::Add => a.checked_add(b)?,
            Arithmetic::Subtract => a.checked_sub(b)?,
            Arithmetic::Multiply => a.checked_mul(b)?,
            // Integers divide to a decimal.
            Arithmetic::Divide => return None,
        });
    }
    let (a, b) = (a.double(), b.double());
    TermId::double(match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
    })
}
