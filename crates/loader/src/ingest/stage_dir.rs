//! The directory of a load's temporary files, `DIR/load-stage`.
//!
//! Nothing in it is ever part of the database: a load begins by removing what a killed one left,
//! and ends by removing its own. So the files need no checksums and no syncing.

use crate::ingest::large_literals::{self, LargeLiterals};
use orrery_storage::Result;
use orrery_storage::io::{FileSystem, FileWriter};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Its name within the database directory.
const NAME: &str = "load-stage";

/// Where batches and sorted runs go that do not fit into memory, and large literals always. Removed
/// when dropped.
#[derive(Debug)]
pub(crate) struct StageDir {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
    large: Arc<LargeLiterals>,
}

impl StageDir {
    /// An empty directory; leftovers of a killed load are removed.
    ///
    /// Keys of literals are large beyond `key_bytes_max`.
    pub(crate) fn create(
        files: Arc<dyn FileSystem>,
        database: &Path,
        key_bytes_max: usize,
    ) -> Result<Self> {
        let path = database.join(NAME);
        if files.metadata(&path)?.is_some() {
            files.remove_dir_all(&path)?;
        }
        Self::at(files, path, key_bytes_max)
    }

    fn at(files: Arc<dyn FileSystem>, path: PathBuf, key_bytes_max: usize) -> Result<Self> {
        files.create_dir_all(&path)?;
        let large = LargeLiterals::new(Arc::clone(&files), &path, key_bytes_max);
        Ok(Self {
            files,
            path,
            large: Arc::new(large),
        })
    }

    /// The load's large literals.
    pub(crate) fn large_literals(&self) -> &Arc<LargeLiterals> {
        &self.large
    }

    /// An empty directory of its own for a load beside others in this process, which holds the
    /// database's lock; leftovers of killed processes are removed.
    pub(crate) fn create_beside_others(
        files: Arc<dyn FileSystem>,
        database: &Path,
        key_bytes_max: usize,
    ) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let all = database.join(NAME);
        let ours = format!("process-{}-", std::process::id());
        if files.metadata(&all)?.is_some() {
            for path in files.list(&all)? {
                let name = path.file_name().and_then(|name| name.to_str());
                if !name.is_some_and(|name| name.starts_with(&ours)) {
                    remove(&*files, &path)?;
                }
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = all.join(format!("{ours}{number}"));
        if files.metadata(&path)?.is_some() {
            files.remove_dir_all(&path)?;
        }
        Self::at(files, path, key_bytes_max)
    }

    /// A new file.
    pub(crate) fn writer(&self, name: &str) -> Result<Box<dyn FileWriter>> {
        self.files.create(&self.path.join(name))
    }

    /// A file from its start, through a buffer of this size.
    pub(crate) fn reader(&self, name: &str, buffer_bytes: usize) -> Result<StageReader> {
        let path = self.path.join(name);
        let input = self.files.open(&path)?;
        Ok(StageReader {
            input: io::BufReader::with_capacity(buffer_bytes, input),
            path,
        })
    }

    /// Removes a file that is no longer needed, to give back its space early.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.files.remove_file(&self.path.join(name))
    }
}

fn remove(files: &dyn FileSystem, path: &Path) -> Result<()> {
    match files.metadata(path)? {
        Some(found) if found.is_directory => files.remove_dir_all(path),
        Some(_) => files.remove_file(path),
        None => Ok(()),
    }
}

impl Drop for StageDir {
    fn drop(&mut self) {
        if let Err(error) = self.files.remove_dir_all(&self.path) {
            // The next load tries again.
            tracing::warn!(%error, "temporary files of the load were left behind");
        }
    }
}

/// Reads a stage file; its errors name it.
pub(crate) struct StageReader {
    input: io::BufReader<Box<dyn Read + Send>>,
    path: PathBuf,
}

impl StageReader {
    /// Fills the whole buffer.
    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> Result<()> {
        let result = self.input.read_exact(buffer);
        result.map_err(|error| self.error(error))
    }

    /// Fills as much of the buffer as the file still has.
    pub(crate) fn read_up_to(&mut self, buffer: &mut [u8]) -> Result<usize> {
        large_literals::read_up_to(&mut self.input, buffer).map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> orrery_storage::Error {
        orrery_storage::Error::from_io(&self.path, "read", error)
    }
}
