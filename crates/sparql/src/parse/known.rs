//! A cached shape: its algebra, and the places of its constants.
//!
//! A constant is *free* where it stands as subject or object of triple patterns, as end of a path
//! or of a search for paths, beside `<`, `>` or `!=` in conditions, or in the template of a
//! `CONSTRUCT`, and nowhere else: there a plan can take another one without being another plan. All
//! others are *fixed*: `VALUES`, `IN`, `=` in conditions, steps of paths, settings of services,
//! arguments of functions, graphs, predicates; and truth values in every place.

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::Expression;
use spargebra::term::TriplePattern;

use super::shape::Constant;
use super::substitute::{
    place_of_literal, place_of_node, substitute, substitute_in_template, term_of,
};
use super::walk::{Place, Visitor, walk_query};

/// The algebra of a shape, with stand-ins for its constants.
#[derive(Debug)]
pub(crate) struct KnownShape {
    number: u64,
    query: Query,
    is_ordinary: bool,
    /// What is known of each constant.
    uses: Box<[ConstantUse]>,
    /// The constants of the text that were not taken out.
    others: Box<[Expression]>,
}

/// What a constant of a shape is in its algebra.
#[derive(Debug)]
pub(crate) struct ConstantUse {
    /// Its stand-in, if it is free.
    stand_in: Option<Expression>,
    /// Whether it stands in patterns, so that its id matters.
    pub(crate) is_in_patterns: bool,
    /// Whether it stands in conditions.
    pub(crate) is_in_conditions: bool,
}

impl ConstantUse {
    /// Whether a plan can take another constant in its place.
    pub(crate) fn is_free(&self) -> bool {
        self.stand_in.is_some()
    }
}

impl KnownShape {
    pub(super) fn new(
        number: u64,
        mut query: Query,
        is_ordinary: bool,
        constants: &[Constant<'_>],
    ) -> Self {
        let mut seen = Seen {
            uses: constants.iter().map(|_| Use::default()).collect(),
            others: Vec::new(),
        };
        walk_query(&mut query, &mut seen);
        let uses = seen.uses.into_iter().map(|it| ConstantUse {
            stand_in: it.stand_in.filter(|_| !it.is_fixed),
            is_in_patterns: it.is_in_patterns,
            is_in_conditions: it.is_in_conditions,
        });
        Self {
            number,
            query,
            is_ordinary,
            uses: uses.collect(),
            others: seen.others.into(),
        }
    }

    /// A number that no other shape has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the algebra can be walked on any thread.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.is_ordinary
    }

    /// The algebra, with stand-ins for the constants.
    pub(crate) fn algebra(&self) -> &Query {
        &self.query
    }

    /// What each constant is in the algebra.
    pub(crate) fn uses(&self) -> &[ConstantUse] {
        &self.uses
    }

    /// The constants of the text that are the same in all queries of the shape.
    pub(crate) fn others(&self) -> &[Expression] {
        &self.others
    }

