//! The cache of join orders, for queries of the same shape whose constants have similar counts.
//!
//! ```text
//! group, join -> shape: which pattern has which variables, predicates and kinds of constants; filters; seed
//!                scope: the list of graphs that is seen, if not all are
//!            -> cached for it: order, what sampling found, the counts of all members that led to them
//!               each count within a factor of two, same base?  -> that order, estimates by the new counts
//!               else                                            -> search, sampling; the result is cached
//! ```
//!
//! Any order of a group's members gives the right answers, so a cached order can only be slow,
//! never wrong. A new base (a load, a compaction) has other statistics and other ids, so entries of
//! the old one are not used; changes between show in the counts, which are exact for the constants
//! of each query. A pattern without matches never comes here: its group is empty.
//!
//! Bounded by [`SHAPES_MAX`], with [`VARIANTS_MAX`] sets of counts each; the least recently used
//! shape goes.

use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use orrery_storage::ReadScope;

use crate::algebra::{Group, Item, Quad, Scope, Slot};
use crate::plan::estimate::cardinality::{Access, Correction, Join};

/// Shapes that are kept.
const SHAPES_MAX: usize = 1_024;
/// Sets of counts of one shape. With two features and a type, each of them frequent or rare, four
/// were too few: BSBM explore Q1 mostly looked for its order again.
const VARIANTS_MAX: usize = 16;
/// Counts are similar up to this factor.
const SIMILAR_MAX: f64 = 2.0;
/// Joins of more members are not kept: their orders are greedy anyway.
const MEMBERS_MAX: usize = 64;

/// Orders by the shape of the join; shared by all queries of an engine.
#[derive(Debug, Default)]
pub(crate) struct OrderCache {
    shapes: Mutex<Shapes>,
}

#[derive(Debug)]
struct Shapes {
    /// For each shape the newest order first.
    by_key: LruCache<Box<[u64]>, Vec<Arc<KeptOrder>>>,
    hits: u64,
    misses: u64,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            // Grows with what it holds; `keep` bounds it.
            by_key: LruCache::unbounded(),
            hits: 0,
            misses: 0,
        }
    }
}

/// An order, and for what it was chosen.
#[derive(Debug)]
pub(super) struct KeptOrder {
    /// The name of the snapshot's base.
    pub(super) base: Box<str>,
    pub(super) counts: Box<[f64]>,
    pub(super) members: Vec<usize>,
    pub(super) corrections: Vec<Correction>,
}

/// The hits and misses of the join order cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Joins whose order was known.
    pub hits: u64,
    /// Joins whose order had to be looked for.
    pub misses: u64,
    /// Shapes of joins that are kept.
    pub kept: u64,
}

impl OrderCache {
    /// How often an order was known.
    pub(crate) fn counts(&self) -> OrderCounts {
        let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        OrderCounts {
            hits: shapes.hits,
            misses: shapes.misses,
            kept: shapes.by_key.len() as u64,
        }
    }

    pub(super) fn find(&self, key: &[u64], base: &str, counts: &[f64]) -> Option<Arc<KeptOrder>> {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = shapes.by_key.get(key).and_then(|variants| {
            let mut variants = variants.iter();
            variants.find(|variant| variant.fits(base, counts)).cloned()
        });
        match found {
            Some(_) => shapes.hits += 1,
            None => shapes.misses += 1,
        }
        found
    }

    pub(super) fn keep(&self, key: Box<[u64]>, variant: KeptOrder) {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let variants = shapes.by_key.get_or_insert_mut(key, Vec::new);
        // What was chosen over another base does not come back.
        variants.retain(|other| other.base == variant.base);
        variants.truncate(VARIANTS_MAX - 1);
        variants.insert(0, Arc::new(variant));
        if shapes.by_key.len() > SHAPES_MAX {
            shapes.by_key.pop_lru();
        }
    }
}

impl KeptOrder {
    fn fits(&self, base: &str, counts: &[f64]) -> bool {
        *self.base == *base
            && self.counts.len() == counts.len()
            && self
                .counts
                .iter()
                .zip(counts)
                .all(|(&kept, &now)| kept <= SIMILAR_MAX * now && now <= SIMILAR_MAX * kept)
    }
}

pub(super) fn is_kept(join: &Join) -> bool {
    (2..=MEMBERS_MAX).contains(&join.members.len())
}

/// The rows of all members and of the seed.
pub(super) fn counts(join: &Join) -> Box<[f64]> {
    let members = join.members.iter().map(|member| member.rows);
    members.chain(join.seed_rows).collect()
}

