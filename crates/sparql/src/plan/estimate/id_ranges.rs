//! The ranges of ids that pass a comparison with a number or date, or a prefix condition.
//!
//! Numbers, dates and dateTimes are inside their ids, ascending by value within each kind. So
//! `?x >= 5` leaves a range of each numeric kind. Ids that tell nothing of the value (dictionary
//! literals, terms that came by updates) always remain: what comes out is a superset, the filter
//! decides. Of integers, decimals and dates no value too many is in it: with few different values
//! (days until something arrives) one more of them may be many rows.

use orrery_operators::pattern::ObjectRanges;
use orrery_term::{InlineValue, TermId, TermKind};
use spargebra::algebra::Expression;

use super::text_prefixes::TextPrefix;
use crate::error::Result;
use crate::results::literal_from_oxrdf;

/// What a number is in millionths, the units of inline decimals.
const MILLIONTHS: i64 = 1_000_000;
/// Beyond, whole numbers are not exact as `f64`, and decimals do not fit into ids.
const EXACT_MAX: i64 = 1_000_000_000;

/// Which side of the constant passes, and whether the constant itself does.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Below,
    UpTo,
    From,
    Above,
    Equal,
}

/// The ids of a variable with which a filter can be true; `None` if it does not say. `texts` tells
/// those of terms whose text begins in some way.
pub(in crate::plan) fn passing_ids(
    filter: &Expression,
    variable: &str,
    texts: &mut dyn FnMut(&TextPrefix) -> Result<ObjectRanges>,
) -> Result<Option<ObjectRanges>> {
    Ok(match filter {
        Expression::And(left, right) => {
            let left = passing_ids(left, variable, texts)?;
            let right = passing_ids(right, variable, texts)?;
            match (left, right) {
                (Some(left), Some(right)) => Some(left.intersection(&right)),
                (one, other) => one.or(other),
            }
        }
        Expression::Or(left, right) => {
            let left = passing_ids(left, variable, texts)?;
            let right = passing_ids(right, variable, texts)?;
            left.zip(right).map(|(left, right)| left.union(&right))
        }
        Expression::FunctionCall(..) => match TextPrefix::of(filter, variable) {
            Some(prefix) => Some(texts(&prefix)?),
            None => None,
        },
        comparison => compared_ids(comparison, variable),
    })
}

/// Whether [`passing_ids`] says something.
pub(in crate::plan) fn bounds_ids(filter: &Expression, variable: &str) -> bool {
    match filter {
        Expression::And(left, right) => bounds_ids(left, variable) || bounds_ids(right, variable),
        Expression::Or(left, right) => bounds_ids(left, variable) && bounds_ids(right, variable),
        Expression::FunctionCall(..) => TextPrefix::of(filter, variable).is_some(),
        comparison => compared_ids(comparison, variable).is_some(),
    }
}

fn compared_ids(comparison: &Expression, variable: &str) -> Option<ObjectRanges> {
    let (left, right, side) = match comparison {
        Expression::Less(left, right) => (left, right, Side::Below),
        Expression::LessOrEqual(left, right) => (left, right, Side::UpTo),
        Expression::GreaterOrEqual(left, right) => (left, right, Side::From),
        Expression::Greater(left, right) => (left, right, Side::Above),
        Expression::Equal(left, right) => (left, right, Side::Equal),
        _ => return None,
    };
    match (&**left, &**right) {
        (Expression::Variable(name), Expression::Literal(literal)) if name.as_str() == variable => {
            around(literal, side)
        }
        (Expression::Literal(literal), Expression::Variable(name)) if name.as_str() == variable => {
            around(literal, side.seen_from_the_other())
        }
        _ => None,
    }
}