    /// The query with these constants.
    pub(crate) fn query(&self, constants: &[Constant<'_>]) -> Query {
        let mut query = self.query.clone();
        substitute(&mut query, constants);
        query
    }

    /// The template of a `CONSTRUCT` with these constants; empty for other forms.
    pub(crate) fn template(&self, constants: &[Constant<'_>]) -> Vec<TriplePattern> {
        let Query::Construct { template, .. } = &self.query else {
            return Vec::new();
        };
        let mut template = template.clone();
        substitute_in_template(&mut template, constants);
        template
    }

    /// The term of a free constant.
    pub(crate) fn term(&self, place: usize, constants: &[Constant<'_>]) -> Option<Expression> {
        let stand_in = self.uses.get(place)?.stand_in.as_ref()?;
        Some(term_of(stand_in, constants))
    }
}

#[derive(Debug, Default)]
struct Use {
    stand_in: Option<Expression>,
    is_fixed: bool,
    is_in_patterns: bool,
    is_in_conditions: bool,
}

/// What a walk has seen.
struct Seen {
    uses: Vec<Use>,
    others: Vec<Expression>,
}

impl Seen {
    fn constant(&mut self, constant: Expression, place: Option<usize>, stands: Place) {
        let Some(known) = place.and_then(|place| self.uses.get_mut(place)) else {
            self.others.push(constant);
            return;
        };
        let can_be_another = match (stands, &constant) {
            // The planner has truth values of its own in conditions, which are not to be taken for
            // a constant of the text.
            (_, Expression::Literal(literal)) if literal.datatype() == xsd::BOOLEAN => false,
            (Place::Slot | Place::Template | Place::Excluded, _) => true,
            (Place::Compared, Expression::Literal(_)) => true,
            (Place::Compared | Place::Other, _) => false,
        };
        known.is_fixed |= !can_be_another;
        known.is_in_patterns |= stands == Place::Slot;
        known.is_in_conditions |= matches!(stands, Place::Compared | Place::Excluded);
        // One place of the text may be one of several in the algebra, which are the same term, or
        // are not.
        match &known.stand_in {
            Some(stand_in) => known.is_fixed |= *stand_in != constant,
            None => known.stand_in = Some(constant),
        }
    }
}

impl Visitor for Seen {
    fn node(&mut self, node: &mut NamedNode, stands: Place) {
        let place = place_of_node(node);
        self.constant(Expression::NamedNode(node.clone()), place, stands);
    }

    fn literal(&mut self, literal: &mut Literal, stands: Place) {
        let place = place_of_literal(literal);
        self.constant(Expression::Literal(literal.clone()), place, stands);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::cache::{ReadText, ShapeCache};
    use super::super::{Assumed, Stack};
    use super::*;

    fn known(text: &str) -> Arc<KnownShape> {
        let cache = ShapeCache::default();
        let mut read = None;
        for _ in 0..3 {
            read = Some(cache.read(text, Assumed::default(), Stack::Large).unwrap());
        }
        match read {
            Some(ReadText::Known(shape, _)) => shape,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn constants_are_free_where_a_plan_can_take_others() {
        for (text, free) in [
            ("SELECT * { <http://e/s> ?p 'o' }", "ss"),
            ("SELECT * { ?s <http://e/p> <http://e/o> }", "-s"),
            (
                "SELECT * { ?s ?p ?o FILTER(?o > 5 && 'x' != ?o || ?o < 7) }",
                "fff",
            ),
            (
                "SELECT * { ?s ?p ?o OPTIONAL { ?o ?p ?q FILTER(?q < 7) } }",
                "f",
            ),
            ("SELECT * { ?s ?p ?o FILTER(?o = 5) }", "-"),
            (
                "CONSTRUCT { ?s ?p 'true'^^<http://www.w3.org/2001/XMLSchema#boolean> }
                 { ?s ?p 'true'^^<http://www.w3.org/2001/XMLSchema#boolean> , ?o
                   FILTER(?o != 'true'^^<http://www.w3.org/2001/XMLSchema#boolean>) }",
                "---",
            ),
            ("SELECT * { ?s ?p ?o FILTER(?o < ?s + 5) }", "-"),
            (
                "SELECT * { ?s ?p ?o FILTER(?o IN (5, <http://e/o>)) }",
                "--",
            ),
            ("SELECT * { ?s ?p ?o FILTER(?o < <http://e/o>) }", "-"),
            ("SELECT * { ?s ?p ?o FILTER(CONTAINS(?o, 'x')) }", "-"),
            ("SELECT * { ?s ?p ?o BIND(5 AS ?x) }", "-"),
            ("SELECT * { GRAPH <http://e/g> { ?s ?p 5 } }", "-s"),
            ("SELECT * { VALUES ?s { <http://e/s> } ?s ?p 5 }", "-s"),
            ("SELECT * { <http://e/s> <http://e/p>* ?o }", "s-"),
            ("SELECT * { <http://e/s> (<http://e/p>|^<http://e/q>)+ <http://e/o> }", "--s"),
            (
                "PATHS START ?x = <http://e/a> END ?y = <http://e/b> VIA { ?x <http://e/p> ?y ; <http://e/q> <http://e/c> FILTER(?y != 5) } MAX LENGTH 4",
                "ss--sf",
            ),
            ("PATHS SHORTEST 3 START ?x = <http://e/a> END ?y VIA <http://e/p>", "-s-"),
            (
                "PREFIX path: <https://orrery-db.org/path#>
                 SELECT * { SERVICE path:search { <urn:p> path:findPath path:allPaths ; path:sourceNode <http://e/a> ; path:maxPathLength 4 . SERVICE <urn:e> { ?x ?p <http://e/c> } } }",
                "s-s",
            ),
            (
                "PREFIX path: <https://orrery-db.org/path#>
                 SELECT * { SERVICE path:search { <http://e/a> <http://e/p>+ ?o . [] path:length ?n } }",
                "s-",
            ),
            (
                "SELECT * { SERVICE <http://e/x> { <http://e/a> ?p 5 } }",
                "---",
            ),
            (
                "CONSTRUCT { <http://e/a> ?p 5 } { <http://e/s> ?p ?o }",
                "ffs",
            ),
            (
                "SELECT * { ?s ?p <http://e/o> , <http://e/o> FILTER(?s != <http://e/o>) }",
                "ssf",
            ),
            (
                "ASK { ?s ?p ?o FILTER EXISTS { ?s ?p <http://e/o> FILTER(?o < 3) } }",
                "sf",
            ),
        ] {
            let shape = known(text);
            let uses = shape.uses().iter();
            let letter = |it: &ConstantUse| match (it.is_free(), it.is_in_patterns) {
                (false, _) => '-',
                (true, true) => 's',
                (true, false) => 'f',
            };
            assert_eq!(uses.map(letter).collect::<String>(), free, "{text}");
        }
    }
}
