//! The predicates and classes that a text names.
//!
//! Predicates are the IRIs in predicate position of patterns, paths, templates and data; classes
//! those that are objects of `rdf:type` there. Each counts once a text.

use std::collections::BTreeSet;

use orrery_syntax::{Limits, ParserOptions, parse_query, parse_update, template_graph};
use orrery_term::prefixes::well_known;
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{
    GroundTerm, GroundTermPattern, NamedNodePattern, Term, TermPattern, TriplePattern,
};
use spargebra::{GraphUpdateOperation, Query, Update};

use crate::kind::Kind;

/// Any will do: relative IRIs are told apart by what stands in the text.
const BASE: &str = "http://localhost/";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// What the thread of a report has the stack for.
const LIMITS: Limits = Limits {
    nesting_max: 128,
    operators_max: 20_000,
};

/// What a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) predicates: BTreeSet<String>,
    pub(crate) classes: BTreeSet<String>,
}

/// Reads a text of SPARQL; none where it is wrong. Prefixes that everybody knows need not be
/// declared, as in the server; those that a database has are not known here.
pub(crate) fn used_in(kind: Kind, text: &str) -> Option<Used> {
    let prefix = |name: &str| well_known(name).map(str::to_owned);
    let options = ParserOptions {
        base: Some(BASE),
        prefixes: Some(&prefix),
        is_standard: false,
        limits: LIMITS,
        abandoned: None,
    };
    let mut used = Used::default();
    match kind {
        Kind::Update => used.add_update(&parse_update(text, &options).ok()?.0),
        Kind::Query | Kind::Select | Kind::Ask | Kind::Construct | Kind::Describe => {
            used.add_query(&parse_query(text, &options).ok()?.0);
        }
        Kind::Sql => return None,
    }
    Some(used)
}

/// What is still to be looked at: a list, for the tree may be deep.
enum Part<'q> {
    Pattern(&'q GraphPattern),
    Expression(&'q Expression),
    Path(&'q PropertyPathExpression),
}

impl Used {
    fn add_query(&mut self, query: &Query) {
        let pattern = match query {
            Query::Construct {
                template, pattern, ..
            } => {
                let triples = template.iter().filter(|it| template_graph(it).is_none());
                triples.for_each(|triple| self.add_triples(std::slice::from_ref(triple)));
                pattern
            }
            Query::Select { pattern, .. }
            | Query::Describe { pattern, .. }
            | Query::Ask { pattern, .. } => pattern,
        };
        self.add_pattern(pattern);
    }

    fn add_update(&mut self, update: &Update) {
        for operation in &update.operations {
            match operation {
                GraphUpdateOperation::InsertData { data } => {
                    for quad in data {
                        let class = match &quad.object {
                            Term::NamedNode(class) => Some(class.as_str()),
                            _ => None,
                        };
                        self.add_predicate(quad.predicate.as_str(), class);
                    }
                }
                GraphUpdateOperation::DeleteData { data } => {
                    for quad in data {
                        let class = match &quad.object {
                            GroundTerm::NamedNode(class) => Some(class.as_str()),
                            _ => None,
                        };
                        self.add_predicate(quad.predicate.as_str(), class);
                    }
                }
                GraphUpdateOperation::DeleteInsert {
                    delete,
                    insert,
                    pattern,
                    using: _,
                } => {
                    for quad in delete {
                        let class = match &quad.object {
                            GroundTermPattern::NamedNode(class) => Some(class.as_str()),
                            _ => None,
                        };
                        self.add_named(&quad.predicate, class);
                    }
                    for quad in insert {
                        self.add_named(&quad.predicate, class_of(&quad.object));
                    }
                    self.add_pattern(pattern);
                }
                GraphUpdateOperation::Load { .. }
                | GraphUpdateOperation::Clear { .. }
                | GraphUpdateOperation::Create { .. }
                | GraphUpdateOperation::Drop { .. } => {}
            }
        }
    }

    fn add_predicate(&mut self, predicate: &str, class: Option<&str>) {
        if !self.predicates.contains(predicate) {
            self.predicates.insert(predicate.to_owned());
        }
        if let Some(class) = class
            && predicate == RDF_TYPE
        {
            self.classes.insert(class.to_owned());
        }
    }

    fn add_named(&mut self, predicate: &NamedNodePattern, class: Option<&str>) {
        if let NamedNodePattern::NamedNode(predicate) = predicate {
            self.add_predicate(predicate.as_str(), class);
        }
    }

    fn add_triples(&mut self, triples: &[TriplePattern]) {
        for triple in triples {
            self.add_named(&triple.predicate, class_of(&triple.object));
        }
    }

    fn add_pattern(&mut self, pattern: &GraphPattern) {
        let mut parts = vec![Part::Pattern(pattern)];
        while let Some(part) = parts.pop() {
            match part {
                Part::Pattern(pattern) => self.look_at(pattern, &mut parts),
                Part::Expression(expression) => look_into(expression, &mut parts),
                Part::Path(path) => self.look_along(path, &mut parts),
            }
        }
    }

    fn look_at<'q>(&mut self, pattern: &'q GraphPattern, parts: &mut Vec<Part<'q>>) {
        match pattern {
            GraphPattern::Bgp { patterns } => self.add_triples(patterns),
            GraphPattern::Path { path, object, .. } => {
                if let (PropertyPathExpression::NamedNode(predicate), class) =
                    (path, class_of(object))
                {
                    self.add_predicate(predicate.as_str(), class);
                }
                parts.push(Part::Path(path));
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                parts.extend([Part::Pattern(left), Part::Pattern(right)]);
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                parts.extend([Part::Pattern(left), Part::Pattern(right)]);
                parts.extend(expression.as_ref().map(Part::Expression));
            }
            GraphPattern::Filter {
                expr: expression,
                inner,
            }
            | GraphPattern::Extend {
                inner, expression, ..
            } => parts.extend([Part::Pattern(inner), Part::Expression(expression)]),
            GraphPattern::OrderBy { inner, expression } => {
                parts.push(Part::Pattern(inner));
                parts.extend(expression.iter().map(|order| match order {
                    OrderExpression::Asc(it) | OrderExpression::Desc(it) => Part::Expression(it),
                }));
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                parts.push(Part::Pattern(inner));
                parts.extend(aggregates.iter().filter_map(|(_, it)| match it {
                    AggregateExpression::CountSolutions { .. } => None,
                    AggregateExpression::FunctionCall { expr, .. } => Some(Part::Expression(expr)),
                }));
            }
            GraphPattern::Graph { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Service { inner, .. } => parts.push(Part::Pattern(inner)),
            GraphPattern::Values { .. } => {}
        }
    }

    fn look_along<'q>(&mut self, path: &'q PropertyPathExpression, parts: &mut Vec<Part<'q>>) {
        match path {
            PropertyPathExpression::NamedNode(predicate) => {
                self.add_predicate(predicate.as_str(), None);
            }
            PropertyPathExpression::Reverse(inner)
            | PropertyPathExpression::ZeroOrMore(inner)
            | PropertyPathExpression::OneOrMore(inner)
            | PropertyPathExpression::ZeroOrOne(inner) => parts.push(Part::Path(inner)),
            PropertyPathExpression::Sequence(first, second)
            | PropertyPathExpression::Alternative(first, second) => {
                parts.extend([Part::Path(first), Part::Path(second)]);
            }
            PropertyPathExpression::NegatedPropertySet(predicates) => {
                for predicate in predicates {
                    self.add_predicate(predicate.as_str(), None);
                }
            }
        }
    }
}

/// Patterns stand in expressions, too: those of `EXISTS`.
fn look_into<'q>(expression: &'q Expression, parts: &mut Vec<Part<'q>>) {
    match expression {
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_) => {}
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
        | Expression::Divide(a, b) => parts.extend([Part::Expression(a), Part::Expression(b)]),
        Expression::In(a, list) => {
            parts.push(Part::Expression(a));
            parts.extend(list.iter().map(Part::Expression));
        }
        Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
            parts.push(Part::Expression(a));
        }
        Expression::Exists(pattern) => parts.push(Part::Pattern(pattern)),
        Expression::If(a, b, c) => {
            parts.extend([a, b, c].map(|it| Part::Expression(it)));
        }
        Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
            parts.extend(list.iter().map(Part::Expression));
        }
    }
}

