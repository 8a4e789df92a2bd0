//! Comparisons of columns (`=`, `<`, `sameTerm`, `IN`), on ids as far as these suffice.
//!
//! Most rows are decided without reading a term:
//!
//! - IRIs and blank nodes are equal to nothing but themselves, and have no `<`;
//! - inline numbers, dates and short strings are compared from their bits;
//! - a dictionary literal's rank tells whether it is a string, has a language tag or a datatype
//!   (`LiteralRanks`); two strings are equal only if they are the same term.
//!
//! What remains is collected, read from the dictionary in one go and compared as values. A column
//! that is all of one kind does not even need to be told apart by rows (`compare_alike`).

use std::cmp::Ordering;

use arrow::array::{Array, BooleanArray, UInt32Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use orrery_term::inline::{InlineValue, TimeZone};
use orrery_term::{TermId, TermKind};
use oxsdatatypes::Decimal;

use crate::columns::column::{Column, Constant, Reading, read_rows, take_ids};
use crate::columns::compare_alike::{ComparedWith, compare_alike};
use crate::columns::plain_numbers::compare_plain;
use crate::context::{ExpressionContext, LiteralClass, LiteralRanks};
use crate::error::Result;
use crate::values::compare::TermComparison;
use crate::values::decimal;
use crate::values::of_terms::decimal_of_millionths;
use crate::values::value::Value;

/// What the ids alone tell of a row, and what is known once its terms are read.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Verdict {
    False = 0,
    True = 1,
    Error = 2,
    ReadTerms = 3,
}

impl Verdict {
    #[inline]
    fn of(answer: Option<bool>) -> Self {
        match answer {
            Some(false) => Self::False,
            Some(true) => Self::True,
            None => Self::Error,
        }
    }
}

/// The verdicts as an array; bytes first and bits at the end, which the compiler makes vector code
/// of.
fn answers(verdicts: &[Verdict]) -> BooleanArray {
    let rows = verdicts.len();
    BooleanArray::new(
        BooleanBuffer::collect_bool(rows, |row| verdicts[row] == Verdict::True),
        Some(NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| {
            (verdicts[row] as u8) < Verdict::Error as u8
        }))),
    )
}

/// The rows that the ids did not decide.
fn undecided(verdicts: &[Verdict]) -> UInt32Array {
    verdicts
        .iter()
        .enumerate()
        .filter(|(_, verdict)| **verdict == Verdict::ReadTerms)
        .map(|(row, _)| row as u32)
        .collect::<Vec<_>>()
        .into()
}

/// Asks a question of two columns, row by row.
pub(crate) fn compare_columns(
    question: TermComparison,
    left: Column,
    right: Column,
    rows: usize,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    match (left, right) {
        (Column::Constant(None), _) | (_, Column::Constant(None)) => {
            Ok(BooleanArray::new_null(rows))
        }
        (Column::Ids(ids), Column::Constant(Some(constant))) => {
            compare_with_constant(question, &ids, &constant, context)
        }
        (Column::Constant(Some(constant)), Column::Ids(ids)) => {
            compare_with_constant(question.mirrored(), &ids, &constant, context)
        }
        (Column::Ids(left), Column::Ids(right)) => compare_ids(question, &left, &right, context),
        (left, right) => {
            if let Some(answers) = compare_plain(question, &left, &right, rows) {
                return Ok(answers);
            }
            let left = left.into_operand(Reading::Value, context)?;
            let right = right.into_operand(Reading::Value, context)?;
            Ok((0..rows)
                .map(|row| question.answer(left.get(row)?, right.get(row)?))
                .collect())
        }
    }
}

fn compare_with_constant(
    question: TermComparison,
    ids: &UInt64Array,
    constant: &Constant,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    if let Some(answers) = compare_alike(question, ids, ComparedWith::Constant(constant.id)) {
        return Ok(answers);
    }
    let ranks = context.literal_ranks()?;
    let against = Against::new(constant);
    let mut verdicts: Vec<Verdict> = ids
        .values()
        .iter()
        .map(|&bits| against.verdict(question, TermId::from_bits(bits), ranks))
        .collect();
    strike_nulls(&mut verdicts, ids.nulls());
    let unread = undecided(&verdicts);
    if !unread.is_empty() {
        let values = read_rows(&take_ids(ids, &unread)?, context)?;
        for (at, &row) in unread.values().iter().enumerate() {
            verdicts[row as usize] = Verdict::of(
                values
                    .get(at)
                    .and_then(|value| question.answer(value, &constant.value)),
            );
        }
    }
    Ok(answers(&verdicts))
}

