//! `=`, `<`, `sameTerm` and `IN` over columns, on ids as far as ids tell.
//!
//! Most rows are decided without reading a term:
//!
//! - IRIs and blank nodes are equal to nothing but themselves, and have no `<`;
//! - inline numbers, dates and short strings are compared from their bits;
//! - a dictionary literal's rank tells whether it is a string, has a language tag or a datatype
//!   (`LiteralRanks`); two strings are equal only if they are the same term.
//!
//! What remains is collected, read from the dictionary in one go and compared as values.

use std::cmp::Ordering;

use arrow::array::{BooleanArray, UInt32Array, UInt64Array};
use orrery_term::inline::InlineValue;
use orrery_term::{TermId, TermKind};
use oxsdatatypes::{Decimal, Double};

use super::column::{Column, Constant, Reading, read_ids, take_ids};
use super::compare::{Comparison, compare, equals};
use super::value::Value;
use crate::context::{LiteralClass, LiteralRanks, QueryContext};
use crate::error::Result;

/// What is asked of two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// `=`.
    Equal,
    /// `<` and its kin.
    Order(Comparison),
}

impl Question {
    fn answer(self, a: &Value, b: &Value) -> Option<bool> {
        match self {
            Self::Equal => equals(a, b),
            Self::Order(comparison) => compare(a, b).map(|order| comparison.accepts(order)),
        }
    }

    #[inline]
    fn of_order(self, order: Option<Ordering>) -> Option<bool> {
        match self {
            // Incomparable numbers (NaN) are not equal.
            Self::Equal => Some(order == Some(Ordering::Equal)),
            Self::Order(comparison) => order.map(|order| comparison.accepts(order)),
        }
    }

    /// The answer for two terms of classes that never mix.
    #[inline]
    fn of_strangers(self) -> Option<bool> {
        match self {
            Self::Equal => Some(false),
            Self::Order(_) => None,
        }
    }

    /// The question with its sides exchanged.
    fn mirrored(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::Order(comparison) => Self::Order(comparison.mirrored()),
        }
    }
}

/// What the ids alone tell.
enum Verdict {
    Known(Option<bool>),
    ReadTerms,
}

/// Asks a question of two columns, row by row.
pub(crate) fn compare_columns(
    question: Question,
    left: &Column,
    right: &Column,
    rows: usize,
    context: &QueryContext,
) -> Result<BooleanArray> {
    match (left, right) {
        (Column::Constant(None), _) | (_, Column::Constant(None)) => {
            Ok(BooleanArray::new_null(rows))
        }
        (Column::Ids(ids), Column::Constant(Some(constant))) => {
            compare_with_constant(question, ids, constant, context)
        }
        (Column::Constant(Some(constant)), Column::Ids(ids)) => {
            compare_with_constant(question.mirrored(), ids, constant, context)
        }
        (Column::Ids(left), Column::Ids(right)) => compare_ids(question, left, right, context),
        _ => {
            let left = left.operand(Reading::Value, context)?;
            let right = right.operand(Reading::Value, context)?;
            Ok((0..rows)
                .map(|row| question.answer(left.get(row)?, right.get(row)?))
                .collect())
        }
    }
}

fn compare_with_constant(
    question: Question,
    ids: &UInt64Array,
    constant: &Constant,
    context: &QueryContext,
) -> Result<BooleanArray> {
    let ranks = context.literal_ranks()?;
    let against = Against::new(constant);
    let mut answers: Vec<Option<bool>> = Vec::with_capacity(ids.len());
    let mut unread = Vec::new();
    for (row, bits) in ids.iter().enumerate() {
        let verdict = match bits {
            None => Verdict::Known(None),
            Some(bits) => against.verdict(question, TermId::from_bits(bits), ranks),
        };
        answers.push(match verdict {
            Verdict::Known(answer) => answer,
            Verdict::ReadTerms => {
                unread.push(row as u32);
                None
            }
        });
    }
    if !unread.is_empty() {
        let unread = UInt32Array::from(unread);
        let values = read_ids(&take_ids(ids, &unread)?, Reading::Value, context)?;
        for (at, &row) in unread.values().iter().enumerate() {
            answers[row as usize] = values
                .get(at)
                .and_then(|value| question.answer(value, &constant.value));
        }
    }
    Ok(BooleanArray::from(answers))
}

