//! The cache of adjacencies: built after enough misses, evicted when memory is needed.
//!
//! ```text
//! a step looks up n keys --> built: use it
//!                        \-> missing: count n; from rows / 32 keys on build it
//!                                     few rows: now, many: on a thread, while the query goes on without
//! ```
//!
//! A look-up in a permutation costs about thirty times what one row costs that is taken into an
//! [`Adjacency`]. So an adjacency is built when about as much time was spent on look-ups as
//! building it takes: queries that look up little never pay for it, and none pays much more than
//! twice. One that was given up has to be missed twice as often to come back, so that predicates
//! that do not fit into the memory together do not drive each other out for ever.
//!
//! What else is made of files, can be made again and is worth keeping ([`Remade`]: the index of
//! places, texts that came since the base was written) is kept in the same memory, and goes by the
//! same rule.
//!
//! The adjacencies themselves are kept beside the files that they are made of ([`AdjacencySlot`])
//! and go with them. An [`Adjacencies`] is the sum of all of one engine: their memory is at most
//! what it was given, and the one that was not used for longest goes first. At most one thread
//! builds in the background.

use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use orrery_storage::adjacency::Build;
use orrery_storage::text::{RecentTexts, TextMemory};
use orrery_storage::{
    Adjacency, AdjacencySlot, BaseChange, DerivedIndex, IndexView, Permutation, ReadView,
};
use orrery_term::TermId;
use parking_lot::Mutex;

use crate::workers::Workers;

/// How often the keys to be missed double.
const DOUBLINGS_MAX: u32 = 16;
/// What a context has that nobody gave any: enough for tests and small databases.
const BYTES_DEFAULT: u64 = 64 << 20;

/// From when on an adjacency is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildThresholds {
    /// One key looked up without an adjacency is worth so many rows of building one.
    pub rows_per_key: u64,
    /// After fewer keys none is built.
    pub keys_min: u64,
    /// Up to so many rows it is built where it is missed, else in the background.
    pub rows_at_once_max: u64,
}

impl BuildThresholds {
    /// For tests: at the first key, in the background from 1,000 rows on.
    pub const AT_ONCE: Self = Self {
        rows_per_key: u64::MAX,
        keys_min: 1,
        rows_at_once_max: 1_000,
    };
}

impl Default for BuildThresholds {
    /// 32 rows for each key, from 16 keys on; up to 250,000 rows, about a millisecond, where it is
    /// missed.
    fn default() -> Self {
        Self {
            rows_per_key: 32,
            keys_min: 16,
            rows_at_once_max: 250_000,
        }
    }
}

/// All adjacencies of an engine; see the module's documentation.
#[derive(Debug)]
pub struct Adjacencies {
    bytes_max: u64,
    thresholds: BuildThresholds,
    /// Counts uses, to tell which one was last.
    clock: AtomicU64,
    is_building: AtomicBool,
    kept: Mutex<KeptAdjacencies>,
}

/// What there is. Locked before a slot.
#[derive(Debug, Default)]
struct KeptAdjacencies {
    /// With those that are being built.
    bytes: u64,
    slots: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    what: KeptThing,
    bytes: u64,
}

#[derive(Debug)]
enum KeptThing {
    Adjacency {
        slot: Weak<AdjacencySlot>,
        permutation: Permutation,
        predicate: TermId,
    },
    Other(Weak<dyn Remade>),
}

impl KeptThing {
    fn is_there(&self) -> bool {
        match self {
            Self::Adjacency { slot, .. } => slot.strong_count() > 0,
            Self::Other(other) => other.strong_count() > 0,
        }
    }

    /// When it was used last.
    fn used(&self) -> u64 {
        match self {
            Self::Adjacency { slot, .. } => slot.upgrade().map_or(0, |slot| slot.used()),
            Self::Other(other) => other.upgrade().map_or(0, |other| other.used()),
        }
    }

    fn give_up(&self) {
        match self {
            Self::Adjacency { slot, .. } => {
                if let Some(slot) = slot.upgrade() {
                    slot.drop_built();
                }
            }
            Self::Other(other) => {
                if let Some(other) = other.upgrade() {
                    other.give_up();
                }
            }
        }
    }
}

/// A derived index that shares the memory of adjacencies, and can be dropped and built again.
pub trait Remade: std::fmt::Debug + Send + Sync {
    /// When it was used last, by [`Adjacencies::now`].
    fn used(&self) -> u64;
    /// Lets it go. Nothing of [`Adjacencies`] may be called meanwhile.
    fn give_up(&self);
}

/// How many adjacencies there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdjacencyCounts {
    /// In memory.
    pub adjacencies: usize,
    /// What they take.
    pub bytes: u64,
}

impl Default for Adjacencies {
    fn default() -> Self {
        Self::new(BYTES_DEFAULT)
    }
}

impl Adjacencies {
    /// At most so many bytes of them; without any, none is built.
    pub fn new(bytes_max: u64) -> Self {
        Self::with_thresholds(bytes_max, BuildThresholds::default())
    }

