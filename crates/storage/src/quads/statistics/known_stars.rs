//! A cache of star estimates for later queries.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_term::TermId;
use parking_lot::Mutex;

/// Stars that are kept; beyond, all are forgotten.
pub(super) const STARS_MAX: usize = 256;

/// The stars that were asked for, by their predicates in order. Not a part of what statistics say:
/// a copy begins without.
#[derive(Debug, Default)]
pub(super) struct KnownStars(pub(super) Mutex<StarsByPredicates>);

/// What was said of each list of predicates: a star, or that there is none.
pub(super) type StarsByPredicates = HashMap<Box<[TermId]>, Option<Arc<Star>>>;

impl Clone for KnownStars {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for KnownStars {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Subjects that have the same ones of a star's predicates.
#[derive(Debug, Clone, PartialEq)]
pub struct StarGroup {
    /// Bit `n`: they have the predicate of number `n`.
    pub predicates: u32,
    /// How many subjects.
    pub subjects: f64,
    /// Their quads with each predicate, by its number; 0 of those that they lack.
    pub quads: Vec<f64>,
}

/// The characteristic sets' figures for some predicates, in the caller's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    pub(super) groups: Vec<StarGroup>,
}

impl Star {
    /// The groups of subjects that have all predicates of a subset.
    pub fn groups_with(&self, predicates: u32) -> impl Iterator<Item = &StarGroup> {
        let has_all = move |group: &&StarGroup| group.predicates & predicates == predicates;
        self.groups.iter().filter(has_all)
    }
}
