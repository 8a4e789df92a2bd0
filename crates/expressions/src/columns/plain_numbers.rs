//! Casts, arithmetic and comparisons over columns of plain `xsd:float`s and `xsd:double`s.
//!
//! A float has no place inside an id, so that a value of its own a row, and a term of the query at
//! the end, is dear: 100 to 200 ns. `xsd:float(?count) / ?all` over ids of integers is a column of
//! numbers from the cast to the sort key (1 to 2 ns a row). What is not plain in a whole column
//! (decimals, numbers outside of their ids, text) goes the general way over values, whose results
//! these are: operands meet in the wider type, and a null is an error.

use arrow::array::{Array, ArrowPrimitiveType, BooleanArray, Float32Array, PrimitiveArray};
use arrow::compute::{binary, unary};
use arrow::datatypes::{Float32Type, Float64Type};
use orrery_term::TermId;
use orrery_term::inline::InlineValue;

use crate::columns::column::{Column, Reading};
use crate::columns::lexical_numbers::NumberType;
use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::compare::TermComparison;
use crate::values::operator::Arithmetic;
use crate::values::value::Value;

/// An operand in the type in which both sides meet.
enum PlainOperand<P: ArrowPrimitiveType> {
    Column(PrimitiveArray<P>),
    Constant(P::Native),
}

/// A type of plain numbers.
trait Plain: ArrowPrimitiveType + Sized {
    /// The number of an inline id, if it is one of those that this type takes in without loss of
    /// type.
    fn of_id(id: TermId) -> Option<Self::Native>;
    /// The number of a value of this type or a narrower one.
    fn of_value(value: &Value) -> Option<Self::Native>;
    /// The column's numbers if it has plain ones that this type takes in.
    fn of_column(column: &Column) -> Option<PrimitiveArray<Self>>;
}

impl Plain for Float32Type {
    #[inline]
    fn of_id(id: TermId) -> Option<f32> {
        id.integer_value().map(|value| value as f32)
    }

    fn of_value(value: &Value) -> Option<f32> {
        match value {
            Value::Integer(value) => Some(i64::from(*value) as f32),
            Value::Float(value) => Some((*value).into()),
            _ => None,
        }
    }

    fn of_column(column: &Column) -> Option<Float32Array> {
        match column {
            Column::Floats(numbers) => Some(numbers.clone()),
            _ => None,
        }
    }
}

impl Plain for Float64Type {
    #[inline]
    fn of_id(id: TermId) -> Option<f64> {
        match id.integer_value() {
            Some(value) => Some(value as f64),
            None => match id.inline_value()? {
                InlineValue::Double(value) => Some(value),
                _ => None,
            },
        }
    }

    fn of_value(value: &Value) -> Option<f64> {
        match value {
            Value::Integer(value) => Some(i64::from(*value) as f64),
            Value::Float(value) => Some(f32::from(*value).into()),
            Value::Double(value) => Some((*value).into()),
            _ => None,
        }
    }

    fn of_column(column: &Column) -> Option<PrimitiveArray<Self>> {
        match column {
            Column::Floats(numbers) => Some(unary(numbers, f64::from)),
            Column::Doubles(numbers) => Some(numbers.clone()),
            _ => None,
        }
    }
}

impl<P: Plain> PlainOperand<P> {
    fn of(column: &Column) -> Option<Self> {
        Some(match column {
            Column::Ids(ids) if ids.null_count() == 0 => {
                let numbers = ids.values().iter();
                let numbers: Option<Vec<P::Native>> = numbers
                    .map(|&bits| P::of_id(TermId::from_bits(bits)))
                    .collect();
                Self::Column(PrimitiveArray::new(numbers?.into(), None))
            }
            Column::Ids(ids) => {
                let number = |bits: Option<u64>| match bits {
                    Some(bits) => P::of_id(TermId::from_bits(bits)).map(Some),
                    None => Some(None),
                };
                Self::Column(ids.iter().map(number).collect::<Option<_>>()?)
            }
            Column::Constant(constant) => Self::Constant(P::of_value(&constant.as_ref()?.value)?),
            other => Self::Column(P::of_column(other)?),
        })
    }

    /// A result for each row; `None` for two constants, which the compiler has folded.
    fn with(
        self,
        right: Self,
        result: impl Fn(P::Native, P::Native) -> P::Native,
    ) -> Option<PrimitiveArray<P>> {
        match (self, right) {
            (Self::Column(left), Self::Column(right)) => binary(&left, &right, result).ok(),
            (Self::Column(left), Self::Constant(right)) => Some(unary(&left, |a| result(a, right))),
            (Self::Constant(left), Self::Column(right)) => Some(unary(&right, |b| result(left, b))),
            (Self::Constant(_), Self::Constant(_)) => None,
        }
    }

