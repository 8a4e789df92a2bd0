//! The query text of a request, and the terms it may contain.
//!
//! Terms go into the text of a query that another machine runs, so nothing may end a term early:
//! literals are escaped when written, but IRIs and language tags have no escapes and are checked.

use orrery_term::{LiteralKind, Term};
use oxiri::Iri;
use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, Variable};

/// The query for a pattern: these of its variables, for these keys of some of them.
///
/// Each key has one term per key variable. No key variable: the whole pattern.
pub(super) fn request(
    pattern: &GraphPattern,
    variables: &[Variable],
    key_variables: Vec<Variable>,
    keys: Vec<Vec<GroundTerm>>,
) -> String {
    let mut inner = pattern.clone();
    if !key_variables.is_empty() {
        let values = GraphPattern::Values {
            variables: key_variables,
            bindings: keys
                .into_iter()
                .map(|key| key.into_iter().map(Some).collect())
                .collect(),
        };
        inner = GraphPattern::Join {
            left: Box::new(values),
            right: Box::new(inner),
        };
    } else {
        // Keeps the modifiers of a subquery apart from those of the request.
        inner = GraphPattern::Join {
            left: Box::new(GraphPattern::default()),
            right: Box::new(inner),
        };
    }
    let mut variables = variables.to_vec();
    if variables.is_empty() {
        // A projection of nothing cannot be written, but each solution counts.
        let one = Variable::new_unchecked("one");
        inner = GraphPattern::Extend {
            inner: Box::new(inner),
            variable: one.clone(),
            expression: Expression::Literal(Literal::from(1)),
        };
        variables.push(one);
    }
    Query::Select {
        dataset: None,
        pattern: GraphPattern::Project {
            inner: Box::new(inner),
            variables,
        },
        base_iri: None,
    }
    .to_string()
}

/// The term as it can be written into a query; `None` if it cannot.
pub(super) fn sendable(term: &Term<'_>) -> Option<GroundTerm> {
    match term {
        Term::Iri(iri) => Some(named_node(iri)?.into()),
        Term::Literal(literal) => {
            let lexical = literal.lexical.as_ref();
            let literal = match &literal.kind {
                LiteralKind::String => Literal::new_simple_literal(lexical),
                LiteralKind::Language(tag) => {
                    Literal::new_language_tagged_literal(lexical, tag.as_ref()).ok()?
                }
                // Endpoints of SPARQL 1.1 would not read it.
                LiteralKind::Directional(..) => return None,
                LiteralKind::Typed(datatype) => {
                    Literal::new_typed_literal(lexical, named_node(datatype)?)
                }
            };
            Some(literal.into())
        }
        Term::BlankNode(_) | Term::Triple(_) => None,
    }
}

fn named_node(iri: &str) -> Option<NamedNode> {
    Iri::parse(iri).ok()?;
    Some(NamedNode::new_unchecked(iri))
}
