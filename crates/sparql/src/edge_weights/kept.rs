//! The cache of edge weight tables: one per definition, of the last state that was asked for.
//!
//! A table is worth making where a state is asked more than once; so the first question is answered
//! without one. A table that cannot be made for a state is not tried again for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_operators::weights::WeightTable;
use orrery_runtime::{Adjacencies, Remade};
use orrery_storage::{BaseChange, CommittedState, DerivedIndex, Snapshot};
use parking_lot::Mutex;

/// Definitions that are remembered; the one that was asked for longest ago goes first.
const DEFINITIONS_MAX: usize = 64;

/// The tables of an engine.
#[derive(Debug, Default)]
pub(crate) struct WeightTables {
    entries: Mutex<Vec<Entry>>,
}

/// A definition.
#[derive(Debug)]
struct Entry {
    key: Arc<str>,
    kept: Option<Arc<KeptTable>>,
    /// The state that was asked for without a table.
    asked: Option<CommittedState>,
    /// The state that none can be made for, or is being made for.
    closed: Option<CommittedState>,
}

/// A table, and the state that it is of.
pub(crate) type TableOfState = (Arc<Snapshot>, Arc<WeightTable>);

/// A table that is kept as long as there is room.
#[derive(Debug)]
struct KeptTable {
    table: Mutex<Option<TableOfState>>,
    used: AtomicU64,
}

impl Remade for KeptTable {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn give_up(&self) {
        *self.table.lock() = None;
    }
}

/// What is there for a state.
#[derive(Debug)]
pub(crate) enum Known {
    /// Its table.
    Here(Arc<WeightTable>),
    /// That of an earlier state over the same base.
    Behind(TableOfState),
    /// Nothing.
    Nothing,
}

impl WeightTables {
    /// What there is for a state.
    pub(crate) fn look(&self, key: &Arc<str>, state: &CommittedState, now: u64) -> Known {
        let mut entries = self.entries.lock();
        let Some(kept) = entry(&mut entries, key).kept.clone() else {
            return Known::Nothing;
        };
        drop(entries);
        let Some((of, table)) = kept.table.lock().clone() else {
            return Known::Nothing;
        };
        if of.base_name() != &*state.base || of.commit() > state.commit {
            return Known::Nothing;
        }
        kept.used.store(now, Ordering::Relaxed);
        match of.commit() == state.commit {
            true => Known::Here(table),
            false => Known::Behind((of, table)),
        }
    }

    /// Whether a table is to be made for a state now: it was asked for before, nobody makes it, and
    /// nobody failed.
    pub(crate) fn begins(&self, key: &Arc<str>, state: &CommittedState) -> bool {
        let mut entries = self.entries.lock();
        let entry = entry(&mut entries, key);
        if entry.closed.as_ref() == Some(state) {
            return false;
        }
        if entry.asked.as_ref() != Some(state) {
            entry.asked = Some(state.clone());
            return false;
        }
        entry.closed = Some(state.clone());
        true
    }

    /// Lets a table be made for a state that it was to be made for.
    pub(crate) fn reopens(&self, key: &Arc<str>) {
        entry(&mut self.entries.lock(), key).closed = None;
    }

    /// Gives up the table that there is.
    pub(crate) fn forget(&self, key: &Arc<str>) {
        entry(&mut self.entries.lock(), key).kept = None;
    }

    /// Keeps the table of a state that was committed, if there is room and none of a later state
    /// over the same base.
    pub(crate) fn keep(
        &self,
        key: &Arc<str>,
        (snapshot, table): TableOfState,
        adjacencies: &Adjacencies,
    ) {
        if snapshot.committed().is_none() {
            return;
        }
        let bytes = table.bytes();
        let kept = Arc::new(KeptTable {
            used: AtomicU64::new(adjacencies.now()),
            table: Mutex::new(Some((Arc::clone(&snapshot), table))),
        });
        if !adjacencies.keep(&kept, bytes, || Some(bytes)) {
            return;
        }
        let mut entries = self.entries.lock();
        let entry = entry(&mut entries, key);
        let is_later = entry.kept.as_ref().is_some_and(|known| {
            let known = known.table.lock();
            known.as_ref().is_some_and(|(of, _)| {
                of.base_name() == snapshot.base_name() && of.commit() > snapshot.commit()
            })
        });
        if !is_later {
            entry.kept = Some(kept);
            entry.closed = None;
        }
    }
}

impl DerivedIndex for WeightTables {
    /// Ids are others from now on: nothing leads from the tables to a later state, and the states
    /// that they hold would keep files.
    fn base_changed(&self, change: &mut BaseChange) {
        let new = Arc::clone(change.new_state());
        let is_of_other = |kept: &Arc<KeptTable>| {
            let table = kept.table.lock();
            let table = table.as_ref();
            table.is_none_or(|(of, _)| of.base_name() != new.base_name())
        };
        for entry in self.entries.lock().iter_mut() {
            if entry.kept.as_ref().is_some_and(is_of_other) {
                entry.kept = None;
            }
        }
    }
}

/// The entry of a definition, which is the last then.
fn entry<'e>(entries: &'e mut Vec<Entry>, key: &Arc<str>) -> &'e mut Entry {
    let known = entries.iter().position(|entry| entry.key == *key);
    let found = known.map(|place| entries.remove(place));
    if entries.len() >= DEFINITIONS_MAX {
        entries.remove(0);
    }
    entries.push(found.unwrap_or_else(|| Entry {
        key: Arc::clone(key),
        kept: None,
        asked: None,
        closed: None,
    }));
    let last = entries.len() - 1;
    &mut entries[last]
}
