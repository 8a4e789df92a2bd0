//! The disk interface of a node, which simulations replace. Every file of a node is read and
//! written here, so that a simulation can take its place that forgets what was not synced.
//!
//! Paths are relative to the directory, with `/`. All calls block; [`crate::blocking`] decides on
//! which thread.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result};

/// How many files are kept open for writing.
const OPEN_FILES_MAX: usize = 64;

/// The directory of one node.
pub(crate) trait Disk: Send + Sync + 'static {
    /// A file's bytes; `None` if there is none.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>>;
    /// A range of a file, which must lie within it.
    fn read_range(&self, path: &str, range: Range<u64>) -> Result<Vec<u8>>;
    /// How long a file is; `None` if there is none.
    fn length(&self, path: &str) -> Result<Option<u64>>;
    /// Names in a directory, in order. A directory that is not there is empty.
    fn list(&self, directory: &str) -> Result<Vec<String>>;
    /// Writes at an offset, beyond the end too. Makes the file if there is none.
    fn write_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<()>;
    /// What was written to a file, and its length, is on disk after this. Fails where there is no
    /// such file.
    fn sync(&self, path: &str) -> Result<()>;
    /// Names in a directory are on disk after this.
    fn sync_directory(&self, directory: &str) -> Result<()>;
    /// Cuts a file.
    fn truncate(&self, path: &str, length: u64) -> Result<()>;
    /// Gives a file another name, in place of what has it.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes a file, if there is one.
    fn remove(&self, path: &str) -> Result<()>;
}

/// Writes a small file, with its checksum behind it, so that it is there as before, or as it is to
/// be, whenever the machine stops. One at a time for a path: two would write the same new file.
pub(crate) fn replace(disk: &dyn Disk, path: &str, mut bytes: Vec<u8>) -> Result<()> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    let new = format!("{path}.new");
    disk.remove(&new)?;
    disk.write_at(&new, 0, &bytes)?;
    disk.sync(&new)?;
    disk.rename(&new, path)?;
    disk.sync_directory(parent(path))
}

/// Reads a file that [`replace`] wrote; `None` if there is none.
pub(crate) fn read_replaced(disk: &dyn Disk, path: &str) -> Result<Option<Vec<u8>>> {
    let Some(mut bytes) = disk.read(path)? else {
        return Ok(None);
    };
    let body = bytes
        .split_last_chunk::<4>()
        .filter(|(body, crc)| crc32c::crc32c(body) == u32::from_le_bytes(**crc))
        .map(|(body, _)| body.len());
    let body = body.ok_or_else(|| Error::Damaged {
        path: path.to_owned(),
        detail: "its checksum does not fit".to_owned(),
    })?;
    bytes.truncate(body);
    Ok(Some(bytes))
}

/// The directory that a path lies in.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A directory of the machine.
pub(crate) struct LocalDisk {
    root: PathBuf,
    /// Files that are open for writing.
    open: Mutex<BTreeMap<String, Arc<File>>>,
}

impl LocalDisk {
    /// A directory, which is made if it is not there.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        for directory in ["", "log", "files"] {
            fs::create_dir_all(root.join(directory))
                .map_err(|error| Error::disk("make", directory, error))?;
        }
        // Also the directories themselves must be there when the machine has stopped.
        let above = root.parent().filter(|above| !above.as_os_str().is_empty());
        for directory in [Some(root), above].into_iter().flatten() {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| Error::disk("sync", "", error))?;
        }
        Ok(Self {
            root: root.to_owned(),
            open: Mutex::new(BTreeMap::new()),
        })
    }

    /// Keeps other nodes out of a directory, as long as the file is open.
    pub(crate) fn lock(root: &Path) -> Result<File> {
        fs::create_dir_all(root).map_err(|error| Error::disk("make", "", error))?;
        let lock =
            File::create(root.join("LOCK")).map_err(|error| Error::disk("open", "LOCK", error))?;
        lock.try_lock().map_err(|_| {
            Error::Configuration(format!(
                "another process runs the node in `{}`",
                root.display()
            ))
        })?;
        Ok(lock)
    }

    /// A file to be written; made where there is none if `makes` says so.
    fn writable(&self, path: &str, makes: bool) -> Result<Arc<File>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(path) {
            return Ok(file.clone());
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(makes)
            .truncate(false)
            .open(self.root.join(path));
        let file = Arc::new(file.map_err(|error| Error::disk("open", path, error))?);
        if open.len() >= OPEN_FILES_MAX {
            open.pop_first();
        }
        open.insert(path.to_owned(), file.clone());
        Ok(file)
    }
}

impl Disk for LocalDisk {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match fs::read(self.root.join(path)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::disk("read", path, error)),
        }
    }

    fn read_range(&self, path: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let failed = |error| Error::disk("read", path, error);
        let file = File::open(self.root.join(path)).map_err(failed)?;
        let mut bytes =
            vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, range.start)
            .map_err(failed)?;
        Ok(bytes)
    }

    fn length(&self, path: &str) -> Result<Option<u64>> {
        match fs::metadata(self.root.join(path)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::disk("look at", path, error)),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let failed = |error| Error::disk("list", directory, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.root.join(directory)).map_err(failed)? {
            names.push(
                entry
                    .map_err(failed)?
                    .file_name()
                    .to_string_lossy()
                    .into_owned(),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    fn write_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        self.writable(path, true)?
            .write_all_at(bytes, offset)
            .map_err(|error| Error::disk("write", path, error))
    }

    fn sync(&self, path: &str) -> Result<()> {
        self.writable(path, false)?
            .sync_data()
            .map_err(|error| Error::disk("sync", path, error))
    }

    fn sync_directory(&self, directory: &str) -> Result<()> {
        let failed = |error| Error::disk("sync", directory, error);
        File::open(self.root.join(directory))
            .and_then(|file| file.sync_all())
            .map_err(failed)
    }

    fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.writable(path, false)?
            .set_len(length)
            .map_err(|error| Error::disk("cut", path, error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut open = self.open.lock();
        open.remove(from);
        open.remove(to);
        fs::rename(self.root.join(from), self.root.join(to))
            .map_err(|error| Error::disk("rename", from, error))
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.open.lock().remove(path);
        match fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::disk("remove", path, error))
            }
            _ => Ok(()),
        }
    }
}
