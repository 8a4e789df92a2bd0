//! The constants of a query that may be terms of the database, looked up at the same time.
//!
//! A plan asks for the ids of its constants one after the other. Where the dictionary's blocks have to be fetched from an object store, each of these
//! look-ups is a few waits; together they are as many as one.

use orrery_storage::Snapshot;
use orrery_term::Term;
use oxrdf::{Literal, NamedNode};
use spargebra::Query;

use super::walk::{Place, Visitor, walk_query};
use crate::results::literal_from_oxrdf;

/// Looks up the constants of a query, so that who asks for them later need not wait.
pub(crate) fn look_up(query: &Query, snapshot: &Snapshot) {
    let mut seen = Seen::default();
    walk_query(&mut query.clone(), &mut seen);
    snapshot.look_up_together(&seen.0);
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
