//! The shrinker of failing cases: drops quads and query parts while some variant still fails.

use oxrdf::Quad;

use super::case::{Difference, Opinion, Outcome, check};
use super::data::{Arrival, Kind};
use super::rules::is_of_lists;
use super::store::{Store, Variant};
use super::tree::Tree;

/// Smaller cases that are tried in all.
const ATTEMPTS_MAX: usize = 6_000;

/// A case that fails, and how.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) quads: Vec<Quad>,
    pub(crate) query: Tree,
    pub(crate) difference: Difference,
}

/// The smallest failure that can be reached by taking something away.
pub(crate) fn shrink(failure: Failure, kind: Kind, arrival: Arrival) -> Failure {
    let mut shrinker = Shrinker {
        kind,
        arrival,
        attempts_left: ATTEMPTS_MAX,
        smallest: failure,
    };
    while shrinker.smaller_query() || shrinker.smaller_data() {}
    shrinker.smallest
}

struct Shrinker {
    kind: Kind,
    arrival: Arrival,
    attempts_left: usize,
    smallest: Failure,
}

impl Shrinker {
    fn smaller_query(&mut self) -> bool {
        let Ok(store) = Store::new(&self.smallest.quads, self.arrival) else {
            return false;
        };
        let size = self.smallest.query.to_text().len();
        for query in self.smallest.query.smaller() {
            if query.to_text().len() < size
                && let Some(difference) = self.fails(&store, &self.smallest.quads.clone(), &query)
            {
                self.smallest.query = query;
                self.smallest.difference = difference;
                return true;
            }
        }
        false
    }

    /// Takes away runs of quads, long ones first.
    fn smaller_data(&mut self) -> bool {
        let all = self.smallest.quads.clone();
        let mut run = all.len().div_ceil(2);
        while run > 0 {
            for start in (0..all.len()).step_by(run) {
                let end = (start + run).min(all.len());
                let mut quads = [&all[..start], &all[end..]].concat();
                // What is permitted follows from them.
                quads.extend(all[start..end].iter().filter(|it| is_of_lists(it)).cloned());
                if quads.len() == all.len() {
                    continue;
                }
                let Ok(store) = Store::new(&quads, self.arrival) else {
                    return false;
                };
                if let Some(difference) = self.fails(&store, &quads, &self.smallest.query.clone()) {
                    self.smallest.quads = quads;
                    self.smallest.difference = difference;
                    return true;
                }
            }
            run /= 2;
        }
        false
    }

    fn fails(&mut self, store: &Store, quads: &[Quad], query: &Tree) -> Option<Difference> {
        self.attempts_left = self.attempts_left.checked_sub(1)?;
        let opinion = opinion(query);
        let variants = every_variant();
        match check(
            store,
            (quads, self.kind),
            &query.to_text(),
            opinion,
            &variants,
        ) {
            Outcome::Different(difference) => Some(difference),
            Outcome::Same { .. } | Outcome::NoQuery | Outcome::TooLarge => None,
        }
    }
}

/// What a query is compared with.
pub(crate) fn opinion(query: &Tree) -> Opinion {
    if query.has_ours_only() {
        Opinion::OurPlainPlan
    } else {
        Opinion::Reference
    }
}

fn every_variant() -> Vec<Variant> {
    let usual = [Variant::USUAL, Variant::PLAIN];
    [
        &usual[..],
        &Variant::OTHERS,
        &Variant::TRAVELLING,
        &Variant::DIVIDED,
        &[Variant::KEPT],
    ]
    .concat()
}