fn class_of(object: &TermPattern) -> Option<&str> {
    match object {
        TermPattern::NamedNode(class) => Some(class.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(kind: Kind, text: &str) -> (Vec<String>, Vec<String>) {
        let used = used_in(kind, text).unwrap();
        let short = |names: BTreeSet<String>| {
            let names = names.into_iter();
            names
                .map(|name| name.replace("http://e/", ":").replace(RDF_TYPE, "a"))
                .collect()
        };
        (short(used.predicates), short(used.classes))
    }

    #[test]
    fn predicates_and_classes_of_queries_are_found_wherever_they_stand() {
        let text = "PREFIX : <http://e/> CONSTRUCT { ?s :made 1 } WHERE {
            ?s a :C ; :p1/^:p2* ?o . OPTIONAL { ?o !(:p3|^:p4) ?x FILTER EXISTS { ?x :p5 ?y } }
            { SELECT (SUM(IF(EXISTS { ?q :p6 ?r }, 1, 2)) AS ?n) { GRAPH ?g { ?q :p7 ?r } } GROUP BY ?q }
            MINUS { ?s ?any :notAClass . ?s :p8 :notAClass } }";
        let (predicates, classes) = used(Kind::Construct, text);
        assert_eq!(
            predicates,
            [
                ":made", ":p1", ":p2", ":p3", ":p4", ":p5", ":p6", ":p7", ":p8", "a"
            ]
        );
        assert_eq!(classes, [":C"]);
    }

    #[test]
    fn those_of_updates_are_found_in_data_templates_and_patterns() {
        let text =
            "PREFIX : <http://e/> INSERT DATA { :s a :C1 ; :p1 1 } ; DELETE DATA { :s a :C2 } ;
            DELETE { ?s :p2 ?o } INSERT { ?s a :C3 } WHERE { ?s :p3 ?o } ; CLEAR ALL";
        let (predicates, classes) = used(Kind::Update, text);
        assert_eq!(predicates, [":p1", ":p2", ":p3", "a"]);
        assert_eq!(classes, [":C1", ":C2", ":C3"]);
    }

    #[test]
    fn what_is_wrong_is_not_read_and_known_prefixes_need_not_be_declared() {
        assert_eq!(used_in(Kind::Query, "SELECT ?s { ?s }"), None);
        assert_eq!(used_in(Kind::Sql, "select 1"), None);
        let used = used_in(Kind::Ask, "ASK { ?s foaf:name ?n }").unwrap();
        assert!(used.predicates.contains("http://xmlns.com/foaf/0.1/name"));
    }
}
