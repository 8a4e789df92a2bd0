//! `IN` with a long list of constants, by a hash set.
//!
//! ```text
//!   id of a row -- one of the constants' ids? --> true
//!              '-> an inline number: by its value among the integers of the list
//!              '-> its value against one IRI, one string of the list: as good as against all of them
//!              '-> and against each constant that is neither IRI, string nor integer
//! ```
//!
//! Equal ids are equal terms, and IRIs and strings are equal only if they are the same term; so
//! what none of them is, it is unequal to all of them, or in error with all of them. Of what is
//! left only distinct ids are looked at. A list of 20,000 IRIs over 50,000 rows took 4 s when each
//! was compared with each.

use std::sync::Arc;

use arrow::array::{BooleanArray, UInt64Array};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use orrery_term::inline::{DECIMAL_UNITS, InlineValue};
use orrery_term::{TermId, TermKind};

use crate::columns::column::{Constant, read_rows};
use crate::context::ExpressionContext;
use crate::error::Result;
use crate::values::compare::equals;
use crate::values::value::Value;

/// Shorter lists are compared one by one.
pub(crate) const CONSTANTS_MIN: usize = 16;
/// Doubles below this are whole numbers exactly.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// The constants of a list.
pub(crate) struct Members {
    /// Of those that are equal to themselves, which NaN is not.
    ids: HashSet<u64, FixedState>,
    /// An IRI and a string of the list, in the place of all of them.
    nodes: Vec<Arc<Constant>>,
    integers: HashSet<i64, FixedState>,
    /// The constants of `integers`, for numbers that are not inline.
    integer_constants: Vec<Arc<Constant>>,
    others: Vec<Arc<Constant>>,
}

impl Members {
    pub(crate) fn new(constants: Vec<Arc<Constant>>) -> Self {
        let mut members = Self {
            ids: HashSet::default(),
            nodes: Vec::new(),
            integers: HashSet::default(),
            integer_constants: Vec::new(),
            others: Vec::new(),
        };
        for constant in constants {
            if equals(&constant.value, &constant.value) == Some(true) {
                members.ids.insert(constant.id.bits());
            }
            match (&constant.value, constant.id.inline_value()) {
                (Value::Iri(_), _) => {
                    members.node(constant, |value| matches!(value, Value::Iri(_)))
                }
                (Value::String(_), _) => {
                    members.node(constant, |value| matches!(value, Value::String(_)));
                }
                (_, Some(InlineValue::Integer(integer, _))) => {
                    if members.integers.insert(integer) {
                        members.integer_constants.push(constant);
                    }
                }
                _ => members.others.push(constant),
            }
        }
        members
    }

    fn node(&mut self, constant: Arc<Constant>, is_alike: impl Fn(&Value) -> bool) {
        if !self.nodes.iter().any(|node| is_alike(&node.value)) {
            self.nodes.push(constant);
        }
    }

    /// Whether each id is that of a member, or of something equal to one; an error counts as
    /// nothing.
    pub(crate) fn contain(
        &self,
        ids: &UInt64Array,
        context: &ExpressionContext,
    ) -> Result<BooleanArray> {
        let mut open: HashMap<u64, usize, FixedState> = HashMap::default();
        let mut open_ids: Vec<u64> = Vec::new();
        let mut answers: Vec<Option<bool>> = Vec::with_capacity(ids.len());
        for id in ids {
            answers.push(id.map(|id| {
                let is_member = self.ids.contains(&id);
                if !is_member && !self.is_stranger(TermId::from_bits(id)) {
                    open.entry(id).or_insert_with(|| {
                        open_ids.push(id);
                        open_ids.len() - 1
                    });
                }
                is_member
            }));
        }
        if open.is_empty() {
            return Ok(answers.into());
        }
        let found = self.looked_up(&open_ids, context)?;
        for (answer, id) in answers.iter_mut().zip(ids) {
            if let Some(place) = id.and_then(|id| open.get(&id)) {
                *answer = found[*place];
            }
        }
        Ok(answers.into())
    }

    /// Whether an id that is none of the members' is surely unequal to all of them.
    fn is_stranger(&self, id: TermId) -> bool {
        matches!(id.kind(), TermKind::Iri | TermKind::BlankNode) && self.others.is_empty()
    }

