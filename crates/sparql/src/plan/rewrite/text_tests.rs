//! The trigrams implied by constant text tests on a variable, and their look-ups.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use orrery_expressions::regex_grams;
use orrery_full_text::GramQuery;
use orrery_term::TermId;
use spargebra::algebra::{Expression, Function};

/// What was asked, of which predicate, whether other objects than strings count too, and how many
/// there may be.
pub(super) type SearchKey = (GramQuery, Option<TermId>, bool, usize);

/// What was looked up for a query.
#[derive(Debug, Default)]
pub(in crate::plan) struct GramSearches {
    /// `None` if there were more.
    found: RefCell<BTreeMap<SearchKey, Option<Arc<[TermId]>>>>,
    /// Whether a filter could have been answered in this way.
    are_possible: Cell<bool>,
}

impl GramSearches {
    /// Whether a filter could have been answered so, so that another constant in it may want
    /// another plan.
    pub(in crate::plan) fn are_possible(&self) -> bool {
        self.are_possible.get()
    }

    pub(super) fn note_possible(&self) {
        self.are_possible.set(true);
    }

    /// What was found for the same before.
    pub(super) fn known(&self, key: &SearchKey) -> Option<Option<Arc<[TermId]>>> {
        self.found.borrow().get(key).cloned()
    }

    pub(super) fn note(&self, key: SearchKey, found: Option<Arc<[TermId]>>) {
        self.found.borrow_mut().insert(key, found);
    }
}

/// What filters say of the text of a variable, with constants.
#[derive(Debug)]
pub(super) struct TextTest<'e> {
    pub(super) variable: &'e str,
    pub(super) grams: GramQuery,
    /// Whether terms that are no strings may pass.
    pub(super) is_of_any_term: bool,
}

impl<'e> TextTest<'e> {
    /// That of a filter, if it is one, or several of one variable with OR between them.
    pub(super) fn of(filter: &'e Expression) -> Option<Self> {
        match filter {
            Expression::Or(one, other) => {
                let (one, other) = (Self::of(one)?, Self::of(other)?);
                (one.variable == other.variable).then(|| Self {
                    variable: one.variable,
                    grams: GramQuery::any([one.grams, other.grams]),
                    is_of_any_term: one.is_of_any_term || other.is_of_any_term,
                })
            }
            Expression::FunctionCall(function, arguments) => {
                let (subject, Expression::Literal(literal)) =
                    (arguments.first()?, arguments.get(1)?)
                else {
                    return None;
                };
                let grams = match (function, arguments.get(2)) {
                    (Function::Contains | Function::StrStarts | Function::StrEnds, None) => {
                        GramQuery::of_text(literal.value())
                    }
                    (Function::Regex, None) => regex_grams(literal.value(), "")?,
                    (Function::Regex, Some(Expression::Literal(flags))) => {
                        regex_grams(literal.value(), flags.value())?
                    }
                    _ => return None,
                };
                let (variable, is_of_any_term) = text_of(subject)?;
                Some(Self {
                    variable,
                    grams,
                    is_of_any_term,
                })
            }
            _ => None,
        }
    }
}

/// The variable whose text something is, but for its case, and whether it may be the text of a term
/// that is no string.
fn text_of(subject: &Expression) -> Option<(&str, bool)> {
    match subject {
        Expression::Variable(variable) => Some((variable.as_str(), false)),
        Expression::FunctionCall(function, arguments) => {
            let [inner] = &arguments[..] else { return None };
            let (variable, is_of_any_term) = text_of(inner)?;
            match function {
                Function::Str => Some((variable, true)),
                Function::LCase | Function::UCase => Some((variable, is_of_any_term)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The language tag, or the beginning of one, that filters say a variable has; empty for none.
pub(super) fn language(filters: &[Expression], variable: &str) -> Option<String> {
    let is_language = |expression: &Expression| {
        matches!(expression, Expression::FunctionCall(Function::Lang, arguments)
            if matches!(&arguments[..], [Expression::Variable(name)] if name.as_str() == variable))
    };
    filters.iter().find_map(|filter| {
        let tag = match filter {
            Expression::Equal(one, other) | Expression::SameTerm(one, other) => {
                match (&**one, &**other) {
                    (Expression::Literal(tag), language) | (language, Expression::Literal(tag))
                        if is_language(language) =>
                    {
                        tag.value()
                    }
                    _ => return None,
                }
            }
            Expression::FunctionCall(Function::LangMatches, arguments) => match &arguments[..] {
                [language, Expression::Literal(range)] if is_language(language) => {
                    // Any language, or none at all.
                    let range = range.value();
                    (range != "*" && !range.is_empty()).then_some(range)?
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(tag.to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use spargebra::term::{Literal, Variable};

    use super::*;

    fn call(function: Function, arguments: Vec<Expression>) -> Expression {
        Expression::FunctionCall(function, arguments)
    }

    fn text(text: &str) -> Expression {
        Expression::Literal(Literal::new_simple_literal(text))
    }

    fn variable(name: &str) -> Expression {
        Expression::Variable(Variable::new_unchecked(name))
    }

    fn or(one: Expression, other: Expression) -> Expression {
        Expression::Or(Box::new(one), Box::new(other))
    }

    #[test]
    fn tests_of_texts_with_constants_ask_for_grams() {
        let contains = |of, needle| call(Function::Contains, vec![of, text(needle)]);
        let filter = contains(variable("l"), "abc");
        let asked = TextTest::of(&filter).unwrap();
        assert_eq!((asked.variable, asked.is_of_any_term), ("l", false));
        assert_eq!(asked.grams, GramQuery::of_text("abc"));
        let of_str = call(
            Function::LCase,
            vec![call(Function::Str, vec![variable("l")])],
        );
        let both = or(contains(variable("l"), "abc"), contains(of_str, "bcd"));
        let asked = TextTest::of(&both).unwrap();
        assert!(asked.is_of_any_term && !asked.grams.is_anything());
        let two = or(
            contains(variable("l"), "abc"),
            contains(variable("k"), "abc"),
        );
        assert!(TextTest::of(&two).is_none());
        let not = Expression::Not(Box::new(contains(variable("l"), "abc")));
        assert!(TextTest::of(&not).is_none());
        let of_variable = call(Function::Contains, vec![variable("l"), variable("k")]);
        assert!(TextTest::of(&of_variable).is_none());
        let replaced = call(Function::StrAfter, vec![variable("l"), text("a")]);
        assert!(TextTest::of(&contains(replaced, "abc")).is_none());
        let pattern = call(
            Function::Regex,
            vec![variable("l"), text("ab.*CDE"), text("i")],
        );
        assert_eq!(
            TextTest::of(&pattern).unwrap().grams,
            GramQuery::of_text("cde")
        );
    }

    #[test]
    fn languages_are_told_by_filters() {
        let lang = || call(Function::Lang, vec![variable("l")]);
        let matches = |range| call(Function::LangMatches, vec![lang(), text(range)]);
        let equal = Expression::Equal(Box::new(text("EN")), Box::new(lang()));
        assert_eq!(language(&[equal], "l").as_deref(), Some("en"));
        assert_eq!(language(&[matches("de")], "l").as_deref(), Some("de"));
        assert_eq!(language(&[matches("*")], "l"), None);
        assert_eq!(language(&[matches("de")], "k"), None);
    }
}