fn around(literal: &oxrdf::Literal, side: Side) -> Option<ObjectRanges> {
    let mut intervals = [TermKind::Literal, TermKind::Delta, TermKind::QueryLocal]
        .map(|kind| (TermId::first_of(kind), TermId::last_of(kind)))
        .to_vec();
    let constant = orrery_term::inline(&literal_from_oxrdf(literal))?;
    match constant.inline_value()? {
        InlineValue::Integer(value, _) => {
            let is_exact = (-EXACT_MAX..=EXACT_MAX).contains(&value);
            exact_numbers(is_exact.then(|| value * MILLIONTHS)?, side, &mut intervals)?;
        }
        InlineValue::Decimal(millionths) => exact_numbers(millionths, side, &mut intervals)?,
        InlineValue::Double(value) => numbers_near(value, side, &mut intervals)?,
        // Where one of two dates has a zone and the other has none, they are ordered only if they
        // are more than 14 hours apart, so that none passes that does not when its own time is
        // taken for UTC, as its id does.
        InlineValue::Date(_) => intervals.extend(side.of(TermKind::Date, constant)),
        InlineValue::DateTime(_) => intervals.extend(side.of(TermKind::DateTime, constant)),
        InlineValue::Boolean(_) | InlineValue::String(_) => return None,
    }
    Some(ObjectRanges::new(intervals))
}

/// Magnitudes below may be in no id; zero is. Ranges go on to this.
const DOUBLE_MIN: f64 = 1e-17;

/// The inline doubles beside a number, and those next to it: where a decimal becomes a double, it
/// is rounded.
fn doubles(value: f64, side: Side, intervals: &mut Vec<(TermId, TermId)>) {
    let (mut low, mut high) = (value.next_down(), value.next_up());
    if low.abs() < DOUBLE_MIN {
        low = -DOUBLE_MIN;
    }
    if high.abs() < DOUBLE_MIN {
        high = DOUBLE_MIN;
    }
    for (place, kind) in DOUBLES.into_iter().enumerate() {
        let (first, last) = (TermId::first_of(kind), TermId::last_of(kind));
        let low = double_ids(low).map_or(first, |ids| ids[place]);
        let high = double_ids(high).map_or(last, |ids| ids[place]);
        intervals.push(match side {
            Side::Below | Side::UpTo => (first, high),
            Side::From | Side::Above => (low, last),
            Side::Equal => (low, high),
        });
    }
}

const DOUBLES: [TermKind; 2] = [TermKind::Double, TermKind::DoublePlain];

/// The ids of a double in both forms, which have the same payload; either may be one that no text
/// has.
fn double_ids(value: f64) -> Option<[TermId; 2]> {
    let plain = TermId::double(value)?.bits();
    let payload = plain - TermId::first_of(TermKind::DoublePlain).bits();
    Some(DOUBLES.map(|kind| TermId::from_bits(TermId::first_of(kind).bits() + payload)))
}

/// The ids of all integers, decimals and doubles between two numbers of at most three digits, these
/// among them, whose value is in the id; no others.
pub(in crate::plan) fn numbers_between(low: f64, high: f64) -> Option<ObjectRanges> {
    let mut intervals = Vec::new();
    let units = MILLIONTHS as f64;
    for (kind, low, high) in [
        (
            TermKind::Integer,
            TermId::integer(low.ceil() as i64)?,
            TermId::integer(high.floor() as i64)?,
        ),
        (
            TermKind::Decimal,
            TermId::decimal((low * units).ceil() as i64)?,
            TermId::decimal((high * units).floor() as i64)?,
        ),
    ] {
        let from = Side::From.of(kind, low)?.0;
        let to = Side::UpTo.of(kind, high)?.1;
        intervals.extend((from <= to).then_some((from, to)));
    }
    let (low, high) = (double_ids(low)?, double_ids(high)?);
    intervals.extend(low.into_iter().zip(high));
    Some(ObjectRanges::new(intervals))
}

