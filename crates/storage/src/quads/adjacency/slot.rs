//! The cache of a permutation file's adjacencies, with counts of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use orrery_term::TermId;
use parking_lot::RwLock;

use super::Adjacency;
use crate::Result;

/// More than anyone asks for, and far from where the number begins anew.
const WANTED_MOST: u64 = 1 << 62;

/// The places for the adjacencies of one file, by the predicate. There are as many as predicates
/// were asked for.
#[derive(Debug, Default)]
pub(crate) struct AdjacencySlots(RwLock<HashMap<u64, Arc<AdjacencySlot>>>);

impl AdjacencySlots {
    /// The slot of a predicate, made on first use; `rows` gives its number of rows in the file.
    pub(crate) fn slot(
        &self,
        predicate: TermId,
        rows: impl FnOnce() -> Result<u64>,
    ) -> Result<Arc<AdjacencySlot>> {
        if let Some(slot) = self.0.read().get(&predicate.bits()) {
            return Ok(Arc::clone(slot));
        }
        let slot = Arc::new(AdjacencySlot::new(rows()?));
        let mut slots = self.0.write();
        Ok(Arc::clone(slots.entry(predicate.bits()).or_insert(slot)))
    }
}

/// The place for the adjacency of one predicate of one permutation's file.
///
/// It is shared by all snapshots over the file, and goes with it.
#[derive(Debug)]
pub struct AdjacencySlot {
    rows: u64,
    wanted: AtomicU64,
    used: AtomicU64,
    begun: AtomicU32,
    state: RwLock<State>,
}

#[derive(Debug)]
enum State {
    Missing,
    Building,
    Built(Arc<Adjacency>),
    /// There can be none.
    Impossible,
}

/// The right to build what a slot lacks. Nobody else has it until this is dropped.
#[derive(Debug)]
pub struct Build(Arc<AdjacencySlot>);

impl AdjacencySlot {
    fn new(rows: u64) -> Self {
        Self {
            rows,
            wanted: AtomicU64::new(0),
            used: AtomicU64::new(0),
            begun: AtomicU32::new(0),
            state: RwLock::new(State::Missing),
        }
    }

    /// Rows that the file has of the predicate.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The adjacency, if it was built.
    #[inline]
    pub fn get(&self) -> Option<Arc<Adjacency>> {
        match &*self.state.read() {
            State::Built(adjacency) => Some(Arc::clone(adjacency)),
            State::Missing | State::Building | State::Impossible => None,
        }
    }

    /// Counts keys that were looked up without the adjacency, and tells their number so far.
    pub fn count(&self, keys: u64) -> u64 {
        self.wanted.fetch_add(keys, Ordering::Relaxed) + keys
    }

    /// Counts it as missed as often as need be: the next look-up builds it.
    pub fn want(&self) {
        self.wanted.store(WANTED_MOST, Ordering::Relaxed);
    }

    /// Notes when it was used, by whatever clock.
    pub fn set_used(&self, time: u64) {
        self.used.store(time, Ordering::Relaxed);
    }

    /// The time of the last use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The number of builds begun.
    pub fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The right to build it: not while somebody else does, nor where it is there or cannot be.
    pub fn begin(self: &Arc<Self>) -> Option<Build> {
        // Most who ask in vain do not disturb those who read.
        if !matches!(*self.state.read(), State::Missing) {
            return None;
        }
        let mut state = self.state.write();
        if !matches!(*state, State::Missing) {
            return None;
        }
        *state = State::Building;
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(Build(Arc::clone(self)))
    }

    /// Drops the adjacency; current readers keep it until they end. Its keys are counted anew.
    pub fn drop_built(&self) -> bool {
        let mut state = self.state.write();
        let is_built = matches!(*state, State::Built(_));
        if is_built {
            *state = State::Missing;
            self.wanted.store(0, Ordering::Relaxed);
        }
        is_built
    }
}

impl Build {
    /// Stores the built adjacency.
    pub fn finish(self, adjacency: Arc<Adjacency>) {
        *self.0.state.write() = State::Built(adjacency);
    }

    /// Notes that there can be none, so that nobody tries again.
    pub fn give_up(self) {
        *self.0.state.write() = State::Impossible;
    }

    /// The slot that it will be stored in.
    pub fn slot(&self) -> &Arc<AdjacencySlot> {
        &self.0
    }
}

impl Drop for Build {
    /// Whoever does not finish leaves it to others, once as many keys were looked up again.
    fn drop(&mut self) {
        let mut state = self.0.state.write();
        if matches!(*state, State::Building) {
            *state = State::Missing;
            self.0.wanted.store(0, Ordering::Relaxed);
        }
    }
}
