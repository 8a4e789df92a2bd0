//! A database directory: opening, and the snapshot that queries read.
//!
//! ```text
//! DIR/MANIFEST          which files are the database, see `manifest`
//! DIR/LOCK              locked by the one writer
//! DIR/segment-000001/   a base: all quads of a commit; never changed once written
//! DIR/delta-000005/     what changed after it up to a later commit; never changed either
//! DIR/log/000005.log    the commits after that
//! DIR/load-stage/       temporary files of a bulk load
//! ```
//!
//! Readers need no lock. Who publishes a manifest removes the files that no kept commit needs any
//! more; who has them mapped goes on reading them. A process that only reads follows the one that
//! writes by [`Database::refresh`]. It may see a commit a moment before that is on the disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::activity::Activity;
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::files::lock::LockText;
use crate::files::log::{LogEnd, LogReader};
use crate::files::manifest::Manifest;
use crate::snapshots::base::Base;
use crate::snapshots::derived::{DerivedIndex, DerivedIndices};
use crate::snapshots::held::HeldStates;
use crate::snapshots::replay::{Replay, Replayed, log_path, open_present};
use crate::snapshots::snapshot::Snapshot;
use crate::{Error, ReadView, Result};

/// How often an open begins anew because a writer published meanwhile.
pub(crate) const OPEN_ATTEMPTS_MAX: usize = 10;

/// An open database. Shared between threads behind an `Arc`.
#[derive(Debug)]
pub struct Database {
    directory: PathBuf,
    file_system: Arc<dyn FileSystem>,
    current: RwLock<Arc<Snapshot>>,
    followed: Mutex<Followed>,
    derived: DerivedIndices,
    activity: Activity,
    held: HeldStates,
    /// Old states that were asked for lately, the last one first.
    pub(crate) recent: Mutex<Vec<Arc<Snapshot>>>,
    /// The last commit that is known to stay.
    lasting: AtomicU64,
    /// How often the states were read anew, as those before may have been of another history.
    histories: AtomicU64,
}

/// How far the log was read.
#[derive(Debug, Clone)]
pub(crate) enum Followed {
    /// Up to there in the last log file; there may be none.
    Read(Option<LogEnd>),
    /// Not at all any more: a writer of this process changes the database.
    Written,
    /// It was written until lately: it has to be read anew.
    Unknown,
}