    /// The answers for distinct ids that are none of the members'.
    fn looked_up(&self, ids: &[u64], context: &ExpressionContext) -> Result<Vec<Option<bool>>> {
        let values = read_rows(&UInt64Array::from(ids.to_vec()), context)?;
        let answers = ids.iter().enumerate().map(|(row, &id)| {
            let value = values.get(row)?;
            let mut answer = self.among_integers(TermId::from_bits(id), value);
            for constant in self.nodes.iter().chain(&self.others) {
                answer = or(answer, equals(value, &constant.value));
            }
            answer
        });
        Ok(answers.collect())
    }

    fn among_integers(&self, id: TermId, value: &Value) -> Option<bool> {
        let Some(first) = self.integer_constants.first() else {
            return Some(false);
        };
        let whole = match id.inline_value() {
            Some(InlineValue::Integer(integer, _)) => Some(integer),
            Some(InlineValue::Decimal(units)) if units % DECIMAL_UNITS == 0 => {
                Some(units / DECIMAL_UNITS)
            }
            Some(InlineValue::Decimal(_)) => return Some(false),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a whole number within bounds"
            )]
            Some(InlineValue::Double(double)) if double.abs() < EXACT_DOUBLES => {
                match double.fract() == 0.0 {
                    true => Some(double as i64),
                    false => return Some(false),
                }
            }
            _ => None,
        };
        if let Some(whole) = whole {
            return Some(self.integers.contains(&whole));
        }
        if !value.is_numeric() {
            return equals(value, &first.value);
        }
        let mut answer = Some(false);
        for constant in &self.integer_constants {
            answer = or(answer, equals(value, &constant.value));
        }
        answer
    }
}

/// SPARQL's `||`.
pub(crate) fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use orrery_term::Term;
    use orrery_term::vocabulary::xsd;

    use super::*;
    use crate::testing::context;

    #[test]
    fn numbers_are_found_by_value_and_strangers_are_errors_as_they_were() {
        let context = context(&[]);
        let number = |lexical: &'static str, datatype| Term::typed(lexical, datatype);
        let constant = |term: &Term<'_>| {
            Arc::new(Constant {
                id: context.intern(term).unwrap(),
                value: Value::from_term(term),
                written: Value::written(term),
            })
        };
        let integers = ["0", "1", "2", "9007199254740993", "-5"];
        let mut list: Vec<_> = integers
            .iter()
            .map(|lexical| constant(&number(lexical, xsd::INTEGER)))
            .collect();
        list.push(constant(&Term::string("text")));
        list.push(constant(&Term::iri("http://example.com/a")));
        list.push(constant(&number("NaN", xsd::DOUBLE)));
        let members = Members::new(list);
        let cases = [
            (number("1", xsd::INTEGER), Some(true)),
            (number("01", xsd::INTEGER), Some(true)),
            (number("1.0", xsd::DECIMAL), Some(true)),
            (number("2", xsd::DECIMAL), Some(true)),
            (number("2.5", xsd::DECIMAL), Some(false)),
            (number("-5", xsd::DOUBLE), Some(true)),
            (number("-5.5", xsd::DOUBLE), Some(false)),
            (number("9007199254740992", xsd::DOUBLE), Some(true)),
            (number("2", xsd::FLOAT), Some(true)),
            (number("3", xsd::FLOAT), Some(false)),
            (number("NaN", xsd::DOUBLE), Some(false)),
            (Term::string("text"), Some(true)),
            (Term::string("other"), Some(false)),
            (Term::language("text", "en"), Some(false)),
            (Term::iri("http://example.com/a"), Some(true)),
            (Term::iri("http://example.com/b"), Some(false)),
            (Term::BlankNode(7), Some(false)),
        ];
        let ids = cases
            .iter()
            .map(|(term, _)| context.intern(term).unwrap().bits());
        let ids: UInt64Array = ids.map(Some).chain([None]).collect();
        let found = members.contain(&ids, &context).unwrap();
        let expected = cases.iter().map(|(_, expected)| *expected).chain([None]);
        for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "{:?}", cases.get(row));
        }
    }
}