    /// The operand of a row.
    fn get(&self, row: usize) -> Option<P::Native> {
        match self {
            Self::Column(numbers) => numbers.is_valid(row).then(|| numbers.value(row)),
            Self::Constant(number) => Some(*number),
        }
    }
}

/// The type in which two columns meet of which one at least is plain; `None` if none is.
fn meeting(left: &Column, right: &Column) -> Option<NumberType> {
    let is_double = |column: &Column| match column {
        Column::Doubles(_) => true,
        Column::Constant(Some(constant)) => matches!(constant.value, Value::Double(_)),
        _ => false,
    };
    let is_plain = |column: &Column| matches!(column, Column::Floats(_) | Column::Doubles(_));
    if !is_plain(left) && !is_plain(right) {
        return None;
    }
    Some(match is_double(left) || is_double(right) {
        true => NumberType::Double,
        false => NumberType::Float,
    })
}

/// `+ - * /` if one side is plain and the other can be taken in.
pub(crate) fn apply_plain(operator: Arithmetic, left: &Column, right: &Column) -> Option<Column> {
    match meeting(left, right)? {
        NumberType::Float => {
            let (left, right) = (
                PlainOperand::<Float32Type>::of(left)?,
                PlainOperand::of(right)?,
            );
            let results = match operator {
                Arithmetic::Add => left.with(right, |a, b| a + b),
                Arithmetic::Subtract => left.with(right, |a, b| a - b),
                Arithmetic::Multiply => left.with(right, |a, b| a * b),
                Arithmetic::Divide => left.with(right, |a, b| a / b),
            };
            results.map(Column::Floats)
        }
        NumberType::Double => {
            let (left, right) = (
                PlainOperand::<Float64Type>::of(left)?,
                PlainOperand::of(right)?,
            );
            let results = match operator {
                Arithmetic::Add => left.with(right, |a, b| a + b),
                Arithmetic::Subtract => left.with(right, |a, b| a - b),
                Arithmetic::Multiply => left.with(right, |a, b| a * b),
                Arithmetic::Divide => left.with(right, |a, b| a / b),
            };
            results.map(Column::Doubles)
        }
    }
}

/// A comparison if one side is plain and the other can be taken in.
pub(crate) fn compare_plain(
    question: TermComparison,
    left: &Column,
    right: &Column,
    rows: usize,
) -> Option<BooleanArray> {
    Some(match meeting(left, right)? {
        NumberType::Float => {
            let (left, right) = (
                PlainOperand::<Float32Type>::of(left)?,
                PlainOperand::<Float32Type>::of(right)?,
            );
            (0..rows)
                .map(|row| Some(question.of_order(left.get(row)?.partial_cmp(&right.get(row)?))))
                .collect()
        }
        NumberType::Double => {
            let (left, right) = (
                PlainOperand::<Float64Type>::of(left)?,
                PlainOperand::<Float64Type>::of(right)?,
            );
            (0..rows)
                .map(|row| Some(question.of_order(left.get(row)?.partial_cmp(&right.get(row)?))))
                .collect()
        }
    })
}

