//! A database directory: opening it, and the snapshot that queries see.
//!
//! ```text
//! DIR/MANIFEST          which segment is the database, see `manifest`
//! DIR/LOCK              locked by the one writer
//! DIR/segment-000001/   the files, never changed once written
//! DIR/load-stage/       temporary files of a bulk load
//! ```
//!
//! Readers need no lock. A publish replaces the manifest and then removes the old segment's files; who has them
//! mapped goes on reading them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::io::{FileSystem, LocalFileSystem};
use crate::lock::{LOCK_FILE, WriterLock};
use crate::manifest::Manifest;
use crate::segment::{PublishedCounts, SegmentBuilder};
use crate::snapshot::Snapshot;
use crate::statistics::StatisticsBuilder;
use crate::{Error, Result};

/// How often an open begins anew because a writer published meanwhile.
pub(crate) const OPEN_ATTEMPTS_MAX: usize = 10;

/// An open database. Shared between threads behind an `Arc`.
#[derive(Debug)]
pub struct Database {
    directory: PathBuf,
    file_system: Arc<dyn FileSystem>,
    current: RwLock<Arc<Snapshot>>,
}

impl Database {
    /// Opens the database in a directory for reading. Nothing is decoded; takes about a millisecond.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(Arc::new(LocalFileSystem), directory)
    }

    /// Opens through a given file system.
    pub fn open_with(
        file_system: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let snapshot = open_snapshot(&file_system, &directory)?;
        Ok(Self {
            directory,
            file_system,
            current: RwLock::new(snapshot),
        })
    }

    /// Opens the database in a directory, or makes an empty one there if the directory is missing or empty.
    pub fn create_or_open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::create_or_open_with(Arc::new(LocalFileSystem), directory)
    }

    /// Opens or creates through a given file system.
    pub fn create_or_open_with(
        file_system: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = directory.as_ref();
        let has_manifest = |directory: &Path| -> Result<bool> {
            Ok(file_system.metadata(&Manifest::path(directory))?.is_some())
        };
        if file_system
            .metadata(directory)?
            .is_some_and(|found| !found.is_directory)
        {
            return Err(Error::NotADirectory {
                path: directory.to_path_buf(),
                operation: "open the database",
            });
        }
        if !has_manifest(directory)? {
            create_directory(&*file_system, directory)?;
            refuse_foreign_files(&*file_system, directory)?;
            // Two processes may come here at once: the second finds the manifest of the first.
            let lock = WriterLock::acquire_with(&file_system, directory)?;
            if !has_manifest(directory)? {
                create_empty(&file_system, &lock)?;
            }
        }
        Self::open_with(file_system, directory)
    }

    /// The data as they are now; later publishes do not change it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read())
    }

    /// Looks whether another process has published meanwhile; whether there is a newer snapshot now.
    pub fn refresh(&self) -> Result<bool> {
        let manifest = Manifest::read(&*self.file_system, &self.directory)?;
        if manifest.generation == self.snapshot().manifest().generation {
            return Ok(false);
        }
        let snapshot = open_snapshot(&self.file_system, &self.directory)?;
        self.replace_snapshot(snapshot);
        Ok(true)
    }

    /// The database's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file system that the database is on.
    pub fn file_system(&self) -> &Arc<dyn FileSystem> {
        &self.file_system
    }

    pub(crate) fn replace_snapshot(&self, snapshot: Arc<Snapshot>) {
        *self.current.write() = snapshot;
    }
}

/// Opens what the manifest names, again if a writer replaced it between the two steps.
fn open_snapshot(file_system: &Arc<dyn FileSystem>, directory: &Path) -> Result<Arc<Snapshot>> {
    let mut manifest = Manifest::read(&**file_system, directory)?;
    for _ in 0..OPEN_ATTEMPTS_MAX {
        let generation = manifest.generation;
        match Snapshot::open(&**file_system, directory, manifest) {
            Ok(snapshot) => return Ok(Arc::new(snapshot)),
            Err(error @ Error::NotFound { .. }) => {
                manifest = Manifest::read(&**file_system, directory)?;
                if manifest.generation == generation {
                    return Err(missing_file(error));
                }
            }
            Err(error) => return Err(error),
        }
    }
    let snapshot = Snapshot::open(&**file_system, directory, manifest)?;
    Ok(Arc::new(snapshot))
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

/// Creates the database's directory and puts its name on the disk, with those of the parents that were missing too.
pub(crate) fn create_directory(file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
    let mut parents = Vec::new();
    for path in directory.ancestors() {
        let Some(parent) = path.parent() else { break };
        parents.push(match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        });
        if file_system.metadata(parents[parents.len() - 1])?.is_some() {
            break;
        }
    }
    file_system.create_dir_all(directory)?;
    parents
        .into_iter()
        .try_for_each(|parent| file_system.sync_dir(parent))
}

/// A directory with somebody else's files does not become a database.
pub(crate) fn refuse_foreign_files(file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
    let is_ours = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| {
                name == LOCK_FILE
                    || name == "load-stage"
                    || name.starts_with("MANIFEST")
                    || name.starts_with("segment-")
            })
    };
    match file_system
        .list(directory)?
        .iter()
        .find(|path| !is_ours(path))
    {
        None => Ok(()),
        Some(foreign) => Err(Error::NotADatabase {
            path: directory.to_path_buf(),
            what: format!(
                "it has no MANIFEST but other files ({})",
                foreign.file_name().unwrap_or_default().display()
            ),
        }),
    }
}

fn create_empty(file_system: &Arc<dyn FileSystem>, lock: &WriterLock) -> Result<()> {
    let builder = SegmentBuilder::begin_empty(file_system, lock)?;
    builder.dictionary()?.finish()?;
    for permutation in crate::snapshot::BASE_PERMUTATIONS {
        builder.index(permutation)?.finish()?;
    }
    let counts = PublishedCounts::default();
    let statistics = StatisticsBuilder::default().finish();
    builder.write_and_publish(counts, &statistics)?;
    Ok(())
}
