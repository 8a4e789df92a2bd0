//! Patterns and inline data without variables, converted to terms.

use orrery_term::{Term, Triple};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

use crate::error::{QueryError, Result};
use crate::results::literal_from_oxrdf;

/// What a pattern without variables stands for.
pub(super) enum Ground {
    Term(Term<'static>),
    /// A triple term that cannot be, such as one with a literal as its subject: nothing matches it.
    Impossible,
    /// The pattern has variables.
    Open,
}

/// The term of a pattern, if it has no variables.
pub(super) fn ground(term: &TermPattern) -> Ground {
    match term {
        TermPattern::NamedNode(node) => Ground::Term(Term::iri(node.as_str().to_owned())),
        TermPattern::Literal(literal) => Ground::Term(literal_from_oxrdf(literal).into_owned()),
        TermPattern::BlankNode(_) | TermPattern::Variable(_) => Ground::Open,
        TermPattern::Triple(triple) => ground_triple(triple),
    }
}

pub(super) fn ground_triple(pattern: &TriplePattern) -> Ground {
    let predicate = match &pattern.predicate {
        NamedNodePattern::NamedNode(node) => Term::iri(node.as_str().to_owned()),
        NamedNodePattern::Variable(_) => return Ground::Open,
    };
    match (ground(&pattern.subject), ground(&pattern.object)) {
        (Ground::Term(subject), Ground::Term(object)) => {
            match Triple::new(subject, predicate, object) {
                Ok(triple) => Ground::Term(triple.into()),
                Err(_) => Ground::Impossible,
            }
        }
        (Ground::Open, _) | (_, Ground::Open) => Ground::Open,
        (Ground::Impossible, _) | (_, Ground::Impossible) => Ground::Impossible,
    }
}

/// The term of inline data.
pub(super) fn ground_term(term: &GroundTerm) -> Result<Term<'static>> {
    match term {
        GroundTerm::NamedNode(node) => Ok(Term::iri(node.as_str().to_owned())),
        GroundTerm::Literal(literal) => Ok(literal_from_oxrdf(literal).into_owned()),
        GroundTerm::Triple(triple) => Triple::new(
            Term::iri(triple.subject.as_str().to_owned()),
            Term::iri(triple.predicate.as_str().to_owned()),
            ground_term(&triple.object)?,
        )
        .map(Term::from)
        .map_err(|error| QueryError::unsupported(error.to_string())),
    }
}