/// The cast of a column to plain numbers; `of_value` is the cast of one value, an error where it
/// gives none.
pub(crate) fn cast_to_plain(
    number_type: NumberType,
    of_value: fn(&[&Value]) -> Option<Value>,
    column: Column,
    rows: usize,
    context: &ExpressionContext,
) -> Result<Column> {
    let is_plain = matches!(column, Column::Ids(_) | Column::Floats(_));
    match number_type {
        NumberType::Float if is_plain => {
            if let Some(PlainOperand::Column(numbers)) = PlainOperand::<Float32Type>::of(&column) {
                return Ok(Column::Floats(numbers));
            }
        }
        NumberType::Double if is_plain => {
            if let Some(PlainOperand::Column(numbers)) = PlainOperand::<Float64Type>::of(&column) {
                return Ok(Column::Doubles(numbers));
            }
        }
        NumberType::Float | NumberType::Double => {}
    }
    let operand = column.into_operand(Reading::Value, context)?;
    let values = (0..rows).map(|row| of_value(&[operand.get(row)?]));
    Ok(match number_type {
        NumberType::Float => {
            Column::Floats(values.map(|value| Float32Type::of_value(&value?)).collect())
        }
        NumberType::Double => {
            Column::Doubles(values.map(|value| Float64Type::of_value(&value?)).collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, UInt64Array};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::columns::column::Constant;
    use crate::values::compare::Comparison;

    /// Numbers in which overflow, both zeros and NaN are not rare.
    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => (-50i32..50).prop_map(|value| f64::from(value) / 4.0),
            1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), Just(3e38), Just(1e300)],
        ]
    }

    /// A column in one of the forms, of which the first is always plain, and the values of its
    /// rows.
    fn column(rows: usize) -> impl Strategy<Value = (Column, Vec<Option<Value>>)> {
        let numbers = vec(option::weighted(0.9, number()), rows);
        (0..6, numbers).prop_map(move |(form, numbers)| {
            let whole = |number: f64| number.clamp(-1e6, 1e6) as i64;
            let of = |value: &dyn Fn(f64) -> Value| -> Vec<Option<Value>> {
                numbers.iter().map(|number| number.map(value)).collect()
            };
            match form {
                0 => {
                    let floats = numbers.iter().map(|number| number.map(|it| it as f32));
                    let values = of(&|number| Value::Float((number as f32).into()));
                    (Column::Floats(floats.collect()), values)
                }
                1 => {
                    let doubles: Float64Array = numbers.iter().copied().collect();
                    (
                        Column::Doubles(doubles),
                        of(&|number| Value::Double(number.into())),
                    )
                }
                2 => {
                    let id = |number| TermId::integer(whole(number)).unwrap().bits();
                    let ids: UInt64Array = numbers.iter().map(|number| number.map(id)).collect();
                    (
                        Column::Ids(ids),
                        of(&|number| Value::integer(whole(number))),
                    )
                }
                3 => {
                    let finite = |number: f64| if number.is_finite() { number } else { 0.5 };
                    let short = move |number| finite(number).clamp(-1e6, 1e6) + 0.0;
                    let id = |number| TermId::double(short(number)).unwrap().bits();
                    let ids: UInt64Array = numbers.iter().map(|number| number.map(id)).collect();
                    (
                        Column::Ids(ids),
                        of(&|number| Value::Double(short(number).into())),
                    )
                }
                form => {
                    let value = match form {
                        4 => Value::integer(7),
                        _ => Value::Double(0.25.into()),
                    };
                    let constant = Constant {
                        id: value.to_inline().unwrap(),
                        written: value.clone(),
                        value: value.clone(),
                    };
                    let values = vec![Some(value); rows];
                    (Column::Constant(Some(Arc::new(constant))), values)
                }
            }
        })
    }

    fn values_of(column: &Column) -> Vec<Option<Value>> {
        match column {
            Column::Floats(numbers) => numbers
                .iter()
                .map(|it| it.map(|it| Value::Float(it.into())))
                .collect(),
            Column::Doubles(numbers) => numbers
                .iter()
                .map(|it| it.map(|it| Value::Double(it.into())))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    /// As text, so that NaN is equal to itself and the zeros differ.
    fn texts(values: &[Option<Value>]) -> Vec<String> {
        values.iter().map(|value| format!("{value:?}")).collect()
    }

    proptest! {
        #[test]
        fn results_are_those_of_the_values(
            ((left, left_values), (right, right_values)) in
                (1usize..20).prop_flat_map(|rows| (column(rows), column(rows))),
        ) {
            let rows = left_values.len();
            let pairs = || left_values.iter().zip(&right_values);
            for operator in [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Divide] {
                if let Some(results) = apply_plain(operator, &left, &right) {
                    let expected: Vec<Option<Value>> = pairs()
                        .map(|(a, b)| operator.apply(a.as_ref()?, b.as_ref()?))
                        .collect();
                    prop_assert_eq!(texts(&values_of(&results)), texts(&expected));
                }
            }
            for question in [
                TermComparison::Equal,
                TermComparison::Order(Comparison::Less),
                TermComparison::Order(Comparison::GreaterOrEqual),
            ] {
                if let Some(answers) = compare_plain(question, &left, &right, rows) {
                    let expected: BooleanArray = pairs()
                        .map(|(a, b)| question.answer(a.as_ref()?, b.as_ref()?))
                        .collect();
                    prop_assert_eq!(answers, expected);
                }
            }
        }
    }

    #[test]
    fn floats_meet_integers_and_doubles_and_nothing_meets_without_a_plain_side() {
        let floats = Column::Floats(vec![1.5, 2.5].into());
        let doubles = Column::Doubles(vec![1.5, 2.5].into());
        let ids = |ids: [TermId; 2]| Column::Ids(UInt64Array::from(ids.map(TermId::bits).to_vec()));
        let integers = ids([TermId::integer(1).unwrap(), TermId::integer(2).unwrap()]);
        let decimals = ids([TermId::decimal(1).unwrap(), TermId::decimal(2).unwrap()]);
        let apply = |left, right| apply_plain(Arithmetic::Divide, left, right);
        assert!(matches!(apply(&floats, &integers), Some(Column::Floats(_))));
        assert!(matches!(apply(&integers, &floats), Some(Column::Floats(_))));
        assert!(matches!(apply(&floats, &doubles), Some(Column::Doubles(_))));
        assert!(apply(&integers, &integers).is_none());
        assert!(apply(&floats, &decimals).is_none());
    }
}
