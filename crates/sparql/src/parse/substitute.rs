//! The substitution of constants in a shape's algebra.
//!
//! The algebra is that of a query in whose constants' places stand *stand-ins*: IRIs, strings and
//! integers that tell the number of their place. Each is replaced, wherever it is found.

use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::Expression;
use spargebra::term::TriplePattern;

use super::shape::Constant;
use super::walk::{Place, Visitor, walk_query, walk_template};

const STAND_IN_IRI: &str = "orrery-constant://";
const STAND_IN_TEXT: &str = "orrery constant ";
/// Digits before the four of the place's number.
const STAND_IN_NUMBER: &str = "7310582946105";

/// What stands in the place of a constant of this kind.
pub(super) fn stand_in(place: usize, constant: Constant<'_>) -> String {
    match constant {
        Constant::Iri(_) => format!("{STAND_IN_IRI}{place}"),
        Constant::Text(_) => format!("{STAND_IN_TEXT}{place}"),
        Constant::Number(_) => format!("{STAND_IN_NUMBER}{place:04}"),
    }
}

/// Whether a text holds what looks like a stand-in.
pub(super) fn has_stand_in(text: &str) -> bool {
    [STAND_IN_IRI, STAND_IN_TEXT, STAND_IN_NUMBER]
        .iter()
        .any(|stand_in| text.contains(stand_in))
}

/// Replaces all stand-ins of a query by these constants.
pub(super) fn substitute(query: &mut Query, constants: &[Constant<'_>]) {
    walk_query(query, &mut Constants(constants));
}

/// The same in one term of a `CONSTRUCT`'s template.
pub(super) fn substitute_in_template(template: &mut [TriplePattern], constants: &[Constant<'_>]) {
    walk_template(template, &mut Constants(constants));
}

/// The constant that stands in an expression in the place of a stand-in.
pub(super) fn term_of(stand_in: &Expression, constants: &[Constant<'_>]) -> Expression {
    let mut term = stand_in.clone();
    match &mut term {
        Expression::NamedNode(node) => Constants(constants).node(node, Place::Other),
        Expression::Literal(literal) => Constants(constants).literal(literal, Place::Other),
        _ => {}
    }
    term
}

/// The number of the place that a stand-in stands in.
pub(super) fn place_of_node(node: &NamedNode) -> Option<usize> {
    node.as_str().strip_prefix(STAND_IN_IRI)?.parse().ok()
}

/// The same of a literal.
pub(super) fn place_of_literal(literal: &Literal) -> Option<usize> {
    let value = literal.value();
    let text = value.strip_prefix(STAND_IN_TEXT);
    let place = text.or_else(|| value.strip_prefix(STAND_IN_NUMBER))?;
    place.parse().ok()
}

struct Constants<'c>(&'c [Constant<'c>]);

impl Constants<'_> {
    fn at(&self, place: Option<&str>) -> Option<Constant<'_>> {
        self.0.get(place?.parse::<usize>().ok()?).copied()
    }
}

impl Visitor for Constants<'_> {
    fn node(&mut self, node: &mut NamedNode, _: Place) {
        let place = node.as_str().strip_prefix(STAND_IN_IRI);
        if let Some(Constant::Iri(iri)) = self.at(place) {
            // Plain IRIs only come here.
            *node = NamedNode::new_unchecked(iri);
        }
    }

    fn literal(&mut self, literal: &mut Literal, _: Place) {
        let value = literal.value();
        let text = self.at(value.strip_prefix(STAND_IN_TEXT));
        let number = || self.at(value.strip_prefix(STAND_IN_NUMBER));
        let new = match text.or_else(number) {
            Some(Constant::Text(text) | Constant::Number(text)) => text,
            Some(Constant::Iri(_)) | None => return,
        };
        *literal = match (literal.language(), literal.direction()) {
            (Some(language), Some(direction)) => {
                Literal::new_directional_language_tagged_literal_unchecked(new, language, direction)
            }
            (Some(language), None) => Literal::new_language_tagged_literal_unchecked(new, language),
            (None, _) => Literal::new_typed_literal(new, literal.datatype().into_owned()),
        };
    }
}