    /// The same with other thresholds than are best.
    pub fn with_thresholds(bytes_max: u64, thresholds: BuildThresholds) -> Self {
        Self {
            bytes_max,
            thresholds,
            clock: AtomicU64::new(0),
            is_building: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// How many there are now.
    pub fn counts(&self) -> AdjacencyCounts {
        let mut kept = self.kept.lock();
        kept.forget_gone();
        let adjacencies = kept.slots.iter();
        let adjacencies =
            adjacencies.filter(|kept| matches!(kept.what, KeptThing::Adjacency { .. }));
        AdjacencyCounts {
            adjacencies: adjacencies.count(),
            bytes: kept.bytes,
        }
    }

    /// The time of a use that begins now: larger than those before.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes something, if there is room for `bytes` while it is made, and keeps as much as `make`
    /// says that it takes. Whether it was made.
    pub fn keep<T: Remade + 'static>(
        &self,
        kept: &Arc<T>,
        bytes: u64,
        make: impl FnOnce() -> Option<u64>,
    ) -> bool {
        if !self.make_room(bytes) {
            return false;
        }
        let made = make();
        let mut all = self.kept.lock();
        all.bytes -= bytes;
        let Some(bytes) = made else {
            return false;
        };
        all.bytes += bytes;
        let other: Arc<dyn Remade> = Arc::<T>::clone(kept);
        all.slots.push(Kept {
            what: KeptThing::Other(Arc::downgrade(&other)),
            bytes,
        });
        true
    }

    /// Keeps something with so many bytes in all, in place of what it had, if there is room, for
    /// which others are given up. Else it keeps what it had.
    fn hold_other(&self, kept: &Arc<dyn Remade>, bytes: u64) -> bool {
        let mut all = self.kept.lock();
        all.forget_gone();
        let of = Arc::downgrade(kept);
        let is_it = |slot: &Kept| match &slot.what {
            KeptThing::Other(other) => std::ptr::addr_eq(other.as_ptr(), of.as_ptr()),
            KeptThing::Adjacency { .. } => false,
        };
        let at = all.slots.iter().position(is_it);
        // Not in the list, so that it is not given up for itself.
        let had = at.map(|at| all.slots.swap_remove(at));
        let had_bytes = had.map_or(0, |had| had.bytes);
        all.bytes -= had_bytes;
        let mut has_room = bytes <= self.bytes_max;
        while has_room && all.bytes + bytes > self.bytes_max {
            has_room = all.give_up_oldest();
        }
        let bytes = if has_room { bytes } else { had_bytes };
        all.bytes += bytes;
        if bytes > 0 {
            all.slots.push(Kept {
                what: KeptThing::Other(of),
                bytes,
            });
        }
        has_room
    }

    /// Does some work on the one thread in the background, if it has none. Whether it has begun.
    pub fn in_background(
        self: &Arc<Self>,
        workers: &Arc<Workers>,
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        if self.is_building.swap(true, Ordering::Acquire) {
            return false;
        }
        let (ended, workers) = (Ended(Arc::clone(self)), Arc::clone(workers));
        let work = move || {
            let _ended = ended;
            let _busy = workers.begin_query();
            work();
        };
        // Where there is no thread to be had, somebody tries again.
        let thread = std::thread::Builder::new().name("adjacency".to_owned());
        thread.spawn(work).is_ok()
    }

    /// The adjacency of a slot, which is that of the index and the predicate, for so many look-ups;
    /// built now if it is time to and there are few rows, or in the background for later look-ups.
    pub fn find(
        self: &Arc<Self>,
        slot: &Arc<AdjacencySlot>,
        (index, predicate): (&IndexView, TermId),
        keys: usize,
        workers: &Arc<Workers>,
    ) -> Option<Arc<Adjacency>> {
        if let Some(adjacency) = slot.get() {
            slot.set_used(self.clock.fetch_add(1, Ordering::Relaxed));
            return Some(adjacency);
        }
        let thresholds = &self.thresholds;
        let missed = slot.count(keys as u64);
        let wanted = thresholds
            .keys_min
            .max(slot.rows() / thresholds.rows_per_key.max(1))
            << slot.begun().min(DOUBLINGS_MAX);
        if missed < wanted || self.bytes_max == 0 {
            return None;
        }
        if slot.rows() <= thresholds.rows_at_once_max {
            self.build(slot.begin()?, index, predicate);
            return slot.get();
        }
        self.build_in_background(slot, (index, predicate), workers);
        None
    }

    fn build_in_background(
        self: &Arc<Self>,
        slot: &Arc<AdjacencySlot>,
        (index, predicate): (&IndexView, TermId),
        workers: &Arc<Workers>,
    ) {
        let (of, slot, index) = (Arc::clone(self), Arc::clone(slot), index.clone());
        self.in_background(workers, move || {
            if let Some(build) = slot.begin() {
                of.build(build, &index, predicate);
            }
        });
    }

    /// Builds it, if there is room. Damage is not reported here: the query finds it where it reads
    /// the rows itself.
    fn build(&self, build: Build, index: &IndexView, predicate: TermId) {
        let measured = match index.measure_adjacency(predicate) {
            Ok(Some(measured)) if measured.bytes() <= self.bytes_max => measured,
            Ok(_) => return build.give_up(),
            Err(_) => return,
        };
        let bytes = measured.bytes();
        if !self.make_room(bytes) {
            return;
        }
        match measured.build() {
            Ok(adjacency) => {
                debug_assert_eq!(adjacency.bytes(), bytes);
                let slot = build.slot();
                slot.set_used(self.clock.fetch_add(1, Ordering::Relaxed));
                let slot = Arc::downgrade(slot);
                // Both at once: one that is used is one that can be given up, and counted.
                let mut kept = self.kept.lock();
                build.finish(Arc::new(adjacency));
                kept.slots.push(Kept {
                    what: KeptThing::Adjacency {
                        slot,
                        permutation: index.permutation(),
                        predicate,
                    },
                    bytes,
                });
            }
            Err(_) => self.kept.lock().bytes -= bytes,
        }
    }

    /// Gives up adjacencies until there is room for so many bytes, and takes them. Not if others
    /// are being built in that room.
    fn make_room(&self, bytes: u64) -> bool {
        let mut kept = self.kept.lock();
        kept.forget_gone();
        while kept.bytes + bytes > self.bytes_max {
            if !kept.give_up_oldest() {
                return false;
            }
        }
        kept.bytes += bytes;
        true
    }
}

impl Remade for RecentTexts {
    fn used(&self) -> u64 {
        Self::used(self)
    }

