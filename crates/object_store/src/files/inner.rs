//! The state of an open file system, and the steps that change several parts of it.
//!
//! Lock order: `publishing`, `turn`, `logs`, `view`. None is held while the store is asked, but
//! `publishing`, for one catalog is put at a time.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use orrery_storage::io::{FileSystem as _, LocalFileSystem};
use orrery_storage::{Error, Manifest, Result};
use parking_lot::Mutex;

use crate::cache::Cache;
use crate::coordination::catalog::{CATALOG, Catalog, FileRef, Known, NotPut};
use crate::coordination::garbage::{GarbageNotes, now_us};
use crate::coordination::lease;
use crate::coordination::readers::Reading;
use crate::coordination::turn::{self, Turn};
use crate::error::{Asked, ObjectError};
use crate::files::log::LogImage;
use crate::files::staging::Staging;
use crate::files::view::{Entry, View};
use crate::stores::store::Store;

/// Logs that get their fence at the same time.
const FENCES_AT_ONCE: usize = 8;
/// How old what was read first may be when it is used.
const OPENING_MAX: Duration = Duration::from_millis(500);
const TAKEN_OVER: &str = "another process has taken over the writing of the database; open it anew";

/// All of it.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The database's address as a path.
    pub(crate) root: PathBuf,
    pub(crate) store: Arc<Store>,
    pub(crate) cache: Cache,
    pub(crate) staging: Staging,
    pub(crate) view: Mutex<View>,
    pub(crate) garbage: GarbageNotes,
    /// Where this process takes changes of others, and where the one that was met last with the
    /// lease does.
    pub(crate) own_address: Mutex<Option<String>>,
    pub(crate) writer_address: Mutex<Option<String>>,
    /// Whether a living lease of another is no reason to wait.
    pub(crate) takes_over: AtomicBool,
    opening: Mutex<Option<Opening>>,
    turn: Mutex<Option<Arc<Turn>>>,
    /// Whether somebody in this process has the lock, whatever became of its lease: both would
    /// change the same view.
    is_locked: AtomicBool,
    /// By the names of their objects.
    logs: Mutex<HashMap<String, Arc<LogImage>>>,
    publishing: Mutex<()>,
}

/// What was read beside the first catalog, each for whoever reads it first. That is the same
/// thread, a moment later.
#[derive(Debug)]
struct Opening {
    asked_at: Instant,
    has_catalog: bool,
    /// None where it could not be read.
    lock_text: Option<Option<Vec<u8>>>,
}

impl Opening {
    fn is_of_now(&self) -> bool {
        self.asked_at.elapsed() < OPENING_MAX
    }
}

impl Inner {
    pub(crate) fn new(root: PathBuf, store: Arc<Store>, cache: Cache, staging: Staging) -> Self {
        Self {
            root,
            store,
            cache,
            staging,
            view: Mutex::default(),
            garbage: GarbageNotes::default(),
            own_address: Mutex::default(),
            writer_address: Mutex::default(),
            takes_over: AtomicBool::new(false),
            opening: Mutex::default(),
            turn: Mutex::default(),
            is_locked: AtomicBool::new(false),
            logs: Mutex::default(),
            publishing: Mutex::default(),
        }
    }

