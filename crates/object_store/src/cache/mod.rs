//! The local disk cache of an object store: immutable files, of which the read parts are present.
//!
//! ```text
//! storage     map(path) -> FileBytes, a mapping of the local file, which has the whole length and holes
//!               | fetch(range) before bytes are read for the first time
//! source.rs   are the pieces there? (a few loads; else the slow way)
//! fetch.rs      check what an earlier process has left, ask for the rest: joined, in parallel, once for all who wait (flight.rs)
//! origin.rs       the object store
//! file.rs       write the bytes to the local file, their checksums to its side file (sums.rs), set their bits (pieces.rs)
//! room.rs     which files there are; what goes when they are more than the limit
//! directory.rs, means.rs   the directory and its lock; what all files share
//! ```
//!
//! Who knows whom: the mapping and the room know the files, and a file knows the means. The means
//! know neither files nor room: what they ask of the room is a trait of theirs, `MakesRoom`.
//!
//! Promises: bytes that `fetch` has said to be there are right and stay there as long as the
//! `FileBytes` lives. Bytes of an earlier process are checked before they are used. If a request
//! fails, all who wait for it hear that, and the next who asks tries again.
//!
//! The limit is on what the files take up together. It is passed while what is mapped and was read
//! is more: see `room.rs`.
//!
//! What it relies on: a key names the same bytes for ever. A directory therefore belongs to one
//! database, whoever chooses it.
//!
//! Cost: bytes that are there, some atomic loads a call. Memory: 32 bytes for each 256 KiB of a
//! file, whether there or not. Measured with `opt-level=3` on a machine with two cores: 20 ns for
//! `fetch` of 4,000 bytes that are there.

mod directory;
mod fetch;
mod file;
mod flight;
mod means;
mod origin;
mod pieces;
mod room;
mod source;
mod sums;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use orrery_storage::io::FileBytes;
use orrery_storage::{Error, Result};
use tokio::runtime::Handle;

use self::directory::Home;
use self::file::CacheFile;
use self::means::Means;
pub(crate) use self::origin::Origin;
use self::room::Room;
use self::source::MappedFile;
use self::sums::Header;

/// The directory and size limit of the cache.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Its directory, created if missing. It is for one database: the names of objects say nothing
    /// about whose they are.
    pub directory: PathBuf,
    /// How much its files may take up together.
    pub bytes: u64,
}

/// Counters of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// What its files take up.
    pub bytes: u64,
    /// What they may take up.
    pub limit_bytes: u64,
    /// Pieces of 4 KiB that were asked for and were there.
    pub hits: u64,
    /// Pieces that were asked for and had to be waited for.
    pub misses: u64,
    /// Requests to the object store.
    pub requests: u64,
    /// Bytes that came from there.
    pub fetched_bytes: u64,
    /// Bytes that went to make room.
    pub evicted_bytes: u64,
    /// Pieces whose bytes were not what had been written.
    pub damaged_pieces: u64,
}

/// The cache; clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    room: Arc<Room>,
    means: Arc<Means>,
}

impl Cache {
    /// Takes the directory, with what an earlier process has left there. If another process has it,
    /// this one gets a cache for itself below it, for as long as it lives.
    ///
    /// Requests run on the runtime; nobody may wait for bytes on one of its threads.
    pub(crate) fn open(
        options: &CacheOptions,
        origin: Arc<dyn Origin>,
        runtime: Handle,
    ) -> Result<Self> {
        let home = Home::take(&options.directory)?;
        let means = Arc::new(Means::new(origin, runtime, home, options.bytes));
        let room = Room::open(Arc::clone(&means))
            .map_err(|error| Error::from_io(means.home.path(), "open the cache in", error))?;
        let room = Arc::new(room);
        means.set_room(&room);
        means.make_room(0);
        Ok(Self { room, means })
    }

    /// The directory that this process has for itself: what is put there by others of it should be
    /// on the same disk.
    pub(crate) fn directory(&self) -> &Path {
        self.means.home.path()
    }

    /// The file with a key, for random reading.
    pub(crate) fn map(&self, key: &str, bytes: u64) -> Result<FileBytes> {
        self.room
            .map(key, bytes)
            .map(MappedFile::of)
            .and_then(MappedFile::into_bytes)
            .map_err(|error| Error::from_io(self.directory(), "map a file in", error))
    }

    /// Takes in a staged file that has been uploaded as `key`: wholly present. Moves it, so that
    /// nobody may have it mapped, or writes to it any more. If that fails, the file may be gone,
    /// but it can be fetched.
    pub(crate) fn adopt(&self, key: &str, staged: &Path) -> Result<()> {
        let of_error = |error| Error::from_io(staged, "cache", error);
        let number = self.room.next_number();
        let path = self.means.home.data_path(number);
        match move_file(staged, &path).and_then(|()| self.take_in(key, number, &path)) {
            Ok(file) => self.room.insert(Arc::new(file)),
            Err(error) => {
                self.means.home.remove(number);
                return Err(of_error(error));
            }
        }
        self.means.make_room(0);
        Ok(())
    }

    fn take_in(&self, key: &str, number: u64, path: &Path) -> io::Result<CacheFile> {
        let data = File::options().read(true).write(true).open(path)?;
        let bytes = data.metadata()?.len();
        let header = Header {
            key: key.to_owned(),
            bytes,
        };
        let file = CacheFile::beside(&self.means, number, header, data)?;
        // What is large against the cache does not push out what was read lately.
        let is_large = bytes > self.means.limit / 2;
        file.store_all(if is_large { 0 } else { self.means.tick() })?;
        Ok(file)
    }

    /// The object is gone for good: its local file goes as soon as nobody has it mapped.
    pub(crate) fn forget(&self, key: &str) {
        self.room.forget(key);
    }

    /// The keys of files that somebody has mapped.
    pub(crate) fn mapped_keys(&self) -> Vec<String> {
        self.room.mapped_keys()
    }

    /// Whether files should be opened anew, as what is mapped is more than the limit allows.
    pub(crate) fn wants_reopening(&self) -> bool {
        self.room.wants_reopening()
    }

    /// What was done so far.
    pub(crate) fn counts(&self) -> CacheCounts {
        let counters = &self.means.counters;
        let misses = counters.missed.load(Ordering::Relaxed);
        CacheCounts {
            bytes: self.means.held(),
            limit_bytes: self.means.limit,
            hits: counters
                .asked
                .load(Ordering::Relaxed)
                .saturating_sub(misses),
            misses,
            requests: counters.requests.load(Ordering::Relaxed),
            fetched_bytes: counters.fetched_bytes.load(Ordering::Relaxed),
            evicted_bytes: counters.evicted_bytes.load(Ordering::Relaxed),
            damaged_pieces: counters.damaged.load(Ordering::Relaxed),
        }
    }
}

/// Renames a file, or copies it if it lies on another disk.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            fs::copy(from, to)?;
            fs::remove_file(from)
        }
        moved => moved,
    }
}