    fn give_up(&self) {
        Self::give_up(self);
    }
}

impl TextMemory for Adjacencies {
    fn hold(&self, texts: &Arc<RecentTexts>, bytes: u64) -> bool {
        texts.set_used(self.now());
        let texts: Arc<dyn Remade> = Arc::<RecentTexts>::clone(texts);
        self.hold_other(&texts, bytes)
    }
}

impl DerivedIndex for Adjacencies {
    /// What is in memory for the old base is wanted for the new one at its first look-up: which
    /// predicates are asked for is not learnt anew. The old ones stay for who reads older states,
    /// and go first where memory is short, for nobody uses them any more.
    fn base_changed(&self, change: &mut BaseChange) {
        let (old, new) = (
            ReadView::of_process(Arc::clone(change.old())),
            ReadView::of_process(Arc::clone(change.new_state())),
        );
        let kept: Vec<(Arc<AdjacencySlot>, Permutation, TermId)> = {
            let kept = self.kept.lock();
            let slots = kept.slots.iter();
            slots
                .filter_map(|kept| match &kept.what {
                    KeptThing::Adjacency {
                        slot,
                        permutation,
                        predicate,
                    } => Some((slot.upgrade()?, *permutation, *predicate)),
                    // Whoever looks for something next makes it again.
                    KeptThing::Other(_) => None,
                })
                .collect()
        };
        for (slot, permutation, predicate) in kept {
            // Damage is not reported here, as in `build`: such a one is missed as any other.
            _ = want_again(&slot, permutation, predicate, change, (&old, &new));
        }
    }
}

/// Wants the adjacency of the same predicate over the new base, if this one is of the old base.
fn want_again(
    slot: &Arc<AdjacencySlot>,
    permutation: Permutation,
    predicate: TermId,
    change: &mut BaseChange,
    (old, new): (&ReadView, &ReadView),
) -> orrery_storage::Result<()> {
    let slot_of = |view: &ReadView, predicate| match view.index(permutation) {
        Some(index) => index.adjacency_slot(predicate),
        None => Ok(None),
    };
    let is_of_old = slot_of(old, predicate)?.is_some_and(|of_old| Arc::ptr_eq(&of_old, slot));
    if !is_of_old {
        return Ok(());
    }
    if let Some(predicate) = change.id(predicate)?
        && let Some(slot) = slot_of(new, predicate)?
    {
        slot.want();
    }
    Ok(())
}

impl KeptAdjacencies {
    /// Drops those whose files are gone.
    fn forget_gone(&mut self) {
        let bytes = &mut self.bytes;
        self.slots.retain(|kept| {
            let is_there = kept.what.is_there();
            if !is_there {
                *bytes -= kept.bytes;
            }
            is_there
        });
    }

    /// Gives up the one that was not used for longest. Whether there was one. They are looked
    /// through for it: a use is one relaxed store without a lock, which no list in the order of
    /// uses can have, and this comes once for each that is built.
    fn give_up_oldest(&mut self) -> bool {
        let slots = self.slots.iter().enumerate();
        let Some((oldest, _)) = slots.min_by_key(|(_, kept)| kept.what.used()) else {
            return false;
        };
        let kept = self.slots.swap_remove(oldest);
        kept.what.give_up();
        self.bytes -= kept.bytes;
        true
    }
}

/// The building in the background ends when this is dropped.
struct Ended(Arc<Adjacencies>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.is_building.store(false, Ordering::Release);
    }
}
