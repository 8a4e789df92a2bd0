//! Putting constants into the algebra of a shape.
//!
//! The algebra is that of a query in whose constants' places stand *stand-ins*: IRIs, strings and integers that
//! tell the number of their place. Each is replaced, wherever it is found.

use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression, QueryDataset,
};
use spargebra::term::{GroundTerm, GroundTriple, NamedNodePattern, TermPattern, TriplePattern};

use super::shape::Constant;

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
    let constants = Constants(constants);
    let (pattern, dataset) = match query {
        Query::Select {
            pattern, dataset, ..
        }
        | Query::Describe {
            pattern, dataset, ..
        }
        | Query::Ask {
            pattern, dataset, ..
        } => (pattern, dataset),
        Query::Construct {
            pattern,
            dataset,
            template,
            ..
        } => {
            template
                .iter_mut()
                .for_each(|triple| constants.triple(triple));
            (pattern, dataset)
        }
    };
    if let Some(QueryDataset { default, named }) = dataset {
        let named = named.iter_mut().flatten();
        default
            .iter_mut()
            .chain(named)
            .for_each(|graph| constants.node(graph));
    }
    constants.pattern(pattern);
}

struct Constants<'c>(&'c [Constant<'c>]);

impl Constants<'_> {
    fn at(&self, place: Option<&str>) -> Option<Constant<'_>> {
        self.0.get(place?.parse::<usize>().ok()?).copied()
    }

    fn node(&self, node: &mut NamedNode) {
        let place = node.as_str().strip_prefix(STAND_IN_IRI);
        if let Some(Constant::Iri(iri)) = self.at(place) {
            // Plain IRIs only come here.
            *node = NamedNode::new_unchecked(iri);
        }
    }

    fn literal(&self, literal: &mut Literal) {
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

    fn predicate(&self, name: &mut NamedNodePattern) {
        match name {
            NamedNodePattern::NamedNode(node) => self.node(node),
            NamedNodePattern::Variable(_) => {}
        }
    }

    fn term(&self, term: &mut TermPattern) {
        match term {
            TermPattern::NamedNode(node) => self.node(node),
            TermPattern::Literal(literal) => self.literal(literal),
            TermPattern::Triple(triple) => self.triple(triple),
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => {}
        }
    }

    fn triple(&self, triple: &mut TriplePattern) {
        self.term(&mut triple.subject);
        self.predicate(&mut triple.predicate);
        self.term(&mut triple.object);
    }

    fn ground(&self, term: &mut GroundTerm) {
        match term {
            GroundTerm::NamedNode(node) => self.node(node),
            GroundTerm::Literal(literal) => self.literal(literal),
            GroundTerm::Triple(triple) => {
                let GroundTriple {
                    subject,
                    predicate,
                    object,
                } = &mut **triple;
                self.node(subject);
                self.node(predicate);
                self.ground(object);
            }
        }
    }

    fn path(&self, path: &mut PropertyPathExpression) {
        use PropertyPathExpression as Path;
        match path {
            Path::NamedNode(node) => self.node(node),
            Path::Reverse(inner)
            | Path::ZeroOrMore(inner)
            | Path::OneOrMore(inner)
            | Path::ZeroOrOne(inner) => self.path(inner),
            Path::Sequence(left, right) | Path::Alternative(left, right) => {
                self.path(left);
                self.path(right);
            }
            Path::NegatedPropertySet(nodes) => nodes.iter_mut().for_each(|node| self.node(node)),
        }
    }

    fn pattern(&self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                patterns.iter_mut().for_each(|triple| self.triple(triple));
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                self.term(subject);
                self.path(path);
                self.term(object);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.pattern(left);
                self.pattern(right);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left);
                self.pattern(right);
                expression.iter_mut().for_each(|e| self.expression(e));
            }
            GraphPattern::Filter { expr, inner } => {
                self.expression(expr);
                self.pattern(inner);
            }
            GraphPattern::Graph { name, inner } | GraphPattern::Service { name, inner, .. } => {
                self.predicate(name);
                self.pattern(inner);
            }
            GraphPattern::Extend {
                inner, expression, ..
            } => {
                self.pattern(inner);
                self.expression(expression);
            }
            GraphPattern::Values { bindings, .. } => {
                let terms = bindings.iter_mut().flatten().flatten();
                terms.for_each(|term| self.ground(term));
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.pattern(inner);
                for order in expression {
                    match order {
                        OrderExpression::Asc(e) | OrderExpression::Desc(e) => self.expression(e),
                    }
                }
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                self.pattern(inner);
                for (_, aggregate) in aggregates {
                    match aggregate {
                        AggregateExpression::CountSolutions { .. } => {}
                        AggregateExpression::FunctionCall { expr, .. } => self.expression(expr),
                    }
                }
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.pattern(inner),
        }
    }

    fn expression(&self, expression: &mut Expression) {
        match expression {
            Expression::NamedNode(node) => self.node(node),
            Expression::Literal(literal) => self.literal(literal),
            Expression::Variable(_) | Expression::Bound(_) => {}
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => {
                self.expression(a);
                self.expression(b);
            }
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
                self.expression(a);
            }
            Expression::In(value, list) => {
                self.expression(value);
                list.iter_mut().for_each(|e| self.expression(e));
            }
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::If(a, b, c) => {
                self.expression(a);
                self.expression(b);
                self.expression(c);
            }
            Expression::Coalesce(list) => list.iter_mut().for_each(|e| self.expression(e)),
            Expression::FunctionCall(function, list) => {
                if let Function::Custom(node) = function {
                    self.node(node);
                }
                list.iter_mut().for_each(|e| self.expression(e));
            }
        }
    }
}
