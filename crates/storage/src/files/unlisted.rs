//! Removal of files that were written but never listed in a manifest.

use std::path::{Path, PathBuf};

use crate::files::io::FileSystem;
use crate::{Error, Result};

/// A directory or log file that no manifest names yet: dropped without being kept, it is removed.
/// So that a full disk does not become fuller with each attempt.
#[derive(Debug)]
pub(crate) struct Unlisted<'f> {
    file_system: &'f dyn FileSystem,
    path: PathBuf,
    is_directory: bool,
    is_kept: bool,
}

impl<'f> Unlisted<'f> {
    pub(crate) fn directory(file_system: &'f dyn FileSystem, path: PathBuf) -> Self {
        Self::new(file_system, path, true)
    }

    pub(crate) fn file(file_system: &'f dyn FileSystem, path: PathBuf) -> Self {
        Self::new(file_system, path, false)
    }

    fn new(file_system: &'f dyn FileSystem, path: PathBuf, is_directory: bool) -> Self {
        Self {
            file_system,
            path,
            is_directory,
            is_kept: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps it if a manifest that names it was published, or if nobody knows which manifest is on
    /// the disk.
    pub(crate) fn keep_if_listed<T>(mut self, published: &Result<T>) {
        self.is_kept = may_be_published(published);
    }
}

/// Whether the manifest on the disk may be the new one: it is, or nobody knows.
pub(crate) fn may_be_published<T>(published: &Result<T>) -> bool {
    matches!(
        published,
        Ok(_) | Err(Error::WritingStopped { .. } | Error::OutcomeUnknown { .. })
    )
}

/// Several of them, which one manifest names, or none.
#[derive(Debug, Default)]
pub(crate) struct AllUnlisted<'f>(Vec<Unlisted<'f>>);

impl<'f> AllUnlisted<'f> {
    pub(crate) fn push(&mut self, unlisted: Unlisted<'f>) {
        self.0.push(unlisted);
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// As [`Unlisted::keep_if_listed`].
    pub(crate) fn keep_if_listed<T>(self, published: &Result<T>) {
        for unlisted in self.0 {
            unlisted.keep_if_listed(published);
        }
    }
}

impl Drop for Unlisted<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let removed = match self.is_directory {
            true => self.file_system.remove_dir_all(&self.path),
            false => self.file_system.remove_file(&self.path),
        };
        if let Err(error) = ignore_missing(removed) {
            tracing::warn!("what was given up half-written could not be removed: {error}");
        }
    }
}

/// What came of removing something that may not be there, or is no longer ours.
pub(crate) fn ignore_missing(removed: Result<()>) -> Result<()> {
    match removed {
        // What a turn leaves that is over goes when the next one begins.
        Err(Error::NotFound { .. } | Error::TurnEnded { .. }) => Ok(()),
        other => other,
    }
}
