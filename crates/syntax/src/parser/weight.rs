//! The memory estimate of a copied part of the tree.
//!
//! A subject is copied for each of its objects, a triple for each of its reifiers: short texts
//! could mean much of a long term.

use spargebra::algebra::PropertyPathExpression as Path;
use spargebra::term::{NamedNode, NamedNodePattern, TermPattern, TriplePattern};

/// What a step of a path takes, and the triple that it may become.
const STEP: usize = 128;

fn of_iri(node: &NamedNode) -> usize {
    node.as_str().len()
}

/// Of a subject or object.
pub(super) fn of_term(term: &TermPattern) -> usize {
    match term {
        TermPattern::NamedNode(node) => of_iri(node),
        TermPattern::BlankNode(node) => node.as_str().len(),
        TermPattern::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        TermPattern::Triple(triple) => STEP + of_triple(triple),
        TermPattern::Variable(variable) => variable.as_str().len(),
    }
}

/// Of a predicate.
pub(super) fn of_predicate(predicate: &NamedNodePattern) -> usize {
    match predicate {
        NamedNodePattern::NamedNode(node) => of_iri(node),
        NamedNodePattern::Variable(variable) => variable.as_str().len(),
    }
}

/// Of a triple.
pub(super) fn of_triple(triple: &TriplePattern) -> usize {
    of_term(&triple.subject) + of_predicate(&triple.predicate) + of_term(&triple.object)
}

/// Of a path. A loop, for sequences and alternatives are as deep as they are long.
pub(super) fn of_path(path: &Path) -> usize {
    let mut bytes = 0;
    let mut rest = vec![path];
    while let Some(path) = rest.pop() {
        bytes += STEP;
        match path {
            Path::NamedNode(node) => bytes += of_iri(node),
            Path::Sequence(left, right) | Path::Alternative(left, right) => {
                rest.extend([left.as_ref(), right.as_ref()]);
            }
            Path::Reverse(inner)
            | Path::ZeroOrMore(inner)
            | Path::OneOrMore(inner)
            | Path::ZeroOrOne(inner) => rest.push(inner),
            Path::NegatedPropertySet(nodes) => {
                bytes += nodes.iter().map(|node| STEP + of_iri(node)).sum::<usize>();
            }
        }
    }
    bytes
}
