//! Creation of an empty database.

use std::path::Path;
use std::sync::Arc;

use crate::database::segment::{DIRECTORY_PREFIXES, PublishedCounts, SegmentBuilder};
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::files::lock::{LOCK_FILE, WriterLock};
use crate::files::log::LOG_DIRECTORY;
use crate::files::manifest::Manifest;
use crate::quads::statistics::StatisticsBuilder;
use crate::snapshots::base::BASE_PERMUTATIONS;
use crate::{Database, Error, Result};

impl Database {
    /// Opens the database in a directory, or makes an empty one there if the directory is missing
    /// or empty.
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
}

/// Creates the database's directory and puts its name on the disk, with those of the parents that
/// were missing too.
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
                    || name == LOG_DIRECTORY
                    || name == "load-stage"
                    || name.starts_with("MANIFEST")
                    || DIRECTORY_PREFIXES
                        .iter()
                        .any(|prefix| name.starts_with(prefix))
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
    builder.files().dictionary()?.finish()?;
    for permutation in BASE_PERMUTATIONS {
        builder.files().index(permutation)?.finish()?;
    }
    let counts = PublishedCounts::default();
    let statistics = StatisticsBuilder::default().finish();
    builder.write_and_publish(counts, &statistics)?;
    Ok(())
}
