//! A visitor of all constants in a query's algebra, which may replace them.

use orrery_expressions::for_each_child_mut;
use orrery_syntax::template_graph;
use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression, QueryDataset,
};
use spargebra::term::{GroundTerm, GroundTriple, NamedNodePattern, TermPattern, TriplePattern};

use crate::algebra::{finds_paths, names_end};

/// Where a constant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Subject or object of a triple pattern, or end of a path.
    Slot,
    /// One side of `<`, `<=`, `>` or `>=` in a condition.
    Compared,
    /// One side of `!=` in a condition.
    Excluded,
    /// The template of a `CONSTRUCT`.
    Template,
    /// Anywhere else.
    Other,
}

/// What is called for each constant.
pub(super) trait Visitor {
    fn node(&mut self, node: &mut NamedNode, place: Place);
    fn literal(&mut self, literal: &mut Literal, place: Place);
}

/// Visits the constants of a query.
pub(super) fn walk_query(query: &mut Query, visitor: &mut impl Visitor) {
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
            walk_template(template, visitor);
            (pattern, dataset)
        }
    };
    let mut walk = Walk(visitor, Within::Pattern);
    if let Some(QueryDataset { default, named }) = dataset {
        let named = named.iter_mut().flatten();
        default
            .iter_mut()
            .chain(named)
            .for_each(|graph| walk.0.node(graph, Place::Other));
    }
    walk.pattern(pattern);
}

/// Visits the constants of a `CONSTRUCT`'s template.
pub(super) fn walk_template(template: &mut [TriplePattern], visitor: &mut impl Visitor) {
    let mut walk = Walk(visitor, Within::Pattern);
    for triple in template {
        match template_graph(triple) {
            Some(None) => {}
            Some(Some(_)) => walk.term(&mut triple.subject, Place::Template),
            None => walk.triple(triple, [Place::Template; 2]),
        }
    }
}

/// What triples are where a walk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Patterns of the data.
    Pattern,
    /// Settings of a search for paths, whose ends stand in slots.
    Search,
    /// Settings of another service that is answered here, or what another endpoint is asked.
    Service,
}

struct Walk<'v, V>(&'v mut V, Within);

impl<V: Visitor> Walk<'_, V> {
    fn node(&mut self, node: &mut NamedNode) {
        self.0.node(node, Place::Other);
    }

    fn predicate(&mut self, name: &mut NamedNodePattern, place: Place) {
        match name {
            NamedNodePattern::NamedNode(node) => self.0.node(node, place),
            NamedNodePattern::Variable(_) => {}
        }
    }

    fn term(&mut self, term: &mut TermPattern, place: Place) {
        match term {
            TermPattern::NamedNode(node) => self.0.node(node, place),
            TermPattern::Literal(literal) => self.0.literal(literal, place),
            // What is within a triple term stands in no slot.
            TermPattern::Triple(triple) => {
                let place = match place {
                    Place::Template => Place::Template,
                    _ => Place::Other,
                };
                self.triple(triple, [place; 2]);
            }
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => {}
        }
    }

    fn triple(&mut self, triple: &mut TriplePattern, [nodes, predicate]: [Place; 2]) {
        self.term(&mut triple.subject, nodes);
        self.predicate(&mut triple.predicate, predicate);
        self.term(&mut triple.object, nodes);
    }

    /// A triple of a pattern, or of what a service is told.
    fn pattern_triple(&mut self, triple: &mut TriplePattern) {
        let [subject, object] = match self.1 {
            Within::Pattern => [Place::Slot; 2],
            Within::Search if names_end(&triple.predicate) => [Place::Other, Place::Slot],
            Within::Search | Within::Service => [Place::Other; 2],
        };
        self.term(&mut triple.subject, subject);
        self.predicate(&mut triple.predicate, Place::Other);
        self.term(&mut triple.object, object);
    }

    fn ground(&mut self, term: &mut GroundTerm) {
        match term {
            GroundTerm::NamedNode(node) => self.node(node),
            GroundTerm::Literal(literal) => self.0.literal(literal, Place::Other),
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

    fn path(&mut self, path: &mut PropertyPathExpression) {
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

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                for triple in patterns {
                    self.pattern_triple(triple);
                }
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                let place = match self.1 {
                    Within::Pattern | Within::Search => Place::Slot,
                    Within::Service => Place::Other,
                };
                self.term(subject, place);
                self.path(path);
                self.term(object, place);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
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
                expression.iter_mut().for_each(|e| self.condition(e));
            }
            GraphPattern::Filter { expr, inner } => {
                self.condition(expr);
                self.pattern(inner);
            }
            GraphPattern::Graph { name, inner } => {
                self.predicate(name, Place::Other);
                self.pattern(inner);
            }
            GraphPattern::Service { name, inner, .. } => {
                self.predicate(name, Place::Other);
                let within = match self.1 {
                    // The pattern of the edges.
                    Within::Search => Within::Pattern,
                    Within::Pattern if finds_paths(name) => Within::Search,
                    Within::Pattern | Within::Service => Within::Service,
                };
                let around = std::mem::replace(&mut self.1, within);
                self.pattern(inner);
                self.1 = around;
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

    /// What a filter asks for: constants that are compared there have places of their own.
    fn condition(&mut self, condition: &mut Expression) {
        match condition {
            Expression::And(a, b) | Expression::Or(a, b) => {
                self.condition(a);
                self.condition(b);
            }
            Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b) => {
                self.operand(a, Place::Compared);
                self.operand(b, Place::Compared);
            }
            Expression::Not(inner) => match &mut **inner {
                Expression::Equal(a, b) => {
                    self.operand(a, Place::Excluded);
                    self.operand(b, Place::Excluded);
                }
                other => self.expression(other),
            },
            other => self.expression(other),
        }
    }

    fn operand(&mut self, operand: &mut Expression, place: Place) {
        match operand {
            Expression::NamedNode(node) => self.0.node(node, place),
            Expression::Literal(literal) => self.0.literal(literal, place),
            other => self.expression(other),
        }
    }

    fn expression(&mut self, expression: &mut Expression) {
        match expression {
            Expression::NamedNode(node) => self.node(node),
            Expression::Literal(literal) => self.0.literal(literal, Place::Other),
            Expression::Exists(pattern) => self.pattern(pattern),
            other => {
                if let Expression::FunctionCall(Function::Custom(node), _) = other {
                    self.node(node);
                }
                for_each_child_mut(other, &mut |child| self.expression(child));
            }
        }
    }
}