/// A null is an error, whatever bits stand under it.
fn strike_nulls(verdicts: &mut [Verdict], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls else {
        return;
    };
    for (verdict, is_valid) in verdicts.iter_mut().zip(nulls) {
        if !is_valid {
            *verdict = Verdict::Error;
        }
    }
}

/// A constant made ready to be compared with inline ids.
struct Against<'a> {
    constant: &'a Constant,
    number: Option<RowNumber>,
    /// The constant as it stands in its id, if it does.
    inline: Option<InlineValue>,
}

/// The number of a constant, in the forms it is compared in.
#[derive(Clone, Copy)]
enum RowNumber {
    Integer(i64),
    Decimal(Decimal),
    Double(f64),
}

impl<'a> Against<'a> {
    fn new(constant: &'a Constant) -> Self {
        let number = match &constant.value {
            Value::Integer(value) => Some(RowNumber::Integer((*value).into())),
            Value::Decimal(value) => Some(RowNumber::Decimal(*value)),
            Value::Double(value) => Some(RowNumber::Double((*value).into())),
            _ => None,
        };
        Self {
            constant,
            number,
            inline: constant.id.inline_value(),
        }
    }

    #[inline]
    fn verdict(&self, question: TermComparison, id: TermId, ranks: LiteralRanks) -> Verdict {
        match id.kind() {
            TermKind::Integer | TermKind::Decimal | TermKind::Double | TermKind::DoublePlain => {
                Verdict::of(match self.number {
                    Some(number) => Some(question.of_order(number.order_of(id))),
                    None => self.answer_inline(question, id),
                })
            }
            TermKind::Boolean | TermKind::Date | TermKind::DateTime => {
                Verdict::of(self.answer_inline(question, id))
            }
            TermKind::ShortString => Verdict::of(self.answer_short_string(question, id)),
            TermKind::Iri | TermKind::BlankNode => Verdict::of(self.answer_node(question, id)),
            TermKind::Literal => self.verdict_literal(question, id, ranks),
            // Only an IRI constant is surely different from whatever the query computed.
            TermKind::QueryLocal | TermKind::Delta => match (question, &self.constant.value) {
                (TermComparison::Equal, Value::Iri(_)) => Verdict::of(Some(id == self.constant.id)),
                _ => Verdict::ReadTerms,
            },
            TermKind::TripleTerm => match self.constant.value {
                Value::Triple(_) => Verdict::ReadTerms,
                _ => Verdict::of(question.of_strangers()),
            },
            TermKind::Special => Verdict::of(None),
        }
    }

    fn answer_inline(&self, question: TermComparison, id: TermId) -> Option<bool> {
        if let Some(order) = instants(id.inline_value(), self.inline) {
            return Some(question.of_order(Some(order)));
        }
        question.answer(&Value::from_inline(id)?, &self.constant.value)
    }