    /// The catalog that was read last.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        let view = self.view.lock();
        view.known.as_ref().map(|known| Arc::clone(&known.catalog))
    }

    /// Looks whether there is another catalog.
    pub(crate) fn refresh(&self) -> Asked<()> {
        let before = self.view.lock().known.clone();
        let asked = before.clone();
        let found = self
            .store
            .wait(|store| async move { Catalog::read(&store, asked).await })?;
        self.take_up(before, found);
        Ok(())
    }

    /// Reads the catalog for the first time, and with it what is read next of a database that is
    /// opened.
    pub(crate) fn read_first(&self) -> Asked<()> {
        let asked_at = Instant::now();
        let (found, lock_text) = self.store.wait(|store| async move {
            let read = futures::join!(Catalog::read(&store, None), lease::read_text(&store));
            Ok(read)
        })?;
        self.take_up(None, found?);
        *self.opening.lock() = Some(Opening {
            asked_at,
            has_catalog: true,
            lock_text: lock_text.ok(),
        });
        Ok(())
    }

    /// Whether the catalog was read a moment ago for who reads it first.
    pub(crate) fn has_just_read(&self) -> bool {
        let mut opening = self.opening.lock();
        let opening = opening.as_mut().filter(|it| it.is_of_now());
        opening.is_some_and(|opening| std::mem::take(&mut opening.has_catalog))
    }

    /// The text of the storage's lock file, if there is one.
    pub(crate) fn lock_text(&self) -> Asked<Option<Vec<u8>>> {
        let opening = self.opening.lock().take();
        match opening.filter(Opening::is_of_now).map(|it| it.lock_text) {
            Some(Some(text)) => Ok(text),
            _ => self
                .store
                .wait(|store| async move { lease::read_text(&store).await }),
        }
    }

    /// Takes up a catalog that was found, where `before` was the one before it was asked for.
    fn take_up(&self, before: Option<Known>, found: Option<Known>) {
        let turn = self.turn.lock();
        let mut view = self.view.lock();
        let tag = |known: &Option<_>| {
            let known: Option<&Known> = known.as_ref();
            known.map(|known| known.e_tag.clone())
        };
        if tag(&found) == tag(&view.known) {
            return;
        }
        let sequence =
            |known: &Option<Known>| known.as_ref().map_or(0, |known| known.catalog.sequence);
        // Another thread has read, or put, one meanwhile: the newer counts.
        if tag(&before) != tag(&view.known) && sequence(&found) <= sequence(&view.known) {
            return;
        }
        if let Some(turn) = &*turn
            && found.as_ref().map(|known| known.catalog.epoch) != Some(turn.epoch)
        {
            turn.fail(TAKEN_OVER);
        }
        view.known = found;
        drop(view);
        drop(turn);
        self.forget_logs();
    }

    /// What this process reads of it, where a writer elsewhere wants to know.
    pub(crate) fn reading(&self) -> Option<Reading> {
        if self.turn.lock().is_some() {
            return None;
        }
        // Before the catalog: what is mapped after that is of this catalog, or of a later one.
        let mapped = self.cache.mapped_keys();
        let catalog = self.catalog()?;
        let named: BTreeSet<&str> = (catalog.files.values())
            .map(|file| file.key.as_str())
            .collect();
        let held = mapped
            .into_iter()
            .filter(|key| !named.contains(key.as_str()));
        Some(Reading {
            sequence: catalog.sequence,
            held: held.collect(),
        })
    }

    /// The image of a log; a new one where the one before has what could not be put.
    pub(crate) fn image(&self, id: &str) -> Asked<Arc<LogImage>> {
        let mut logs = self.logs.lock();
        if let Some(image) = logs.get(id).filter(|image| !image.has_failed()) {
            return Ok(Arc::clone(image));
        }
        let image = LogImage::of(&self.store, id, self.staging.nameless()?);
        let image = Arc::new(image);
        logs.insert(id.to_owned(), Arc::clone(&image));
        Ok(image)
    }

    /// The image of a log that begins now, at a path, with its name.
    pub(crate) fn begin_log(&self, path: &str, turn: &Turn) -> Asked<Arc<LogImage>> {
        let id = turn.next_name();
        let file = self.staging.nameless()?;
        let image = Arc::new(LogImage::begin(&self.store, &id, file, turn.epoch));
        self.logs.lock().insert(id.clone(), Arc::clone(&image));
        let replaced = self.view.lock().put(path, Entry::Log(id));
        remove_staged(replaced);
        Ok(image)
    }

    /// Lets go of the images of logs that nothing names any more.
    fn forget_logs(&self) {
        let mut logs = self.logs.lock();
        let named = self.view.lock().logs();
        logs.retain(|id, _| named.contains(id));
    }

    /// The turn that this process has.
    pub(crate) fn turn(&self) -> Option<Arc<Turn>> {
        self.turn.lock().clone()
    }

    /// The turn, for what only its holder may do.
    pub(crate) fn need_turn(&self, path: &Path) -> Result<Arc<Turn>> {
        self.turn().ok_or_else(|| {
            Error::invalid_input(
                path,
                "it is written by somebody who has not locked the database",
            )
        })
    }

    /// Asks the store whether the turn with a number is still the last one.
    pub(crate) fn confirm_turn(&self, epoch: u64, path: &Path) -> Result<()> {
        let refreshed = self.refresh();
        refreshed.map_err(|error| error.at(path, "confirm"))?;
        match self.catalog() {
            Some(catalog) if catalog.epoch == epoch => Ok(()),
            _ => Err(Error::WritingStopped {
                path: path.to_path_buf(),
                what: TAKEN_OVER.to_owned(),
            }),
        }
    }

    pub(crate) fn is_turn(&self, turn: &Arc<Turn>) -> bool {
        let now = self.turn.lock();
        now.as_ref().is_some_and(|now| Arc::ptr_eq(now, turn))
    }

    pub(crate) fn is_turn_now(&self, epoch: u64) -> bool {
        let now = self.turn.lock();
        now.as_ref().is_some_and(|now| now.epoch == epoch)
    }

    /// Takes the lock within this process; false if somebody has it.
    pub(crate) fn lock_here(&self) -> bool {
        !self.is_locked.swap(true, Ordering::AcqRel)
    }

    /// Gives it back.
    pub(crate) fn unlock_here(&self) {
        self.is_locked.store(false, Ordering::Release);
    }

    /// Begins a turn for who has the lease.
    pub(crate) fn begin_turn(&self, holder: &str) -> Asked<Arc<Turn>> {
        let holder = holder.to_owned();
        let known = self
            .store
            .wait(|store| async move { turn::fence(&store, &holder).await })?;
        let turn = Arc::new(Turn::new(known.catalog.epoch));
        let logs: Vec<String> = known.catalog.logs.values().cloned().collect();
        {
            let mut view = self.view.lock();
            view.end_turn();
            view.known = Some(known);
        }
        // The fences are in logs that were named before them; a later turn may have given these up,
        // and then they keep nobody out.
        let fenced = self.fence_logs(&logs, turn.epoch);
        if let Err(error) = fenced.and_then(|()| self.is_last_turn(turn.epoch)) {
            self.end_turn();
            return Err(error);
        }
        *self.turn.lock() = Some(Arc::clone(&turn));
        Ok(turn)
    }

    /// Fails if another turn has begun after the one with a number.
    fn is_last_turn(&self, epoch: u64) -> Asked<()> {
        self.refresh()?;
        match self.catalog() {
            Some(catalog) if catalog.epoch == epoch => Ok(()),
            _ => Err(ObjectError::Task {
                what: TAKEN_OVER.to_owned(),
            }),
        }
    }

    fn fence_logs(&self, logs: &[String], epoch: u64) -> Asked<()> {
        for some in logs.chunks(FENCES_AT_ONCE) {
            let images = some.iter().map(|id| self.image(id));
            let images: Vec<_> = images.collect::<Asked<_>>()?;
            thread::scope(|scope| {
                let fences: Vec<_> = images
                    .iter()
                    .map(|image| scope.spawn(|| image.fence(epoch)))
                    .collect();
                let fences = fences.into_iter().map(|fence| match fence.join() {
                    Ok(fenced) => fenced,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                fences.collect::<Asked<()>>()
            })?;
        }
        Ok(())
    }

    /// Ends the turn: what no catalog names is gone.
    pub(crate) fn end_turn(&self) {
        *self.turn.lock() = None;
        self.logs.lock().retain(|_, image| image.end_turn());
        let staged = self.view.lock().end_turn();
        remove_staged(staged);
    }

    /// Makes an object of a staged file.
    pub(crate) fn upload(
        &self,
        relative: &str,
        path: &Path,
        staged: &Path,
        bytes: u64,
    ) -> Result<()> {
        let turn = self.need_turn(path)?;
        let key = format!("files/{}", turn.next_name());
        let (object, file) = (key.clone(), staged.to_path_buf());
        let sent = self
            .store
            .wait(|store| async move { store.upload(&object, &file, bytes).await });
        sent.map_err(|error| error.at(path, "sync"))?;
        if bytes > 0
            && let Err(error) = self.cache.adopt(&key, staged)
        {
            tracing::warn!("what was just written has to be fetched again: {error}");
        }
        let file = FileRef {
            key: key.clone(),
            bytes,
        };
        if !self.view.lock().uploaded(relative, staged, file) {
            self.cache.forget(&key);
        }
        Ok(())
    }

    /// Makes a manifest of the storage, a local file, that of the database.
    pub(crate) fn publish(&self, manifest: &Path) -> Result<()> {
        let path = self.root.join(CATALOG);
        let _publishing = self.publishing.lock();
        let turn = self.need_turn(&path)?;
        let stopped = |what: String| Error::WritingStopped {
            path: path.clone(),
            what,
        };
        if let Some(failure) = turn.failure() {
            return Err(stopped(failure));
        }
        let bytes = LocalFileSystem.read(manifest)?;
        let names = Manifest::names_in(&bytes)?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(Error::invalid_input(&path, "the manifest is no text"));
        };
        let (before, mut next) = {
            let view = self.view.lock();
            // Another thread may have read the catalog of whoever has taken over: what is put
            // follows one of this turn, or nothing is.
            let known = view.known.clone();
            let known = known.filter(|known| known.catalog.epoch == turn.epoch);
            let Some(known) = known else {
                turn.fail(TAKEN_OVER);
                return Err(stopped(TAKEN_OVER.to_owned()));
            };
            let next = view.next_catalog(&known.catalog, text, &names, now_us())?;
            (known, next)
        };
        self.garbage.forget_deleted(&mut next);
        let put = self
            .store
            .wait(|store| async move { Ok(next.put(&store, Some(before)).await) });
        match put.unwrap_or_else(|error| Err(NotPut::Unknown(error))) {
            Ok(known) => {
                self.garbage.published(&known.catalog);
                self.view.lock().published(known);
                self.forget_logs();
                LocalFileSystem.remove_file(manifest)
            }
            Err(NotPut::Refused(error)) => Err(error.at(&path, "replace")),
            Err(NotPut::Lost) => {
                turn.fail(TAKEN_OVER);
                Err(stopped(TAKEN_OVER.to_owned()))
            }
            Err(NotPut::Unknown(error)) => {
                let what = format!("nobody knows whether the new manifest is in place: {error}");
                turn.fail(&what);
                Err(stopped(what))
            }
        }
    }

    /// The storage's manifest in the catalog that was read last.
    pub(crate) fn manifest(&self) -> Option<Vec<u8>> {
        let catalog = self.catalog()?;
        Some(catalog.manifest.as_ref()?.clone().into_bytes())
    }
}

/// Removes local files that are needed no more. That one stays does no harm, its directory goes
/// with the process.
pub(crate) fn remove_staged(staged: impl IntoIterator<Item = PathBuf>) {
    for path in staged {
        let _ignored = std::fs::remove_file(path);
    }
}
