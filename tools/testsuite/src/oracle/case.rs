//! One oracle case: a data set, a query, and the check of all our variants.

use std::collections::BTreeSet;

use oxrdf::{NamedOrBlankNode, Quad, Term};
use spargebra::{Query, SparqlParser};

use super::answer::Answer;
use super::compare::Expected;
use super::data::Kind;
use super::grammar::PREFIXES;
use super::reference::{self, NoAnswer, Question};
use super::store::{Store, Variant};

/// What the answers are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// The reference.
    Reference,
    /// Our own plain plan, where the reference is known to differ.
    OurPlainPlan,
}

/// How a case went.
pub(crate) enum Outcome {
    /// All variants gave what they must; so many rows.
    Same { rows: usize },
    /// The text is no query.
    NoQuery,
    /// The answer is too large to be compared.
    TooLarge,
    /// A variant is wrong.
    Different(Difference),
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What is wrong, and in which variant.
    pub what: String,
    /// What was expected, as text.
    pub expected: String,
    /// What came, as text.
    pub actual: String,
}

/// Runs a query in some variants, each compared with the opinion.
pub(crate) fn check(
    store: &Store,
    (quads, kind): (&[Quad], Kind),
    text: &str,
    opinion: Opinion,
    variants: &[Variant],
) -> Outcome {
    let text = format!("{PREFIXES}{text}");
    let Ok(query) = SparqlParser::new().parse_query(&text) else {
        return Outcome::NoQuery;
    };
    let question = Question::of(&query, quads);
    let whole = match opinion {
        Opinion::Reference => reference::answer(quads, &question.whole),
        Opinion::OurPlainPlan => our_whole_answer(store, &query, &text),
    };
    let whole = match whole {
        Ok(whole) => whole,
        Err(NoAnswer::NoQuery) => return Outcome::NoQuery,
        Err(NoAnswer::TooLarge) => return Outcome::TooLarge,
        Err(NoAnswer::Failed(message)) => {
            return Outcome::Different(Difference {
                what: "there is nothing to compare with".to_owned(),
                expected: message,
                actual: String::new(),
            });
        }
    };
    let expected = Expected {
        whole,
        modifiers: question.modifiers,
        known_nodes: blank_nodes(quads),
        kind,
    };
    for variant in variants {
        let answer = store.ask(&text, *variant);
        let (what, actual) = match &answer {
            Ok(answer) => match expected.difference(answer) {
                Some(what) => (what, answer.to_string()),
                None => continue,
            },
            Err(message) => ("an error".to_owned(), message.clone()),
        };
        return Outcome::Different(Difference {
            what: format!("{what} ({variant}; compared with {opinion:?})"),
            expected: expected.whole.to_string(),
            actual,
        });
    }
    Outcome::Same {
        rows: expected.whole.len(),
    }
}

/// What our plain plan gives for the query without its outermost modifiers.
fn our_whole_answer(store: &Store, query: &Query, text: &str) -> Result<Answer, NoAnswer> {
    let Some(unmodified) = Question::unmodified(query) else {
        return store.ask(text, Variant::PLAIN).map_err(NoAnswer::Failed);
    };
    let text = unmodified.to_string();
    // spargebra writes `a/(b|c)` as `a/b|c`, and `(!a|!^a)/b` as something that is no path.
    match SparqlParser::new().parse_query(&text) {
        Ok(again) if again == unmodified => {
            store.ask(&text, Variant::PLAIN).map_err(NoAnswer::Failed)
        }
        _ => Err(NoAnswer::NoQuery),
    }
}

fn blank_nodes(quads: &[Quad]) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for quad in quads {
        if let NamedOrBlankNode::BlankNode(node) = &quad.subject {
            labels.insert(node.as_str().to_owned());
        }
        if let Term::BlankNode(node) = &quad.object {
            labels.insert(node.as_str().to_owned());
        }
    }
    labels
}
