//! Background tasks: renewal of the reader's lease, and garbage collection.
//!
//! Both end with the file system that they belong to, the latter with the turn too.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::coordination::garbage::needs;
use crate::coordination::turn::{Turn, epoch_of};
use crate::error::Asked;
use crate::files::inner::Inner;
use crate::stores::store::Store;
use crate::{coordination::readers, files::view, random};

/// Says what a file system reads, as long as it lives.
pub(crate) async fn announce(inner: Weak<Inner>, store: Arc<Store>) {
    let object = readers::object(&random::name());
    let mut is_put = false;
    let mut wait = store.timing.reader_first;
    loop {
        tokio::time::sleep(wait).await;
        wait = store.timing.reader_every;
        let Some(reading) = inner.upgrade().map(|inner| inner.reading()) else {
            break;
        };
        // Who has read no catalog needs nothing; who writes knows by itself, and would wait for
        // what it said before.
        let announced = match &reading {
            Some(reading) => readers::put(&store, &object, reading).await,
            None if is_put => store.delete(&object).await,
            None => Ok(()),
        };
        match announced {
            Ok(()) => is_put = reading.is_some(),
            Err(error) => {
                is_put = true;
                tracing::warn!("what is read here could not be announced: {error}");
            }
        }
    }
    if is_put && let Err(error) = store.delete(&object).await {
        tracing::debug!("{object} stays until a writer removes it: {error}");
    }
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
    let timing = &inner.store.timing;
    let old = inner.garbage.old_enough(&catalog, timing, turn.begun);
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
        inner.garbage.note_deleted(&garbage.name);
    }
    Ok(())
}

async fn delete_orphans(inner: &Inner, turn: &Turn) -> Asked<()> {
    let Some(catalog) = inner.catalog() else {
        return Ok(());
    };
    let files = catalog.files.values().map(|file| file.key.clone());
    let logs = catalog.logs.values().map(|id| view::log_folder(id));
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