/// A constant made ready to be compared with inline ids.
struct Against<'a> {
    constant: &'a Constant,
    number: Option<Number>,
}

/// The number of a constant, in the forms it is compared in.
#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Decimal(Decimal),
    Double(f64),
}

impl<'a> Against<'a> {
    fn new(constant: &'a Constant) -> Self {
        let number = match &constant.value {
            Value::Integer(value) => Some(Number::Integer((*value).into())),
            Value::Decimal(value) => Some(Number::Decimal(*value)),
            Value::Double(value) => Some(Number::Double((*value).into())),
            _ => None,
        };
        Self { constant, number }
    }

    #[inline]
    fn verdict(&self, question: Question, id: TermId, ranks: LiteralRanks) -> Verdict {
        match id.kind() {
            TermKind::Integer | TermKind::Decimal | TermKind::Double | TermKind::DoublePlain => {
                Verdict::Known(match self.number {
                    Some(number) => question.of_order(number.order_of(id)),
                    None => self.answer_inline(question, id),
                })
            }
            TermKind::Boolean | TermKind::Date | TermKind::DateTime => {
                Verdict::Known(self.answer_inline(question, id))
            }
            TermKind::ShortString => Verdict::Known(self.answer_short_string(question, id)),
            TermKind::Iri | TermKind::BlankNode => Verdict::Known(self.answer_node(question, id)),
            TermKind::Literal => self.verdict_literal(question, id, ranks),
            // Only an IRI constant is surely different from whatever the query computed.
            TermKind::QueryLocal => match (question, &self.constant.value) {
                (Question::Equal, Value::Iri(_)) => Verdict::Known(Some(id == self.constant.id)),
                _ => Verdict::ReadTerms,
            },
            TermKind::Special | TermKind::TripleTerm => Verdict::Known(None),
        }
    }

    fn answer_inline(&self, question: Question, id: TermId) -> Option<bool> {
        question.answer(&Value::from_inline(id)?, &self.constant.value)
    }

    fn answer_short_string(&self, question: Question, id: TermId) -> Option<bool> {
        match &self.constant.value {
            Value::String(text) => match (question, id.inline_value()) {
                (Question::Equal, _) => Some(id == self.constant.id),
                (Question::Order(comparison), Some(InlineValue::String(short))) => {
                    Some(comparison.accepts(short.as_str().cmp(text)))
                }
                _ => None,
            },
            Value::Other { .. } => None,
            _ => question.of_strangers(),
        }
    }

    /// IRIs and blank nodes: equal to themselves only.
    #[inline]
    fn answer_node(&self, question: Question, id: TermId) -> Option<bool> {
        match question {
            Question::Equal => Some(id == self.constant.id),
            Question::Order(comparison) => {
                (id == self.constant.id).then(|| comparison.accepts(Ordering::Equal))
            }
        }
    }

    fn verdict_literal(&self, question: Question, id: TermId, ranks: LiteralRanks) -> Verdict {
        if let Value::Iri(_) = self.constant.value {
            return Verdict::Known(question.of_strangers());
        }
        match (ranks.class(id.payload()), &self.constant.value) {
            (LiteralClass::Typed, _) => Verdict::ReadTerms,
            (LiteralClass::String, Value::String(_))
            | (LiteralClass::Language, Value::LanguageString { .. }) => match question {
                Question::Equal => Verdict::Known(Some(id == self.constant.id)),
                Question::Order(_) => Verdict::ReadTerms,
            },
            (LiteralClass::String, Value::Other { .. }) => Verdict::Known(None),
            (LiteralClass::String | LiteralClass::Language, _) => {
                Verdict::Known(question.of_strangers())
            }
        }
    }
}