/// The numeric kinds beside a number of so many millionths.
fn exact_numbers(millionths: i64, side: Side, intervals: &mut Vec<(TermId, TermId)>) -> Option<()> {
    if millionths.abs() > EXACT_MAX * MILLIONTHS {
        return None;
    }
    let (floor, is_whole) = (
        millionths.div_euclid(MILLIONTHS),
        millionths.rem_euclid(MILLIONTHS) == 0,
    );
    let floor = TermId::integer(floor)?;
    let integers = match (side, is_whole) {
        (_, true) => side.of(TermKind::Integer, floor),
        (Side::Below | Side::UpTo, false) => Side::UpTo.of(TermKind::Integer, floor),
        (Side::From | Side::Above, false) => Side::Above.of(TermKind::Integer, floor),
        (Side::Equal, false) => None,
    };
    intervals.extend(integers);
    intervals.extend(side.of(TermKind::Decimal, TermId::decimal(millionths)?));
    doubles(millionths as f64 / MILLIONTHS as f64, side, intervals);
    Some(())
}

/// The same beside a double, whose comparison with decimals is one of doubles.
fn numbers_near(value: f64, side: Side, intervals: &mut Vec<(TermId, TermId)>) -> Option<()> {
    if value.abs() > EXACT_MAX as f64 {
        return None;
    }
    let (low, high) = (value.floor() as i64 - 1, value.ceil() as i64 + 1);
    let integers = (TermId::integer(low)?, TermId::integer(high)?);
    let decimals = (
        TermId::decimal(low * MILLIONTHS)?,
        TermId::decimal(high * MILLIONTHS)?,
    );
    for (kind, (low, high)) in [(TermKind::Integer, integers), (TermKind::Decimal, decimals)] {
        let (first, last) = (TermId::first_of(kind), TermId::last_of(kind));
        intervals.push(match side {
            Side::Below | Side::UpTo => (first, high),
            Side::From | Side::Above => (low, last),
            Side::Equal => (low, high),
        });
    }
    doubles(value, side, intervals);
    Some(())
}

