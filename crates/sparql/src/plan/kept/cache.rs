//! The plan cache, by the shape of queries and the constants fixed in it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::query::KeptQuery;
use crate::parse::{Constant, KnownShape};

/// Bytes of all plans together, about.
pub(crate) const PLAN_BYTES_MAX: usize = 32 << 20;
/// Plans of one shape with the same fixed constants; as many as there are orders of one join.
pub(crate) const VARIANTS_MAX: usize = 16;

/// Keys that are remembered because their plans could not be kept, and bytes of these.
const REFUSED_MAX: usize = 1_024;
const REFUSED_BYTES_MAX: usize = 1 << 20;
/// After so many plans that could not be kept, no more of a key are tried for some commits. For
/// other constants it may be another plan.
pub(super) const REFUSALS_MAX: u32 = 4;
/// After so many commits plans are tried again that could not be kept.
pub(super) const REFUSED_COMMITS: u64 = 256;

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
    /// The newest base of which a plan was kept, and the commit of that.
    base: Option<(Box<str>, u64)>,
    /// How often a plan could not be kept.
    refused: LruCache<PlanKey, Refusals>,
    refused_bytes: usize,
}

/// How often the plan of a key could not be kept since a commit.
#[derive(Clone, Copy, Debug)]
struct Refusals {
    commit: u64,
    times: u32,
}

impl Refusals {
    fn are_of(self, commit: u64) -> bool {
        self.commit.abs_diff(commit) < REFUSED_COMMITS
    }
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            // Grows with what it holds; `keep` bounds it.
            by_key: LruCache::unbounded(),
            bytes: 0,
            base: None,
            // `refuse` bounds it.
            refused: LruCache::unbounded(),
            refused_bytes: 0,
        }
    }
}

/// A shape, and its fixed constants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.fixed.len()
    }
}

/// The hits and misses of the plan cache.
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

    /// Whether plans of a key were found not to be kept, with the data of about this commit.
    pub(crate) fn is_refused(&self, key: &PlanKey, commit: u64) -> bool {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let known = plans.refused.get(key);
        known.is_some_and(|it| it.are_of(commit) && it.times >= REFUSALS_MAX)
    }

    /// Notes that a plan for the data of this commit could not be kept.
    pub(crate) fn refuse(&self, key: PlanKey, commit: u64) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = &mut *plans;
        match plans.refused.get_mut(&key) {
            Some(known) if known.are_of(commit) => known.times = known.times.saturating_add(1),
            Some(known) => *known = Refusals { commit, times: 1 },
            None => {
                plans.refused_bytes += key.bytes();
                plans.refused.put(key, Refusals { commit, times: 1 });
            }
        }
        while plans.refused.len() > REFUSED_MAX || plans.refused_bytes > REFUSED_BYTES_MAX {
            let Some((oldest, _)) = plans.refused.pop_lru() else {
                break;
            };
            plans.refused_bytes -= oldest.bytes();
        }
    }

    /// Drops a plan that cannot be made again.
    pub(crate) fn forget(&self, key: &PlanKey, plan: &Arc<KeptQuery>) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = &mut *plans;
        let Some(known) = plans.by_key.pop(key) else {
            return;
        };
        plans.bytes -= bytes_of(key, &known);
        let others = known.iter().filter(|other| !Arc::ptr_eq(other, plan));
        let others: Arc<[Arc<KeptQuery>]> = others.cloned().collect();
        if !others.is_empty() {
            plans.bytes += bytes_of(key, &others);
            plans.by_key.put(key.clone(), others);
        }
    }

    /// Keeps a plan; those that it outlives are dropped.
    pub(crate) fn keep(&self, key: PlanKey, plan: KeptQuery) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = &mut *plans;
        if plans.refused.pop(&key).is_some() {
            plans.refused_bytes -= key.bytes();
        }
        plans.begin_base_of(&plan);
        let known = plans.by_key.pop(&key);
        if let Some(known) = &known {
            plans.bytes -= bytes_of(&key, known);
        }
        let known = known.as_deref().unwrap_or_default();
        let newer = known
            .iter()
            .filter(|other| !other.is_outlived_by(&plan) && !other.is_covered_by(&plan))
            .take(VARIANTS_MAX - 1)
            .cloned()
            .collect::<Vec<_>>();
        let variants: Arc<[Arc<KeptQuery>]> =
            std::iter::once(Arc::new(plan)).chain(newer).collect();
        plans.bytes += bytes_of(&key, &variants);
        plans.by_key.put(key, variants);
        while plans.bytes > PLAN_BYTES_MAX {
            let Some((key, oldest)) = plans.by_key.pop_lru() else {
                break;
            };
            plans.bytes -= bytes_of(&key, &oldest);
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
            bytes: (plans.bytes + plans.refused_bytes) as u64,
        }
    }
}

impl Plans {
    /// With the first plan over a new base those over older ones are dropped: they fit no newer
    /// state, and their own keys may never come again. Once for each base.
    fn begin_base_of(&mut self, plan: &KeptQuery) {
        let (base, commit) = plan.base();
        match &self.base {
            Some((known, since)) if **known == *base || *since >= commit => return,
            _ => self.base = Some((base.into(), commit)),
        }
        let mut emptied = Vec::new();
        for (key, variants) in self.by_key.iter_mut() {
            let is_left = |kept: &&Arc<KeptQuery>| kept.base().0 == base;
            let left: Arc<[Arc<KeptQuery>]> = variants.iter().filter(is_left).cloned().collect();
            if left.len() == variants.len() {
                continue;
            }
            self.bytes -= bytes_of(key, variants);
            match left.is_empty() {
                true => emptied.push(key.clone()),
                false => self.bytes += bytes_of(key, &left),
            }
            *variants = left;
        }
        for key in emptied {
            self.by_key.pop(&key);
        }
    }
}

fn bytes_of(key: &PlanKey, variants: &[Arc<KeptQuery>]) -> usize {
    let plans: usize = variants.iter().map(|plan| plan.bytes).sum();
    key.bytes() + plans
}
