//! Garbage collection: the writer deletes unreferenced objects in the background. Only the holder
//! of a turn does, in the background.
//!
//! An object that no catalog names goes when all of these are true:
//!
//! * it was given up [`Timing::garbage_after`](crate::Timing) ago by this process, or long ago by
//!   another's clock: who had read the catalog before that has said so by then;
//! * no living reader has an older catalog than the first that does not name it, or has it mapped;
//! * it is not mapped here.
//!
//! It leaves the catalog with the next one that is put for another reason. Objects of earlier turns
//! that no catalog has ever named, what killed writers left, go once in a turn: their writers are
//! fenced off, so nobody can name them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::coordination::catalog::{Catalog, Garbage};
use crate::coordination::readers::Reading;
use crate::timing::Timing;

/// What is known here of objects to be deleted.
#[derive(Debug, Default)]
pub(crate) struct GarbageNotes {
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// When this process saw them given up.
    dropped: BTreeMap<String, Instant>,
    /// Those that are gone and still stand in the catalog.
    deleted: BTreeSet<String>,
}

impl GarbageNotes {
    /// Takes the deleted ones out of a catalog that is to be put.
    pub(crate) fn forget_deleted(&self, next: &mut Catalog) {
        let notes = self.notes.lock();
        next.garbage
            .retain(|garbage| !notes.deleted.contains(&garbage.name));
    }

    /// Notes what a catalog has given up that this process put.
    pub(crate) fn published(&self, catalog: &Catalog) {
        let now = Instant::now();
        let mut notes = self.notes.lock();
        let named: BTreeSet<&str> = catalog
            .garbage
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        notes
            .dropped
            .retain(|name, _| named.contains(name.as_str()));
        notes.deleted.retain(|name| named.contains(name.as_str()));
        for garbage in &catalog.garbage {
            if garbage.sequence == catalog.sequence {
                notes.dropped.insert(garbage.name.clone(), now);
            }
        }
    }

    /// Notes that an object is gone.
    pub(crate) fn note_deleted(&self, name: &str) {
        self.notes.lock().deleted.insert(name.to_owned());
    }

    /// What a catalog has given up long enough ago, in a turn that began at some moment.
    pub(crate) fn old_enough<'c>(
        &self,
        catalog: &'c Catalog,
        timing: &Timing,
        turn_begun: Instant,
    ) -> Vec<&'c Garbage> {
        let now = now_us();
        // The writer before may read on: it gets the time to say so.
        let restart = timing.garbage_after_restart;
        let is_settled = turn_begun.elapsed() >= timing.reader_lease.min(restart);
        let notes = self.notes.lock();
        let is_old = |garbage: &&Garbage| match notes.dropped.get(&garbage.name) {
            Some(dropped) => dropped.elapsed() >= timing.garbage_after,
            None => {
                is_settled && now.saturating_sub(garbage.dropped_us) > restart.as_micros() as i64
            }
        };
        let there = catalog.garbage.iter();
        there
            .filter(|garbage| !notes.deleted.contains(&garbage.name))
            .filter(is_old)
            .collect()
    }
}

/// Now, by the machine's clock, in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// Whether a reader may need an object that was given up.
pub(crate) fn needs(reading: &Reading, garbage: &Garbage) -> bool {
    reading.sequence < garbage.sequence || reading.held.contains(&garbage.name)
}
