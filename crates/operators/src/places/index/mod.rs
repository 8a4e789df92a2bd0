//! The spatial index: candidates for a filter by place, without a look at each literal.
//!
//! ```text
//! the base's dictionary: literals of geometries, in two ranges of ranks --one pass--> rectangles in a packed tree    20 bytes a literal
//! the delta dictionary: what came since                              --looked at once--> a list of rectangles
//! a place that is given, and how far or in which relation --> rectangles that the others have to meet --> ids of literals
//! ```
//!
//! It is derived from dictionaries, which never change or only grow: so it says nothing of quads,
//! graphs and rights, is right in every state over a base, and nothing of it is on the disk. What
//! it gives is more than what is asked for, never less; whoever asks joins it with the quads of the
//! state that they read, and keeps the filter.
//!
//! **When.** Made when queries have looked at a quarter as many literals as there are: at once
//! where there are few ([`AT_ONCE_MAX`]), else on the thread that makes adjacencies, while queries
//! go on without. It stands in the memory of adjacencies and goes as they do, when it was not used
//! for longest ([`orrery_runtime::Adjacencies`]).
//!
//! **Cost.** To make it, about a microsecond for a literal of a point; to look up, the nodes of the
//! tree that are met, and a look at each literal that came since the base.

mod base;
mod recent;
mod search;
mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_geo::Shape;
use orrery_runtime::{Adjacencies, Remade};
use orrery_storage::Snapshot;
use orrery_term::TermId;
use parking_lot::Mutex;

pub use self::search::PlaceSearch;

use self::base::{BasePlaces, Ranks};
use self::recent::Recent;
use crate::context::QueryContext;
use crate::error::Result;
use crate::pattern::ObjectRanges;

/// Literals of which the index is made where it is missed: some 20 ms.
const AT_ONCE_MAX: u64 = 20_000;
/// The index is made when queries have looked at one part of so many of the literals.
const LOOKED_AT_PARTS: u64 = 4;
/// Of what cannot be told from its rectangle, so much that a search for the nearest may look at
/// each time.
const ODD_MAX: usize = 1_000;

/// The index of one dictionary's places, as far as it is made.
#[derive(Debug, Default)]
struct KeptIndex {
    base: Mutex<State>,
    recent: Recent,
    used: AtomicU64,
    looked_at: AtomicU64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Missing,
    Making,
    Made(Arc<BasePlaces>),
}

impl Remade for KeptIndex {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        *self.base.lock() = State::Missing;
        self.looked_at.store(0, Ordering::Relaxed);
    }
}

impl KeptIndex {
    fn made(&self) -> Option<Arc<BasePlaces>> {
        match &*self.base.lock() {
            State::Made(places) => Some(Arc::clone(places)),
            State::Missing | State::Making => None,
        }
    }

    /// Whether it is now for the caller to make it.
    fn begin(&self) -> bool {
        let mut state = self.base.lock();
        let is_missing = matches!(*state, State::Missing);
        if is_missing {
            *state = State::Making;
        }
        is_missing
    }

    /// Makes it, if there is memory. Damage is not reported here: the query finds it where it reads
    /// the literals itself.
    fn make(self: &Arc<Self>, snapshot: &Snapshot, ranks: Ranks, adjacencies: &Adjacencies) {
        if !self.begin() {
            return;
        }
        let bytes = ranks.making_bytes();
        let is_made = adjacencies.keep(self, bytes, || {
            let places = BasePlaces::read(snapshot.dictionary(), ranks).ok()?;
            let bytes = places.bytes();
            self.used.store(adjacencies.now(), Ordering::Relaxed);
            *self.base.lock() = State::Made(Arc::new(places));
            Some(bytes)
        });
        if !is_made {
            self.give_up();
        }
    }
}

/// The places of one state.
#[derive(Debug)]
pub struct PlacesIndex {
    snapshot: Arc<Snapshot>,
    kept: Arc<KeptIndex>,
    base: Arc<BasePlaces>,
}

/// The literals that are surely nearest to a place, and all that has no distance.
#[derive(Debug)]
pub struct NearestPlaces {
    /// All objects of which the distance can be an error, or within [`Self::metres`].
    pub objects: ObjectRanges,
    /// How far that reaches.
    pub metres: f64,
}

