//! Which ids can pass a comparison with a number or a date, or a condition on the beginning of a text, as ranges.
//!
//! Numbers, dates and dateTimes are inside their ids, ascending by value within each kind. So `?x >= 5` leaves
//! a range of each numeric kind. Ids that tell nothing of the value (dictionary literals, terms that came by
//! updates) always remain, and bounds are drawn generously: what comes out is a superset, the filter decides.

use orrery_operators::pattern::ObjectRanges;
use orrery_term::inline::{InlineDate, InlineDateTime, TimeZone};
use orrery_term::{InlineValue, TermId, TermKind, inline_typed, vocabulary::xsd};
use spargebra::algebra::Expression;

use super::text_prefixes::TextPrefix;
use crate::error::Result;
use crate::results::literal_from_oxrdf;

/// Time zones reach so far from UTC.
const ZONE_MS_MAX: i64 = 14 * 60 * 60 * 1_000;

/// Which side of the constant passes.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Below,
    Above,
    Equal,
}

/// The ids of a variable with which a filter can be true; `None` if it does not say. `texts` tells those of
/// terms whose text begins in some way.
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
        Expression::Less(left, right) | Expression::LessOrEqual(left, right) => {
            (left, right, Side::Below)
        }
        Expression::Greater(left, right) | Expression::GreaterOrEqual(left, right) => {
            (left, right, Side::Above)
        }
        Expression::Equal(left, right) => (left, right, Side::Equal),
        _ => return None,
    };
    match (&**left, &**right) {
        (Expression::Variable(name), Expression::Literal(literal)) if name.as_str() == variable => {
            around(literal, side)
        }
        (Expression::Literal(literal), Expression::Variable(name)) if name.as_str() == variable => {
            let side = match side {
                Side::Below => Side::Above,
                Side::Above => Side::Below,
                Side::Equal => Side::Equal,
            };
            around(literal, side)
        }
        _ => None,
    }
}

fn around(literal: &oxrdf::Literal, side: Side) -> Option<ObjectRanges> {
    let mut intervals = [TermKind::Literal, TermKind::Delta, TermKind::QueryLocal]
        .map(|kind| (TermId::first_of(kind), TermId::last_of(kind)))
        .to_vec();
    let value = orrery_term::inline(&literal_from_oxrdf(literal))?;
    match value.inline_value()? {
        InlineValue::Integer(value, _) => numbers(value as f64, side, &mut intervals)?,
        InlineValue::Decimal(millionths) => {
            numbers(millionths as f64 / 1e6, side, &mut intervals)?;
        }
        InlineValue::Double(value) => numbers(value, side, &mut intervals)?,
        InlineValue::Date(date) => {
            let bound = |day| {
                bounding_id(
                    &InlineDate {
                        day,
                        zone: TimeZone::Absent,
                    },
                    xsd::DATE,
                )
            };
            let (low, high) = (bound(date.day - 2)?, bound(date.day + 2)?);
            intervals.push(side.of(TermKind::Date, low, high));
        }
        InlineValue::DateTime(time) => {
            let bound = |instant_ms| {
                let time = InlineDateTime {
                    instant_ms,
                    zone: TimeZone::Absent,
                    fraction_digits: 3,
                };
                bounding_id(&time, xsd::DATE_TIME)
            };
            let low = bound(time.instant_ms - ZONE_MS_MAX - 1)?;
            let high = bound(time.instant_ms + ZONE_MS_MAX + 1)?;
            intervals.push(side.of(TermKind::DateTime, low, high));
        }
        InlineValue::Boolean(_) | InlineValue::String(_) => return None,
    }
    Some(ObjectRanges::new(intervals))
}

/// The numeric kinds: integers and decimals by value, doubles all.
fn numbers(value: f64, side: Side, intervals: &mut Vec<(TermId, TermId)>) -> Option<()> {
    // Beyond, whole numbers are not exact as f64, and decimals do not fit into ids.
    const EXACT_MAX: f64 = 1e9;
    if value.abs() > EXACT_MAX {
        return None;
    }
    let (low, high) = (value.floor() as i64 - 1, value.ceil() as i64 + 1);
    let integers = (
        bounding_id(&low, xsd::INTEGER)?,
        bounding_id(&high, xsd::INTEGER)?,
    );
    let decimals = (
        bounding_id(&low, xsd::DECIMAL)?,
        bounding_id(&high, xsd::DECIMAL)?,
    );
    intervals.push(side.of(TermKind::Integer, integers.0, integers.1));
    intervals.push(side.of(TermKind::Decimal, decimals.0, decimals.1));
    intervals.push((
        TermId::first_of(TermKind::Double),
        TermId::last_of(TermKind::DoublePlain),
    ));
    Some(())
}

impl Side {
    /// The ids of a kind that are on this side of a value between two bounds.
    fn of(self, kind: TermKind, low: TermId, high: TermId) -> (TermId, TermId) {
        match self {
            Self::Below => (TermId::first_of(kind), high),
            Self::Above => (low, TermId::last_of(kind)),
            Self::Equal => (low, high),
        }
    }
}

fn bounding_id(value: &impl ToString, datatype: &str) -> Option<TermId> {
    inline_typed(&value.to_string(), datatype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_term::Term;
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
        assert!(!below.contains(id("7", xsd::INTEGER)));
        assert!(!below.contains(id("6.5", xsd::DECIMAL)));
        assert!(!below.contains(id("2020-01-01", xsd::DATE)));
        let above = compared(Expression::GreaterOrEqual, literal("2.5", xsd::DECIMAL));
        assert!(above.contains(id("3", xsd::INTEGER)));
        assert!(above.contains(id("2.5", xsd::DECIMAL)));
        assert!(!above.contains(id("0", xsd::INTEGER)));
        let equal = compared(Expression::Equal, literal("2", xsd::INTEGER));
        assert!(equal.contains(id("2.0", xsd::DECIMAL)));
        assert!(!equal.contains(id("9", xsd::INTEGER)));
    }

    #[test]
    fn dates_pass_whatever_their_zone() {
        let above = compared(
            Expression::Greater,
            literal("2008-06-20T00:00:00Z", xsd::DATE_TIME),
        );
        assert!(above.contains(id("2008-06-20T13:00:00+14:00", xsd::DATE_TIME)));
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