impl Number {
    /// The order of an inline number against this one.
    #[inline]
    fn order_of(self, id: TermId) -> Option<Ordering> {
        match (id.inline_value()?, self) {
            (InlineValue::Integer(value, _), Self::Integer(constant)) => Some(value.cmp(&constant)),
            (InlineValue::Integer(value, _), Self::Decimal(constant)) => {
                Some(Decimal::from(value).cmp(&constant))
            }
            (InlineValue::Integer(value, _), Self::Double(constant)) => {
                (value as f64).partial_cmp(&constant)
            }
            (InlineValue::Decimal(millionths), Self::Integer(constant)) => {
                Some(i128::from(millionths).cmp(&(i128::from(constant) * 1_000_000)))
            }
            (InlineValue::Decimal(millionths), Self::Decimal(constant)) => {
                Some(super::value::decimal(millionths)?.cmp(&constant))
            }
            (InlineValue::Decimal(millionths), Self::Double(constant)) => {
                let value = Double::from(super::value::decimal(millionths)?);
                f64::from(value).partial_cmp(&constant)
            }
            (InlineValue::Double(value), Self::Integer(constant)) => {
                value.partial_cmp(&(constant as f64))
            }
            (InlineValue::Double(value), Self::Decimal(constant)) => {
                value.partial_cmp(&Double::from(constant).into())
            }
            (InlineValue::Double(value), Self::Double(constant)) => value.partial_cmp(&constant),
            _ => None,
        }
    }
}

fn compare_ids(
    question: Question,
    left: &UInt64Array,
    right: &UInt64Array,
    context: &QueryContext,
) -> Result<BooleanArray> {
    let mut answers: Vec<Option<bool>> = Vec::with_capacity(left.len());
    let mut unread = Vec::new();
    for (row, (a, b)) in left.iter().zip(right).enumerate() {
        let verdict = match (a, b) {
            (Some(a), Some(b)) => {
                verdict_of_pair(question, TermId::from_bits(a), TermId::from_bits(b))
            }
            _ => Verdict::Known(None),
        };
        answers.push(match verdict {
            Verdict::Known(answer) => answer,
            Verdict::ReadTerms => {
                unread.push(row as u32);
                None
            }
        });
    }
    if !unread.is_empty() {
        let unread = UInt32Array::from(unread);
        let left = read_ids(&take_ids(left, &unread)?, Reading::Value, context)?;
        let right = read_ids(&take_ids(right, &unread)?, Reading::Value, context)?;
        for (at, &row) in unread.values().iter().enumerate() {
            answers[row as usize] = left
                .get(at)
                .zip(right.get(at))
                .and_then(|(a, b)| question.answer(a, b));
        }
    }
    Ok(BooleanArray::from(answers))
}

fn verdict_of_pair(question: Question, a: TermId, b: TermId) -> Verdict {
    let is_node = |id: TermId| matches!(id.kind(), TermKind::Iri | TermKind::BlankNode);
    if is_node(a) || is_node(b) {
        return Verdict::Known(if a == b {
            question.of_order(Some(Ordering::Equal))
        } else {
            question.of_strangers()
        });
    }
    match (a.inline_value(), b.inline_value()) {
        (Some(InlineValue::Integer(a, _)), Some(InlineValue::Integer(b, _))) => {
            Verdict::Known(question.of_order(Some(a.cmp(&b))))
        }
        (Some(InlineValue::String(a)), Some(InlineValue::String(b))) => {
            Verdict::Known(question.of_order(Some(a.as_str().cmp(b.as_str()))))
        }
        (Some(_), Some(_)) => Verdict::Known(
            Value::from_inline(a)
                .zip(Value::from_inline(b))
                .and_then(|(a, b)| question.answer(&a, &b)),
        ),
        _ => Verdict::ReadTerms,
    }
}

/// Whether two columns have the same term, row by row.
pub(crate) fn same_term(left: &UInt64Array, right: &UInt64Array) -> BooleanArray {
    left.iter()
        .zip(right)
        .map(|(a, b)| Some(a? == b?))
        .collect()
}