impl Database {
    /// Opens the database in a directory for reading. Of the base nothing is decoded, which takes
    /// about a millisecond; what was committed since the last checkpoint is read from the log.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(Arc::new(LocalFileSystem), directory)
    }

    /// Opens through a given file system.
    pub fn open_with(
        file_system: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let opened = open_snapshot(&file_system, &directory, None)?;
        Ok(Self {
            lasting: AtomicU64::new(opened.snapshot.commit()),
            histories: AtomicU64::default(),
            directory,
            file_system,
            current: RwLock::new(Arc::new(opened.snapshot)),
            followed: Mutex::new(Followed::Read(opened.log_end)),
            derived: DerivedIndices::default(),
            activity: Activity::default(),
            held: HeldStates::default(),
            recent: Mutex::new(Vec::new()),
        })
    }

    /// The data as they are now; later publishes do not change it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read())
    }

    /// A view of the newest state for the process's own work, without a filter.
    pub fn view_of_process(&self) -> Arc<ReadView> {
        ReadView::of_process(self.snapshot())
    }

    /// Looks for commits and bases of other processes; returns whether there is a newer snapshot.
    /// While there is a writer in this process, there is nothing to look for.
    pub fn refresh(&self) -> Result<bool> {
        let mut followed = self.followed.lock();
        match &*followed {
            Followed::Written => Ok(false),
            Followed::Read(end) => {
                let end = *end;
                let is_new = self.follow_or_reopen(&mut followed, end)?;
                if self.file_system.wants_reopening() {
                    self.replace_snapshot(self.reopened(&self.snapshot())?);
                }
                Ok(is_new)
            }
            Followed::Unknown => self.reopen_anew(&mut followed),
        }
    }

    /// Whether a writer of this process changes the database.
    pub fn is_written_here(&self) -> bool {
        matches!(&*self.followed.lock(), Followed::Written)
    }

    /// The last commit that stays whatever happens: it is on the disk, or a majority of nodes has
    /// it. The newest state may have relaxed commits beyond it, which a power cut or another writer
    /// may take back; then others get their numbers.
    pub fn lasting_commit(&self) -> u64 {
        self.lasting.load(Ordering::Acquire)
    }

    /// Counts the histories that this process has shown: after a turn of its writer has ended, what
    /// was shown last may never have been committed, and other commits have its numbers.
    pub fn history_number(&self) -> u64 {
        self.histories.load(Ordering::Acquire)
    }

    /// Notes that the commits up to one are on the disk.
    pub(crate) fn note_lasting(&self, commit: u64) {
        self.lasting.fetch_max(commit, Ordering::AcqRel);
    }

    /// The manifest is another one: what is open of it stays.
    fn reopen(&self, followed: &mut Followed) -> Result<bool> {
        let current = self.snapshot();
        // After a failure to read, the delta dictionary may have terms that no commit brought.
        let base = Some(current.base())
            .filter(|base| base.delta_dictionary.len() == current.delta_terms());
        let opened = open_snapshot(&self.file_system, &self.directory, base)?;
        let history = self.history_number();
        if history > 0 {
            // A base that was opened anew has the name of the first history, of which plans and
            // tables may still be kept.
            opened.snapshot.base().set_history(history);
        }
        self.take_up(followed, &current, opened)
    }

    /// Nothing that was read or written before counts: not the numbers of commits, for what was
    /// committed last may be lost, and not the ids of terms that came with them.
    fn reopen_anew(&self, followed: &mut Followed) -> Result<bool> {
        let current = self.snapshot();
        let opened = open_snapshot(&self.file_system, &self.directory, None)?;
        let history = self.histories.fetch_add(1, Ordering::AcqRel) + 1;
        opened.snapshot.base().set_history(history);
        self.recent.lock().clear();
        self.lasting
            .store(opened.snapshot.commit(), Ordering::Release);
        self.take_up(followed, &current, opened)
    }

    fn take_up(
        &self,
        followed: &mut Followed,
        current: &Snapshot,
        opened: Replayed,
    ) -> Result<bool> {
        let is_new = opened.snapshot.commit() != current.commit()
            || opened.snapshot.manifest().generation != current.manifest().generation;
        *followed = Followed::Read(opened.log_end);
        self.note_lasting(opened.snapshot.commit());
        self.replace_snapshot(Arc::new(opened.snapshot));
        Ok(is_new)
    }

    /// Follows; where what comes does not go on from what was read, everything is read anew.
    fn follow_or_reopen(&self, followed: &mut Followed, end: Option<LogEnd>) -> Result<bool> {
        match self.follow(followed, end) {
            Err(error @ Error::Corrupt { .. }) => {
                tracing::warn!(
                    "the log does not go on from what was read of it, which is read anew: {error}"
                );
                *followed = Followed::Unknown;
                self.reopen_anew(followed)
            }
            followed => followed,
        }
    }

    fn follow(&self, followed: &mut Followed, end: Option<LogEnd>) -> Result<bool> {
        let current = self.snapshot();
        let manifest = Manifest::read(&*self.file_system, &self.directory)?;
        if manifest.generation != current.manifest().generation {
            return self.reopen(followed);
        }
        let (Some(mut end), Some(log)) = (end, manifest.present().logs.last()) else {
            return Ok(false);
        };
        let path = log_path(&self.directory, &log.name);
        let mut reader = LogReader::open_at(&*self.file_system, &path, end.position)?;
        let mut replay =
            Replay::after(current.with_manifest(Arc::clone(current.shared_manifest())));
        while let Some(logged) = reader.next_record()? {
            let file_system = &*self.file_system;
            replay.add(logged.record, &path, file_system, &self.directory)?;
        }
        if replay.commit() == current.commit() {
            return Ok(false);
        }
        // What counts as durable stays as it was read first, so a writer that resumes writes the
        // rest once more.
        let now = reader.end()?;
        (end.position, end.tail) = (now.position, now.tail);
        let snapshot = Arc::new(replay.finish()?);
        *followed = Followed::Read(Some(end));
        self.note_lasting(snapshot.commit());
        self.replace_snapshot(snapshot);
        Ok(true)
    }

    /// Brings the database up to date for a writer, which from now on is the only one to change it.
    /// Returns where the log ends.
    pub(crate) fn begin_writing(&self) -> Result<Option<LogEnd>> {
        let mut followed = self.followed.lock();
        match &*followed {
            Followed::Read(end) => {
                let end = *end;
                self.follow_or_reopen(&mut followed, end)?;
            }
            Followed::Unknown => {
                self.reopen_anew(&mut followed)?;
            }
            Followed::Written => {}
        }
        match std::mem::replace(&mut *followed, Followed::Written) {
            Followed::Read(end) => Ok(end),
            Followed::Written | Followed::Unknown => Err(Error::invalid_input(
                &self.directory,
                "there is a writer of this database already",
            )),
        }
    }

    /// The writer has gone; others may write from now on.
    pub(crate) fn end_writing(&self) {
        *self.followed.lock() = Followed::Unknown;
    }

    /// The database's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file system that the database is on.
    pub fn file_system(&self) -> &Arc<dyn FileSystem> {
        &self.file_system
    }

    /// Enters something that is told by ids, which hears of each new base for as long as it lives;
    /// false if there are too many already.
    pub fn derive(&self, index: Weak<dyn DerivedIndex>) -> bool {
        self.derived.add(index)
    }

    /// Counters since the database was opened.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The age of the oldest state that somebody still holds; none where only the newest is held.
    pub fn oldest_held(&self) -> Option<std::time::Duration> {
        self.held.oldest()
    }

    pub(crate) fn replace_snapshot(&self, snapshot: Arc<Snapshot>) {
        let old = self.snapshot();
        if old.base_name() != snapshot.base_name() {
            self.derived.tell(&old, &snapshot);
        }
        let manifest = Arc::clone(snapshot.shared_manifest());
        let before = std::mem::replace(&mut *self.current.write(), snapshot);
        self.held.add(&before);
        if before.manifest().generation != manifest.generation {
            self.forget_unkept(&manifest);
        }
    }
}