impl Side {
    /// What `constant < ?x` says of `?x`.
    fn seen_from_the_other(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::UpTo => Self::From,
            Self::From => Self::UpTo,
            Self::Above => Self::Below,
            Self::Equal => Self::Equal,
        }
    }

    /// The ids of a kind whose values are on this side of that of an id of the kind; `None` if
    /// there are none.
    fn of(self, kind: TermKind, constant: TermId) -> Option<(TermId, TermId)> {
        let (first, last) = (TermId::first_of(kind), TermId::last_of(kind));
        // What stands below the value in an id: how it was written.
        let form = (1_u64 << constant.value_order()?.shift) - 1;
        let lowest = TermId::from_bits(constant.bits() & !form);
        let highest = TermId::from_bits(constant.bits() | form);
        Some(match self {
            Self::Below if lowest > first => (first, TermId::from_bits(lowest.bits() - 1)),
            Self::Above if highest < last => (TermId::from_bits(highest.bits() + 1), last),
            Self::Below | Self::Above => return None,
            Self::UpTo => (first, highest),
            Self::From => (lowest, last),
            Self::Equal => (lowest, highest),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use orrery_expressions::{ExpressionContext, ExpressionOptions, TermExpression};
    use orrery_storage::build_small;
    use orrery_term::Term;
    use orrery_term::vocabulary::xsd;
    use proptest::prelude::*;
    use spargebra::term::{Literal, NamedNode, Variable};

    fn literal(lexical: &str, datatype: &str) -> Literal {
        Literal::new_typed_literal(lexical, NamedNode::new_unchecked(datatype))
    }

    fn compared(
        with: fn(Box<Expression>, Box<Expression>) -> Expression,
        constant: Literal,
    ) -> ObjectRanges {
        let variable = Expression::Variable(Variable::new_unchecked("x"));
        let filter = with(Box::new(variable), Box::new(Expression::Literal(constant)));
        compared_ids(&filter, "x").unwrap()
    }

    fn id(lexical: &str, datatype: &str) -> TermId {
        orrery_term::inline(&Term::typed(lexical, datatype)).unwrap()
    }

    #[test]
    fn all_numbers_that_pass_are_within() {
        let below = compared(Expression::Less, literal("5", xsd::INTEGER));
        for (lexical, datatype) in [
            ("4", xsd::INTEGER),
            ("4", xsd::BYTE),
            ("-1000000", xsd::LONG),
            ("4.999999", xsd::DECIMAL),
            ("4.9E0", xsd::DOUBLE),
        ] {
            assert!(below.contains(id(lexical, datatype)), "{lexical}");
        }
        assert!(!below.contains(id("5", xsd::INTEGER)));
        assert!(!below.contains(id("5", xsd::BYTE)));
        assert!(!below.contains(id("5.00", xsd::DECIMAL)));
        assert!(!below.contains(id("2020-01-01", xsd::DATE)));
        let above = compared(Expression::GreaterOrEqual, literal("2.5", xsd::DECIMAL));
        assert!(above.contains(id("3", xsd::INTEGER)));
        assert!(above.contains(id("2.5", xsd::DECIMAL)));
        assert!(!above.contains(id("0", xsd::INTEGER)));
        let equal = compared(Expression::Equal, literal("2", xsd::INTEGER));
        assert!(equal.contains(id("2.0", xsd::DECIMAL)));
        assert!(!equal.contains(id("9", xsd::INTEGER)));
    }

    /// Whether each of some terms passes a filter of `?x`, as the filter finds it.
    fn passing(filter: &Expression, terms: &[(String, &'static str)]) -> Vec<bool> {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = build_small(directory.path(), &[]).unwrap().snapshot();
        let context = ExpressionContext::new(snapshot, ExpressionOptions::default()).unwrap();
        let schema = Schema::new(vec![Field::new("x", DataType::UInt64, true)]);
        let ids = terms
            .iter()
            .map(|(lexical, datatype)| id(lexical, datatype).bits());
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(ids));
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![ids]).unwrap();
        let filter = TermExpression::compile(filter, &schema, &context).unwrap();
        let answers = filter.into_filter().evaluate(&batch).unwrap();
        let answers = answers.into_array(terms.len()).unwrap();
        let passes = answers.as_boolean().iter();
        passes.map(|passes| passes == Some(true)).collect()
    }

    proptest! {
        #[test]
        fn what_passes_a_comparison_is_within(
            constant in number_or_date(),
            others in proptest::collection::vec(number_or_date(), 1..20),
            with in proptest::sample::select(vec![
                Expression::Less as fn(Box<Expression>, Box<Expression>) -> Expression,
                Expression::LessOrEqual,
                Expression::Greater,
                Expression::GreaterOrEqual,
                Expression::Equal,
            ]),
            is_turned: bool,
        ) {
            let variable = Box::new(Expression::Variable(Variable::new_unchecked("x")));
            let value = Box::new(Expression::Literal(literal(&constant.0, constant.1)));
            let filter = if is_turned { with(value, variable) } else { with(variable, value) };
            let ranges = compared_ids(&filter, "x").unwrap();
            for (other, passes) in others.iter().zip(passing(&filter, &others)) {
                let is_within = ranges.contains(id(&other.0, other.1));
                prop_assert!(is_within || !passes, "{:?} beside {:?}", other, constant);
                // Of the same exact type, or dates of the same zone, nothing else is.
                let is_exact = other.1 == constant.1 && other.1 != xsd::DOUBLE;
                let zone = |text: &str| text.get(19..).map(str::to_owned);
                if is_exact && (other.1 != xsd::DATE_TIME || zone(&other.0) == zone(&constant.0)) {
                    prop_assert_eq!(is_within, passes, "{:?} beside {:?}", other, constant);
                }
            }
        }
    }

    fn number_or_date() -> impl Strategy<Value = (String, &'static str)> {
        let zone = prop_oneof![Just(""), Just("Z"), Just("+14:00"), Just("-05:30")];
        prop_oneof![
            (-4i64..5).prop_map(|value| (value.to_string(), xsd::INTEGER)),
            (-4i64..5).prop_map(|value| (value.to_string(), xsd::BYTE)),
            (-40i64..50).prop_map(|tenths| (format!("{:.1}", tenths as f64 / 10.0), xsd::DECIMAL)),
            (-4i64..5).prop_map(|value| (value.to_string(), xsd::DECIMAL)),
            (-8i64..9).prop_map(|halves| ((halves as f64 / 2.0).to_string(), xsd::DOUBLE)),
            (1u8..4, 0u8..24, zone).prop_map(|(day, hour, zone)| {
                (
                    format!("2008-06-0{day}T{hour:02}:00:00{zone}"),
                    xsd::DATE_TIME,
                )
            }),
            (1u8..5).prop_map(|day| (format!("2008-06-0{day}"), xsd::DATE)),
        ]
        .prop_filter("not inline", |(lexical, datatype)| {
            orrery_term::inline_typed(lexical, datatype).is_some()
        })
    }

    #[test]
    fn dates_pass_whatever_their_zone() {
        let above = compared(
            Expression::Greater,
            literal("2008-06-20T00:00:00Z", xsd::DATE_TIME),
        );
        assert!(above.contains(id("2008-06-20T15:00:00+14:00", xsd::DATE_TIME)));
        assert!(above.contains(id("2008-06-19T23:00:00-14:00", xsd::DATE_TIME)));
        assert!(!above.contains(id("2008-06-20T13:00:00+14:00", xsd::DATE_TIME)));
        assert!(above.contains(id("2008-06-20T00:00:01", xsd::DATE_TIME)));
        assert!(!above.contains(id("2008-06-18T00:00:00", xsd::DATE_TIME)));
        let below = compared(Expression::Less, literal("2008-06-20", xsd::DATE));
        assert!(below.contains(id("2008-06-19", xsd::DATE)));
        assert!(!below.contains(id("2008-06-25", xsd::DATE)));
    }

    #[test]
    fn terms_whose_ids_do_not_tell_always_pass() {
        let below = compared(Expression::Less, literal("5", xsd::INTEGER));
        assert!(below.contains(TermId::literal(7)));
        assert!(below.contains(TermId::delta(7)));
        assert!(!below.contains(TermId::iri(7)));
    }

    #[test]
    fn what_is_no_comparison_with_a_constant_says_nothing() {
        let variable = || Box::new(Expression::Variable(Variable::new_unchecked("x")));
        assert!(!bounds_ids(&Expression::Less(variable(), variable()), "x"));
        let text = Expression::Literal(Literal::new_simple_literal("a"));
        assert!(!bounds_ids(
            &Expression::Less(variable(), Box::new(text)),
            "x"
        ));
    }

    #[test]
    fn an_alternative_says_something_if_both_sides_do() {
        let variable = || Box::new(Expression::Variable(Variable::new_unchecked("x")));
        let number = |lexical: &str| Box::new(Expression::Literal(literal(lexical, xsd::INTEGER)));
        let ends = Expression::Or(
            Box::new(Expression::Less(variable(), number("5"))),
            Box::new(Expression::Greater(variable(), number("50"))),
        );
        let mut no_text = |_: &TextPrefix| Ok(ObjectRanges::default());
        let ids = passing_ids(&ends, "x", &mut no_text).unwrap().unwrap();
        assert!(ids.contains(id("1", xsd::INTEGER)));
        assert!(ids.contains(id("99", xsd::INTEGER)));
        assert!(!ids.contains(id("20", xsd::INTEGER)));
        assert!(bounds_ids(&ends, "x"));
        let other = Expression::Or(
            Box::new(ends),
            Box::new(Expression::Bound(Variable::new_unchecked("x"))),
        );
        assert!(passing_ids(&other, "x", &mut no_text).unwrap().is_none());
        assert!(!bounds_ids(&other, "x"));
    }
}