impl PlacesIndex {
    /// The index of the state that a query reads, if it is there; a query that would look at so
    /// many literals without it has it made, now or for later ones.
    ///
    /// # Errors
    /// When the dictionary cannot be read.
    pub fn of(context: &QueryContext, literals: f64) -> Result<Option<Self>> {
        let snapshot = context.snapshot();
        let kept = snapshot.dictionary().derived(|_| KeptIndex::default());
        let found = match kept.made() {
            Some(found) => Some(found),
            None => {
                make_where_it_pays(&kept, context, literals)?;
                kept.made()
            }
        };
        let adjacencies = context.adjacencies();
        Ok(found.map(|base| {
            kept.used.store(adjacencies.now(), Ordering::Relaxed);
            Self {
                snapshot: Arc::clone(snapshot),
                base,
                kept,
            }
        }))
    }

    /// The literals that can be what is asked for, ascending; none if there are more than so many,
    /// or too many came since the base.
    pub fn candidates(&self, search: &PlaceSearch, most: usize) -> Option<Vec<TermId>> {
        let found = self.base.candidates(search, most)?;
        let ids = found.iter().map(|number| self.base.ranks.id(*number));
        let mut ids: Vec<TermId> = ids.collect();
        self.kept
            .recent
            .candidates(&self.snapshot, search, &mut ids)?;
        (ids.len() <= most).then_some(ids)
    }

    /// About so many literals that are nearest to a place of the earth; `None` where a look at all
    /// is no worse.
    pub fn nearest(&self, place: &Shape, wanted: usize) -> Option<NearestPlaces> {
        let (least, most) = (wanted, wanted.saturating_mul(4));
        let half = self.base.len() / 2;
        if most > half || self.base.nowhere().len() > ODD_MAX {
            return None;
        }
        PlaceSearch::new(
            super::condition::Nearness::Within {
                distance: 0.0,
                unit_m: 1.0,
                is_strict: false,
            },
            place,
        )?;
        // Doubled until there are enough, then halved between what is too little and what is too
        // much.
        let (mut too_near, mut too_far) = (0.0, None);
        let mut metres = 1.0;
        for _ in 0..STEPS_MAX {
            let search = PlaceSearch::within(place, metres)?;
            match self.base.candidates(&search, most) {
                Some(found) if found.len() >= least => {
                    return Some(NearestPlaces {
                        objects: self.objects(&found),
                        metres,
                    });
                }
                Some(_) => too_near = metres,
                None => too_far = Some(metres),
            }
            metres = match too_far {
                Some(too_far) => f64::midpoint(too_near, too_far),
                None => metres * 2.0,
            };
        }
        None
    }

    /// These literals of the base, those that have no distance, and all that is no literal of a
    /// geometry in the base.
    fn objects(&self, found: &[u32]) -> ObjectRanges {
        let mut intervals = self.base.ranks.others();
        for number in found.iter().chain(self.base.nowhere()) {
            let id = self.base.ranks.id(*number);
            intervals.push((id, id));
        }
        ObjectRanges::new(intervals)
    }
}

/// Steps to a distance with enough and not too many around it.
const STEPS_MAX: usize = 60;

fn make_where_it_pays(kept: &Arc<KeptIndex>, context: &QueryContext, literals: f64) -> Result<()> {
    let snapshot = context.snapshot();
    let ranks = Ranks::of(snapshot.dictionary())?;
    let count = ranks.count();
    // More than the counter holds is enough in any case.
    let before = kept.looked_at.fetch_add(literals as u64, Ordering::Relaxed);
    let looked_at = before.saturating_add(literals as u64);
    if looked_at.saturating_mul(LOOKED_AT_PARTS) < count || u32::try_from(count).is_err() {
        return Ok(());
    }
    let adjacencies = context.adjacencies();
    if count <= AT_ONCE_MAX {
        kept.make(snapshot, ranks, adjacencies);
        return Ok(());
    }
    let (kept, snapshot) = (Arc::clone(kept), Arc::clone(snapshot));
    let memory = Arc::clone(adjacencies);
    adjacencies.in_background(context.workers(), move || {
        kept.make(&snapshot, ranks, &memory);
    });
    Ok(())
}