    fn answer_short_string(&self, question: TermComparison, id: TermId) -> Option<bool> {
        match &self.constant.value {
            Value::String(text) => match (question, id.inline_value()) {
                (TermComparison::Equal, _) => Some(id == self.constant.id),
                (TermComparison::Order(comparison), Some(InlineValue::String(short))) => {
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
    fn answer_node(&self, question: TermComparison, id: TermId) -> Option<bool> {
        match question {
            TermComparison::Equal => Some(id == self.constant.id),
            TermComparison::Order(comparison) => {
                (id == self.constant.id).then(|| comparison.accepts(Ordering::Equal))
            }
        }
    }

    fn verdict_literal(
        &self,
        question: TermComparison,
        id: TermId,
        ranks: LiteralRanks,
    ) -> Verdict {
        if let Value::Iri(_) = self.constant.value {
            return Verdict::of(question.of_strangers());
        }
        match (ranks.class(id.payload()), &self.constant.value) {
            (LiteralClass::Typed, _) => Verdict::ReadTerms,
            (LiteralClass::String, Value::String(_))
            | (LiteralClass::Language, Value::LanguageString { .. }) => match question {
                TermComparison::Equal => Verdict::of(Some(id == self.constant.id)),
                TermComparison::Order(_) => Verdict::ReadTerms,
            },
            (LiteralClass::String, Value::Other { .. }) => Verdict::of(None),
            (LiteralClass::String | LiteralClass::Language, _) => {
                Verdict::of(question.of_strangers())
            }
        }
    }
}

/// The order of two inline dates or dateTimes, if both have a time zone or both have none.
#[inline]
fn instants(a: Option<InlineValue>, b: Option<InlineValue>) -> Option<Ordering> {
    let is_local = |zone: TimeZone| zone == TimeZone::Absent;
    match (a?, b?) {
        (InlineValue::Date(a), InlineValue::Date(b)) if is_local(a.zone) == is_local(b.zone) => {
            Some(a.start_minutes().cmp(&b.start_minutes()))
        }
        (InlineValue::DateTime(a), InlineValue::DateTime(b))
            if is_local(a.zone) == is_local(b.zone) =>
        {
            Some(a.instant_ms.cmp(&b.instant_ms))
        }
        _ => None,
    }
}

impl RowNumber {
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
                Some(decimal_of_millionths(millionths)?.cmp(&constant))
            }
            (InlineValue::Decimal(millionths), Self::Double(constant)) => {
                let value =
                    decimal::double_of_raw(decimal::raw(decimal_of_millionths(millionths)?));
                value.partial_cmp(&constant)
            }
            (InlineValue::Double(value), Self::Integer(constant)) => {
                value.partial_cmp(&(constant as f64))
            }
            (InlineValue::Double(value), Self::Decimal(constant)) => {
                value.partial_cmp(&decimal::double_of_raw(decimal::raw(constant)))
            }
            (InlineValue::Double(value), Self::Double(constant)) => value.partial_cmp(&constant),
            _ => None,
        }
    }
}

fn compare_ids(
    question: TermComparison,
    left: &UInt64Array,
    right: &UInt64Array,
    context: &ExpressionContext,
) -> Result<BooleanArray> {
    if let Some(answers) = compare_alike(question, left, ComparedWith::Column(right)) {
        return Ok(answers);
    }
    let mut verdicts: Vec<Verdict> = left
        .values()
        .iter()
        .zip(right.values())
        .map(|(&a, &b)| verdict_of_pair(question, TermId::from_bits(a), TermId::from_bits(b)))
        .collect();
    strike_nulls(&mut verdicts, left.nulls());
    strike_nulls(&mut verdicts, right.nulls());
    let unread = undecided(&verdicts);
    if !unread.is_empty() {
        let left = read_rows(&take_ids(left, &unread)?, context)?;
        let right = read_rows(&take_ids(right, &unread)?, context)?;
        for (at, &row) in unread.values().iter().enumerate() {
            verdicts[row as usize] = Verdict::of(
                left.get(at)
                    .zip(right.get(at))
                    .and_then(|(a, b)| question.answer(a, b)),
            );
        }
    }
    Ok(answers(&verdicts))
}

fn verdict_of_pair(question: TermComparison, a: TermId, b: TermId) -> Verdict {
    let is_node = |id: TermId| matches!(id.kind(), TermKind::Iri | TermKind::BlankNode);
    if is_node(a) || is_node(b) {
        return Verdict::of(if a == b {
            Some(question.of_order(Some(Ordering::Equal)))
        } else {
            question.of_strangers()
        });
    }
    match (a.inline_value(), b.inline_value()) {
        (Some(InlineValue::Integer(a, _)), Some(InlineValue::Integer(b, _))) => {
            Verdict::of(Some(question.of_order(Some(a.cmp(&b)))))
        }
        (Some(InlineValue::String(a)), Some(InlineValue::String(b))) => {
            Verdict::of(Some(question.of_order(Some(a.as_str().cmp(b.as_str())))))
        }
        (Some(InlineValue::Double(a)), Some(InlineValue::Double(b))) => {
            Verdict::of(Some(question.of_order(a.partial_cmp(&b))))
        }
        (Some(InlineValue::Integer(a, _)), Some(InlineValue::Double(b))) => {
            Verdict::of(Some(question.of_order((a as f64).partial_cmp(&b))))
        }
        (Some(InlineValue::Double(a)), Some(InlineValue::Integer(b, _))) => {
            Verdict::of(Some(question.of_order(a.partial_cmp(&(b as f64)))))
        }
        (Some(_), Some(_)) => Verdict::of(
            Value::from_inline(a)
                .zip(Value::from_inline(b))
                .and_then(|(a, b)| question.answer(&a, &b)),
        ),
        _ => Verdict::ReadTerms,
    }
}

/// Whether two columns have the same term, row by row.
pub(crate) fn same_term(left: &UInt64Array, right: &UInt64Array) -> BooleanArray {
    let (a, b) = (left.values(), &right.values()[..left.len()]);
    BooleanArray::new(
        BooleanBuffer::collect_bool(a.len(), |row| a[row] == b[row]),
        NullBuffer::union(left.nulls(), right.nulls()),
    )
}