/// Opens what the manifest names, again if a writer replaced it between the two steps.
fn open_snapshot(
    file_system: &Arc<dyn FileSystem>,
    directory: &Path,
    base: Option<&Arc<Base>>,
) -> Result<Replayed> {
    let mut manifest = Manifest::read(&**file_system, directory)?;
    for _ in 0..OPEN_ATTEMPTS_MAX {
        let generation = manifest.generation;
        match open_closed(&**file_system, directory, manifest, base) {
            Err(error @ Error::NotFound { .. }) => {
                manifest = Manifest::read(&**file_system, directory)?;
                if manifest.generation == generation {
                    return Err(missing_file(error));
                }
            }
            opened => return opened,
        }
    }
    open_closed(&**file_system, directory, manifest, base)
}

/// Opens what a manifest names, and checks that the log is as long as it was when a writer closed
/// it.
fn open_closed(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: Manifest,
    base: Option<&Arc<Base>>,
) -> Result<Replayed> {
    let text = LockText::read(file_system, directory)?;
    let opened = open_present(file_system, directory, manifest, base)?;
    let log = opened.snapshot.manifest().present().logs.last();
    if let (LockText::Closed(closed), Some(log), Some(end)) = (text, log, &opened.log_end)
        && end.position < closed.position
        && closed.is_of(&log.name, end.salt())
    {
        let path = log_path(directory, &log.name);
        return Err(Error::corrupt(&path, end.position, closed.missing()));
    }
    Ok(opened)
}

/// A file that the manifest names is not there: that is damage, not a wrong path.
pub(crate) fn missing_file(error: Error) -> Error {
    match error {
        Error::NotFound { path, .. } => {
            Error::corrupt(&path, 0, "the file is missing, but the manifest names it")
        }
        other => other,
    }
}
