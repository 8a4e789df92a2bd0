//! The plans that are kept, by the shape of their queries and the constants that are fixed in it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::query::KeptQuery;
use crate::parse::{Constant, KnownShape};

/// Bytes of all plans together, about.
pub(crate) const PLAN_BYTES_MAX: usize = 32 << 20;
/// Plans of one shape with the same fixed constants; as many as there are orders of one join.
pub(crate) const VARIANTS_MAX: usize = 16;

/// Keys that are remembered because their plans could not be kept.
const REFUSED_MAX: NonZeroUsize = match NonZeroUsize::new(1_024) {
    Some(keys) => keys,
    None => NonZeroUsize::MIN,
};
/// After so many plans that could not be kept, no more of a key are tried. For other constants it may be another plan.
const REFUSALS_MAX: u32 = 4;

/// Plans by shape; shared by all queries of an engine.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    plans: Mutex<Plans>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct Plans {
    /// For each key the newest plan first.
    by_key: LruCache<PlanKey, Arc<[Arc<KeptQuery>]>>,
    bytes: usize,
    /// How often a plan could not be kept.
    refused: LruCache<PlanKey, u32>,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            // Grows with what it holds; `keep` bounds it.
            by_key: LruCache::unbounded(),
            bytes: 0,
            refused: LruCache::new(REFUSED_MAX),
        }
    }
}

/// A shape, and its fixed constants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    shape: u64,
    fixed: Box<str>,
}

impl PlanKey {
    /// The key of a query.
    pub(crate) fn of(shape: &KnownShape, constants: &[Constant<'_>]) -> Self {
        let mut fixed = String::new();
        for (constant, it) in constants.iter().zip(shape.uses()) {
            if !it.is_free() {
                fixed.push_str(constant.text());
                // Stands in no text that has a shape.
                fixed.push('\u{1}');
            }
        }
        Self {
            shape: shape.number(),
            fixed: fixed.into(),
        }
    }
}

/// How often the plan of a query was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Queries whose plan was known.
    pub hits: u64,
    /// Queries of known shapes that were planned.
    pub misses: u64,
    /// Plans that are kept.
    pub kept: u64,
    /// About so many bytes of memory are in them.
    pub bytes: u64,
}

impl PlanCache {
    /// The plans that are kept for a key.
    pub(crate) fn find(&self, key: &PlanKey) -> Option<Arc<[Arc<KeptQuery>]>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.by_key.get(key).cloned()
    }

    /// Counts whether a query of a known shape had a plan that was kept.
    pub(crate) fn note(&self, is_hit: bool) {
        let count = match is_hit {
            true => &self.hits,
            false => &self.misses,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether plans of a key cannot be kept.
    pub(crate) fn is_refused(&self, key: &PlanKey) -> bool {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans
            .refused
            .get(key)
            .is_some_and(|times| *times >= REFUSALS_MAX)
    }

    /// Notes that a plan could not be kept.
    pub(crate) fn refuse(&self, key: PlanKey) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        *plans.refused.get_or_insert_mut(key, || 0) += 1;
    }

    /// Keeps a plan; those of states before its own are dropped.
    pub(crate) fn keep(&self, key: PlanKey, plan: KeptQuery) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = &mut *plans;
        let known = plans.by_key.pop(&key);
        let known = known.as_deref().unwrap_or_default();
        plans.bytes -= bytes_of(known);
        let newer = known
            .iter()
            .filter(|other| other.state.commit >= plan.state.commit)
            .take(VARIANTS_MAX - 1)
            .cloned()
            .collect::<Vec<_>>();
        let variants: Arc<[Arc<KeptQuery>]> =
            std::iter::once(Arc::new(plan)).chain(newer).collect();
        plans.bytes += bytes_of(&variants);
        plans.by_key.put(key, variants);
        while plans.bytes > PLAN_BYTES_MAX {
            let Some((_, oldest)) = plans.by_key.pop_lru() else {
                break;
            };
            plans.bytes -= bytes_of(&oldest);
        }
    }

    pub(crate) fn counts(&self) -> PlanCounts {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = plans
            .by_key
            .iter()
            .map(|(_, variants)| variants.len())
            .sum();
        PlanCounts {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            kept: kept as u64,
            bytes: plans.bytes as u64,
        }
    }
}

fn bytes_of(variants: &[Arc<KeptQuery>]) -> usize {
    variants.iter().map(|plan| plan.bytes).sum()
}
