//! Batched dictionary look-ups of a query's constants.
//!
//! ```text
//! terms of the query -> their ids -> rows of each triple pattern with constants
//! ```
//!
//! A plan asks for these one after the other. Where the blocks that they stand in have to be
//! fetched from an object store, each look-up is a few waits; together they are as many as one.

use std::thread;

use orrery_operators::count::exact_count_of_constants;
use orrery_storage::{ReadView, Snapshot};
use orrery_term::{Term, TermId};
use oxrdf::{Literal, NamedNode};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

use super::walk::{Place, Visitor, walk_query};
use crate::results::literal_from_oxrdf;

/// Patterns that are counted at the same time.
const COUNTED_TOGETHER: usize = 16;

/// Looks up the constants of a query, so that who asks for them later need not wait. What cannot be
/// looked up is told then.
pub(crate) fn look_up(query: &Query, view: &ReadView) {
    let snapshot = view.snapshot();
    let mut seen = Seen::default();
    walk_query(&mut query.clone(), &mut seen);
    snapshot.look_up_together(&seen.0);
    let (Query::Select { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }
    | Query::Ask { pattern, .. }) = query;
    let mut triples = Vec::new();
    add_triples(pattern, &mut triples);
    let constants: Vec<_> = triples
        .into_iter()
        .filter_map(|triple| constants_of(triple, snapshot))
        .collect();
    for some in constants.chunks(COUNTED_TOGETHER) {
        thread::scope(|scope| {
            for &constants in some {
                let count = move || drop(exact_count_of_constants(view, constants));
                let _ignored = thread::Builder::new().spawn_scoped(scope, count);
            }
        });
    }
}

#[derive(Default)]
struct Seen(Vec<Term<'static>>);

impl Visitor for Seen {
    fn node(&mut self, node: &mut NamedNode, _: Place) {
        self.0.push(Term::iri(node.as_str().to_owned()));
    }

    fn literal(&mut self, literal: &mut Literal, place: Place) {
        if place == Place::Slot {
            self.0.push(literal_from_oxrdf(literal).into_owned());
        }
    }
}

/// The constants of a pattern, where more than the predicate is one and the database knows all.
fn constants_of(triple: &TriplePattern, snapshot: &Snapshot) -> Option<[Option<TermId>; 3]> {
    let id = |term: Term<'_>| snapshot.term_id(&term).ok().flatten();
    let of_term = |term: &TermPattern| match term {
        TermPattern::NamedNode(node) => id(Term::iri(node.as_str())).map(Some),
        TermPattern::Literal(literal) => id(literal_from_oxrdf(literal)).map(Some),
        _ => Some(None),
    };
    let predicate = match &triple.predicate {
        NamedNodePattern::NamedNode(node) => Some(id(Term::iri(node.as_str()))?),
        NamedNodePattern::Variable(_) => None,
    };
    let constants = [
        of_term(&triple.subject)?,
        predicate,
        of_term(&triple.object)?,
    ];
    (constants[0].is_some() || constants[2].is_some()).then_some(constants)
}

fn add_triples<'q>(pattern: &'q GraphPattern, triples: &mut Vec<&'q TriplePattern>) {
    match pattern {
        GraphPattern::Bgp { patterns } => triples.extend(patterns),
        GraphPattern::Join { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right }
        | GraphPattern::LeftJoin { left, right, .. } => {
            add_triples(left, triples);
            add_triples(right, triples);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => add_triples(inner, triples),
        // Others are asked, or nobody.
        GraphPattern::Path { .. } | GraphPattern::Values { .. } | GraphPattern::Service { .. } => {}
    }
}
