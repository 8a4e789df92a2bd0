//! Deleting objects that nobody needs any more. Only the holder of a turn does, in the background.
//!
//! An object that no catalog names goes when all of these are true:
//!
//! * it was given up [`Timing::garbage_after`](crate::Timing) ago by this process, or long ago by another's clock: who had read the catalog before
//!   that has said so by then;
//! * no living reader has an older catalog than the first that does not name it, or has it mapped;
//! * it is not mapped here.
//!
//! It leaves the catalog with the next one that is put for another reason. Objects of earlier turns that no catalog has ever named, what
//! killed writers left, go once in a turn: their writers are fenced off, so nobody can name them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::catalog::{Catalog, Garbage};
use crate::error::Asked;
use crate::inner::Inner;
use crate::readers::{self, Reading};
use crate::turn::{Turn, epoch_of};

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
}

/// Now, by the machine's clock, in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// Deletes what can go, again and again, for as long as the turn is held.
pub(crate) async fn collect_in_turn(inner: Weak<Inner>, turn: Arc<Turn>, every: Duration) {
    let mut has_orphans = true;
    loop {
        tokio::time::sleep(every).await;
        let Some(inner) = inner.upgrade().filter(|inner| inner.is_turn(&turn)) else {
            return;
        };
        if has_orphans {
            match delete_orphans(&inner, &turn).await {
                Ok(()) => has_orphans = false,
                Err(error) => tracing::warn!("what killed writers left stays for now: {error}"),
            }
        }
        if let Err(error) = collect(&inner, &turn).await {
            tracing::warn!("what is needed no more stays for now: {error}");
        }
    }
}

async fn collect(inner: &Inner, turn: &Turn) -> Asked<()> {
    let Some(catalog) = inner.catalog() else {
        return Ok(());
    };
    let old = old_enough(inner, &catalog, turn);
    if old.is_empty() {
        return Ok(());
    }
    let living = readers::living(&inner.store).await?;
    let mapped: BTreeSet<String> = inner.cache.mapped_keys().into_iter().collect();
    for garbage in old {
        // After a put of which nobody knows whether it was done, nothing is known of what is named.
        if turn.failure().is_some() || !inner.is_turn_now(turn.epoch) {
            return Ok(());
        }
        if mapped.contains(&garbage.name) || living.iter().any(|one| needs(one, garbage)) {
            continue;
        }
        match garbage.name.ends_with('/') {
            true => inner.store.delete_folder(&garbage.name).await?,
            false => inner.store.delete(&garbage.name).await?,
        }
        inner.cache.forget(&garbage.name);
        inner
            .garbage
            .notes
            .lock()
            .deleted
            .insert(garbage.name.clone());
    }
    Ok(())
}

fn needs(reading: &Reading, garbage: &Garbage) -> bool {
    reading.sequence < garbage.sequence || reading.held.contains(&garbage.name)
}

fn old_enough<'c>(inner: &Inner, catalog: &'c Catalog, turn: &Turn) -> Vec<&'c Garbage> {
    let timing = &inner.store.timing;
    let now = now_us();
    // The writer before may read on: it gets the time to say so.
    let restart = timing.garbage_after_restart;
    let is_settled = turn.begun.elapsed() >= timing.reader_lease.min(restart);
    let notes = inner.garbage.notes.lock();
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

async fn delete_orphans(inner: &Inner, turn: &Turn) -> Asked<()> {
    let Some(catalog) = inner.catalog() else {
        return Ok(());
    };
    let files = catalog.files.values().map(|file| file.key.clone());
    let logs = catalog.logs.values().map(|id| crate::view::log_folder(id));
    let garbage = catalog.garbage.iter().map(|one| one.name.clone());
    let named: BTreeSet<String> = files.chain(logs).chain(garbage).collect();
    let is_orphan = |name: &str| {
        let last = name.trim_end_matches('/').rsplit('/').next();
        let epoch = last.and_then(epoch_of);
        epoch.is_some_and(|epoch| epoch < turn.epoch) && !named.contains(name)
    };
    for (object, _) in inner.store.list("files").await? {
        if is_orphan(&object) {
            inner.store.delete(&object).await?;
            inner.cache.forget(&object);
        }
    }
    for folder in inner.store.list_folders("log").await? {
        let folder = format!("{folder}/");
        if is_orphan(&folder) {
            inner.store.delete_folder(&folder).await?;
        }
    }
    Ok(())
}