/// All of a join but its counts, in words that no other shape has. What was found among some graphs
/// is told nobody who sees others, so the number of the list belongs to it.
pub(super) fn shape(group: &Group, join: &Join, scope: &ReadScope) -> Box<[u64]> {
    let mut key = Vec::with_capacity(8 * group.items.len() + 16);
    key.push(scope.number().unwrap_or(0));
    key.extend([group.items.len() as u64, join.conditions.len() as u64]);
    push_mask(&mut key, join.seed_variables);
    for (item, member) in group.items.iter().zip(&join.members) {
        push_mask(&mut key, member.variables);
        match item {
            Item::Quad(quad) => push_quad(&mut key, quad),
            Item::Path(_) => key.push(1),
            Item::Values(_) => key.push(2),
            Item::Graphs(_) => key.push(3),
            Item::Derived(_) => key.push(4),
            Item::Service(_) => key.push(5),
            Item::Mapped(_) => key.push(8),
            Item::Search(_) => key.push(9),
            Item::Algorithm(_) => key.push(10),
            Item::Weights(_) => key.push(11),
            Item::Seed(_) => key.push(6),
            Item::Group(_) | Item::Union(_) => key.push(7),
        }
        key.push(match member.access {
            Access::Lookup => 0,
            Access::Whole => 1,
            Access::Seeded(branches) => 2 + branches as u64,
        });
    }
    for condition in &join.conditions {
        push_mask(&mut key, condition.variables);
        key.push(condition.selectivity.to_bits());
    }
    key.into()
}

fn push_mask(key: &mut Vec<u64>, mask: u128) {
    let [low, high] = [mask as u64, (mask >> 64) as u64];
    key.extend([low, high]);
}

/// Variables by their number, a predicate by its id, other constants as such: their counts tell
/// them apart.
fn push_quad(key: &mut Vec<u64>, quad: &Quad) {
    const CONSTANT: u64 = u64::MAX;
    let slot = |slot: Slot| match slot {
        Slot::Variable(var) => var.index() as u64,
        Slot::Constant(_) | Slot::Absent => CONSTANT,
    };
    let scope = match &quad.scope {
        Scope::Default => 0,
        Scope::AllUnion => 1,
        Scope::Named(_) => 2,
        Scope::NamedVariable { .. } => 3,
        Scope::Union(graphs) => 4 + graphs.len() as u64,
    };
    let is_ranged = u64::from(quad.object_ranges.is_some());
    key.extend([8, slot(quad.subject), slot(quad.object), scope, is_ranged]);
    match quad.predicate {
        Slot::Constant(predicate) => key.extend([CONSTANT, predicate.bits()]),
        other @ (Slot::Variable(_) | Slot::Absent) => key.push(slot(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(base: &str, counts: &[f64], first: usize) -> KeptOrder {
        KeptOrder {
            base: base.into(),
            counts: counts.into(),
            members: vec![first],
            corrections: Vec::new(),
        }
    }

    fn first_of(cache: &OrderCache, key: &[u64], base: &str, counts: &[f64]) -> Option<usize> {
        let found = cache.find(key, base, counts)?;
        found.members.first().copied()
    }

    #[test]
    fn an_order_is_known_while_each_count_is_within_a_factor_of_two() {
        let cache = OrderCache::default();
        cache.keep([1].into(), variant("base", &[10.0, 1e6], 7));
        assert_eq!(first_of(&cache, &[1], "base", &[20.0, 5e5]), Some(7));
        assert_eq!(first_of(&cache, &[1], "base", &[21.0, 1e6]), None);
        assert_eq!(first_of(&cache, &[1], "base", &[10.0, 4.9e5]), None);
        assert_eq!(first_of(&cache, &[2], "base", &[10.0, 1e6]), None);
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.misses, counts.kept), (1, 3, 1));
    }

    #[test]
    fn another_base_makes_orders_unknown() {
        let cache = OrderCache::default();
        cache.keep([1].into(), variant("old", &[10.0], 1));
        assert_eq!(first_of(&cache, &[1], "new", &[10.0]), None);
        cache.keep([1].into(), variant("new", &[10.0], 2));
        assert_eq!(first_of(&cache, &[1], "new", &[10.0]), Some(2));
        assert_eq!(first_of(&cache, &[1], "old", &[10.0]), None);
    }

    #[test]
    fn shapes_and_their_variants_are_bounded() {
        let cache = OrderCache::default();
        let counts_of = |number: usize| [10_f64.powi(number as i32)];
        for number in 0..VARIANTS_MAX + 6 {
            cache.keep([0].into(), variant("base", &counts_of(number), number));
        }
        for number in [6, 9, VARIANTS_MAX + 5] {
            let found = first_of(&cache, &[0], "base", &counts_of(number));
            assert_eq!(found, Some(number));
        }
        assert_eq!(first_of(&cache, &[0], "base", &counts_of(5)), None);
        for key in 1..=SHAPES_MAX as u64 {
            // Used all the time, the first shape stays.
            cache.find(&[0], "base", &[1e9]);
            cache.keep([key].into(), variant("base", &[1.0], 0));
        }
        assert_eq!(cache.counts().kept, SHAPES_MAX as u64);
        assert_eq!(first_of(&cache, &[0], "base", &[1e9]), Some(9));
        assert_eq!(first_of(&cache, &[1], "base", &[1.0]), None);
    }
}
