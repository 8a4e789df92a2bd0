//! The storage's file system over an object store.
//!
//! The database's directory, as the storage sees it, is its address taken for a path. What lies
//! there is found in the view ([`crate::files::view`]): files of segments are mapped through the
//! cache, logs are images ([`crate::files::log`]), `MANIFEST` is in the catalog and `LOCK` in the
//! lease. Temporary files of loads stay on the local disk, and paths outside of the database are
//! the machine's.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use orrery_storage::block_file::END_BYTES;
use orrery_storage::io::{
    FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LocalFileSystem, LogFile,
};
use orrery_storage::log::LOG_DIRECTORY;
use orrery_storage::{Error, Result};

use crate::cache::{Cache, Origin};
use crate::coordination::catalog::CATALOG;
use crate::coordination::lease::{self, LOCK, Lease, NotTaken};
use crate::error::{Asked, ObjectError};
use crate::files::background;
use crate::files::inner::{Inner, remove_staged};
use crate::files::log::ObjectLog;
use crate::files::staging::Staging;
use crate::files::streams::{
    BytesReader, Destination, LockedHere, LogBytes, LogCopy, ObjectLock, StagedWriter,
};
use crate::files::view::Entry;
use crate::options::ObjectOptions;
use crate::stores::counts::ObjectCounts;
use crate::stores::store::Store;
use crate::timing::Timing;

/// The storage's new manifest before it is renamed: a local file.
const NEW_MANIFEST: &str = "MANIFEST.new";
/// Temporary files of loads, local too.
const LOAD_STAGE: &str = "load-stage";

/// A database's files in an object store. Shared as `Arc<dyn FileSystem>`.
#[derive(Debug)]
pub struct ObjectFileSystem {
    inner: Arc<Inner>,
}

/// What is read at the start of a block file when it is opened.
const HEADER_BYTES: usize = 16;
/// At the end of files stands what leads to all else, of permutations a fortieth: it comes along
/// when one is opened, as far as one request brings it soon.
const END_PART: usize = 32;
const END_BYTES_MAX: usize = 1 << 20;

/// Where a path lies.
enum Place {
    /// Outside of the database: the machine's.
    Outside,
    /// The database's directory, or one above it.
    Root,
    Catalog,
    Lock,
    /// A local file instead of an object.
    Local(PathBuf),
    /// Below the root.
    Inside(String),
}

impl ObjectFileSystem {
    /// Over any object store; `root` is the directory that the storage gets, and stands in
    /// messages.
    pub fn over(
        store: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        root: &str,
        options: &ObjectOptions,
    ) -> Asked<Self> {
        Self::over_with(store, prefix, root, options, Timing::default())
    }

    /// The file system over a store, with given times and limits.
    pub fn over_with(
        store: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        root: &str,
        options: &ObjectOptions,
        timing: Timing,
    ) -> Asked<Self> {
        let store = Arc::new(Store::new(store, prefix, root, timing)?);
        let runtime = store.runtime.clone();
        let origin: Arc<dyn Origin> = Arc::clone(&store) as _;
        let cache = Cache::open(&options.cache, origin, runtime)?;
        let staging = Staging::create(cache.directory())?;
        let inner = Inner::new(PathBuf::from(root), Arc::clone(&store), cache, staging);
        let inner = Arc::new(inner);
        let announcing = background::announce(Arc::downgrade(&inner), Arc::clone(&store));
        store.runtime.spawn(announcing);
        Ok(Self { inner })
    }

    /// Counters of the store's requests, and of the cache.
    pub fn counts(&self) -> ObjectCounts {
        let inner = &self.inner;
        inner.store.counting.now(inner.cache.counts())
    }

    /// Sets the address at which this process takes forwarded changes when it writes; it stands in
    /// the lease.
    pub fn set_own_address(&self, address: String) {
        *self.inner.own_address.lock() = Some(address);
    }

    /// Whether this process takes the turn of a writer that lives, when it locks the database: for
    /// who knows by other means that it is its own turn.
    pub fn set_takes_over(&self, takes_over: bool) {
        self.inner.takes_over.store(takes_over, Ordering::Relaxed);
    }

    /// Reads the writer's address from the lease.
    pub fn look_for_writer(&self) -> Asked<()> {
        let store = &self.inner.store;
        let address = store.wait(|store| async move { lease::address_of_holder(&store).await })?;
        *self.inner.writer_address.lock() = address;
        Ok(())
    }

    /// The address of the writer at this process's last attempt to take the lease; none where the
    /// writer has not set one.
    pub fn writer_address(&self) -> Option<String> {
        self.inner.writer_address.lock().clone()
    }

    fn place(&self, path: &Path) -> Place {
        let Ok(relative) = path.strip_prefix(&self.inner.root) else {
            // The storage looks at parents before it makes a directory.
            return match self.inner.root.starts_with(path) && !path.as_os_str().is_empty() {
                true => Place::Root,
                false => Place::Outside,
            };
        };
        let parts = relative.iter().map(|part| part.to_string_lossy());
        let relative = parts.collect::<Vec<_>>().join("/");
        match relative.as_str() {
            "" => Place::Root,
            CATALOG => Place::Catalog,
            LOCK => Place::Lock,
            NEW_MANIFEST => Place::Local(self.inner.staging.local(&relative)),
            other if other.split('/').next() == Some(LOAD_STAGE) => {
                Place::Local(self.inner.staging.local(&relative))
            }
            _ => Place::Inside(relative),
        }
    }

    fn entry(&self, relative: &str) -> Option<Entry> {
        self.inner.view.lock().entry(relative)
    }

    /// The entry of a file that has to be there.
    fn need_entry(&self, relative: &str, path: &Path, operation: &'static str) -> Result<Entry> {
        let view = self.inner.view.lock();
        let path = path.to_path_buf();
        match view.entry(relative) {
            Some(entry) => Ok(entry),
            None if view.is_directory(relative) => Err(Error::IsADirectory { path, operation }),
            None => Err(Error::NotFound { path, operation }),
        }
    }

    /// The local file, or the content, at a path from which bytes are read one after the other.
    fn reader(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.open_at(path, offset),
            Place::Local(local) => return LocalFileSystem.open_at(&local, offset),
            Place::Catalog | Place::Lock => {
                let bytes = FileBytes::from(self.read(path)?);
                return Ok(Box::new(BytesReader::new(bytes, offset)));
            }
            Place::Root => {
                return Err(Error::IsADirectory {
                    path: path.to_path_buf(),
                    operation: "open",
                });
            }
            Place::Inside(relative) => relative,
        };
        match self.need_entry(&relative, path, "open")? {
            Entry::Staged(_) | Entry::File(_) => {
                Ok(Box::new(BytesReader::new(self.map(path)?, offset)))
            }
            Entry::Log(id) => {
                let image = self.inner.image(&id);
                Ok(Box::new(LogBytes {
                    image: image.map_err(|error| error.at(path, "open"))?,
                    at: offset,
                    is_fresh: false,
                }))
            }
        }
    }

    fn write_log(&self, relative: &str, path: &Path) -> Result<ObjectLog> {
        let turn = self.inner.need_turn(path)?;
        let image = self.inner.begin_log(relative, &turn);
        Ok(ObjectLog {
            image: image.map_err(|error| error.at(path, "create"))?,
            path: path.to_path_buf(),
            epoch: turn.epoch,
        })
    }
}

/// What cannot be done there.
fn refused(path: &Path) -> Error {
    Error::invalid_input(
        path,
        "the file of a database in an object store cannot be changed so",
    )
}

impl FileSystem for ObjectFileSystem {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let inner = &self.inner;
        let (staged, destination) = match self.place(path) {
            Place::Outside => return LocalFileSystem.create(path),
            Place::Root | Place::Catalog | Place::Lock => return Err(refused(path)),
            Place::Local(local) => (local, Destination::Local),
            Place::Inside(relative) if relative.split('/').next() == Some(LOG_DIRECTORY) => {
                let log = self.write_log(&relative, path)?;
                return Ok(Box::new(LogCopy { log, bytes: 0 }));
            }
            Place::Inside(relative) => (inner.staging.path(), Destination::Object(relative)),
        };
        let writer = LocalFileSystem.create(&staged)?;
        if let Destination::Object(relative) = &destination {
            let entry = Entry::Staged(staged.clone());
            let replaced = inner.view.lock().put(relative, entry);
            remove_staged(replaced);
        }
        Ok(Box::new(StagedWriter {
            inner: Arc::clone(inner),
            path: path.to_path_buf(),
            staged,
            writer,
            destination,
            turn: inner.turn(),
            is_sent: false,
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.map(path),
            Place::Local(local) => return LocalFileSystem.map(&local),
            Place::Root | Place::Catalog | Place::Lock => {
                return self.read(path).map(FileBytes::from);
            }
            Place::Inside(relative) => relative,
        };
        match self.need_entry(&relative, path, "open")? {
            // With its sync the local file becomes the cache's, which may make holes in it. So no
            // mapping of it may be left.
            Entry::Staged(staged) => LocalFileSystem.read(&staged).map(FileBytes::from),
            Entry::File(file) if file.bytes == 0 => Ok(FileBytes::from(Vec::new())),
            Entry::File(file) => self.inner.cache.map(&file.key, file.bytes),
            Entry::Log(_) => self.read(path).map(FileBytes::from),
        }
    }

    fn will_open(&self, paths: &[PathBuf]) {
        for path in paths {
            if let Place::Inside(relative) = self.place(path)
                && let Some(Entry::File(file)) = self.entry(&relative)
                && file.bytes > 0
                && let Ok(bytes) = self.inner.cache.map(&file.key, file.bytes)
            {
                bytes.will_need(0..HEADER_BYTES);
                let end = (bytes.len() / END_PART).clamp(END_BYTES, END_BYTES_MAX);
                bytes.will_need(bytes.len().saturating_sub(end)..bytes.len());
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let not_found = || Error::NotFound {
            path: path.to_path_buf(),
            operation: "read",
        };
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.read(path),
            Place::Local(local) => return LocalFileSystem.read(&local),
            Place::Root => {
                return Err(Error::IsADirectory {
                    path: path.to_path_buf(),
                    operation: "open",
                });
            }
            Place::Catalog => {
                if !self.inner.has_just_read() {
                    let refreshed = self.inner.refresh();
                    refreshed.map_err(|error| error.at(path, "read"))?;
                }
                return self.inner.manifest().ok_or_else(not_found);
            }
            Place::Lock => {
                let text = self.inner.lock_text();
                let text = text.map_err(|error| error.at(path, "read"))?;
                return text.ok_or_else(not_found);
            }
            Place::Inside(relative) => relative,
        };
        match self.need_entry(&relative, path, "open")? {
            Entry::Staged(staged) => LocalFileSystem.read(&staged),
            Entry::File(file) if file.bytes == 0 => Ok(Vec::new()),
            Entry::File(file) => {
                let bytes = self.inner.cache.map(&file.key, file.bytes)?;
                bytes.fetch(0..bytes.len())?;
                Ok(bytes.to_vec())
            }
            Entry::Log(_) => {
                let mut bytes = Vec::new();
                let read = self.reader(path, 0)?.read_to_end(&mut bytes);
                read.map_err(|error| Error::from_io(path, "read", error))?;
                Ok(bytes)
            }
        }
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        match self.place(path) {
            // Not from a byte on: it may be a pipe.
            Place::Outside => LocalFileSystem.open(path),
            _ => self.reader(path, 0),
        }
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        self.reader(path, offset)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        match self.place(path) {
            Place::Outside => LocalFileSystem.create_log(path),
            Place::Inside(relative) => Ok(Arc::new(self.write_log(&relative, path)?)),
            _ => Err(refused(path)),
        }
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.open_log(path),
            Place::Inside(relative) => relative,
            _ => return Err(refused(path)),
        };
        let Entry::Log(id) = self.need_entry(&relative, path, "open")? else {
            return Err(refused(path));
        };
        let turn = self.inner.need_turn(path)?;
        let image = self.inner.image(&id).and_then(|image| {
            image.refresh()?;
            Ok(image)
        });
        Ok(Arc::new(ObjectLog {
            image: image.map_err(|error| error.at(path, "open"))?,
            path: path.to_path_buf(),
            epoch: turn.epoch,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        match (self.place(from), self.place(to)) {
            (Place::Outside, Place::Outside) => LocalFileSystem.rename(from, to),
            (Place::Local(manifest), Place::Catalog) => self.inner.publish(&manifest),
            (Place::Local(from), Place::Local(to)) => LocalFileSystem.rename(&from, &to),
            (Place::Inside(old), Place::Inside(new)) => {
                let (found, replaced) = self.inner.view.lock().rename(&old, &new);
                remove_staged(replaced);
                found.then_some(()).ok_or_else(|| Error::NotFound {
                    path: from.to_path_buf(),
                    operation: "rename",
                })
            }
            _ => Err(refused(from)),
        }
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        match self.place(path) {
            Place::Outside => LocalFileSystem.remove_file(path),
            Place::Local(local) => LocalFileSystem.remove_file(&local),
            Place::Inside(relative) => {
                let (found, staged) = self.inner.view.lock().remove(&relative);
                remove_staged(staged);
                found.then_some(()).ok_or_else(|| Error::NotFound {
                    path: path.to_path_buf(),
                    operation: "remove",
                })
            }
            Place::Root | Place::Catalog | Place::Lock => Err(refused(path)),
        }
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        match self.place(path) {
            Place::Outside => LocalFileSystem.remove_dir_all(path),
            Place::Local(local) => LocalFileSystem.remove_dir_all(&local),
            Place::Inside(relative) => {
                let (found, staged) = self.inner.view.lock().remove_directory(&relative);
                remove_staged(staged);
                found.then_some(()).ok_or_else(|| Error::NotFound {
                    path: path.to_path_buf(),
                    operation: "remove",
                })
            }
            Place::Root | Place::Catalog | Place::Lock => Err(refused(path)),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        match self.place(path) {
            Place::Outside => LocalFileSystem.create_dir_all(path),
            Place::Root => Ok(()),
            Place::Local(local) => LocalFileSystem.create_dir_all(&local),
            Place::Inside(relative) => {
                self.inner.view.lock().create_directory(&relative);
                Ok(())
            }
            Place::Catalog | Place::Lock => Err(refused(path)),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        match self.place(path) {
            Place::Outside => LocalFileSystem.sync_dir(path),
            // A file has its name once its bytes are in the store.
            _ => Ok(()),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.list(path),
            Place::Local(local) => {
                let names = LocalFileSystem.list(&local)?;
                let names = names.iter().filter_map(|entry| entry.file_name());
                return Ok(names.map(|name| path.join(name)).collect());
            }
            Place::Root => String::new(),
            Place::Inside(relative) => relative,
            Place::Catalog | Place::Lock => return Err(refused(path)),
        };
        let mut names = self.inner.view.lock().names(&relative);
        if relative.is_empty() {
            if self.inner.manifest().is_some() {
                names.insert(CATALOG.to_owned());
            }
            for local in [NEW_MANIFEST, LOAD_STAGE] {
                if self.inner.staging.local(local).exists() {
                    names.insert(local.to_owned());
                }
            }
        } else if names.is_empty() && !self.inner.view.lock().is_directory(&relative) {
            return Err(Error::NotFound {
                path: path.to_path_buf(),
                operation: "list",
            });
        }
        Ok(names.iter().map(|name| path.join(name)).collect())
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        let file = |bytes| FileMetadata {
            bytes,
            is_directory: false,
            is_file: true,
        };
        let directory = FileMetadata {
            bytes: 0,
            is_directory: true,
            is_file: false,
        };
        let failed = |error: ObjectError| error.at(path, "look at");
        let relative = match self.place(path) {
            Place::Outside => return LocalFileSystem.metadata(path),
            Place::Local(local) => return LocalFileSystem.metadata(&local),
            Place::Root => return Ok(Some(directory)),
            Place::Catalog => {
                if self.inner.manifest().is_none() {
                    self.inner.read_first().map_err(failed)?;
                }
                let manifest = self.inner.manifest();
                return Ok(manifest.map(|bytes| file(bytes.len() as u64)));
            }
            Place::Lock => {
                return match self.read(path) {
                    Ok(text) => Ok(Some(file(text.len() as u64))),
                    Err(Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(error),
                };
            }
            Place::Inside(relative) => relative,
        };
        let entry = self.entry(&relative);
        match entry {
            Some(Entry::Staged(staged)) => LocalFileSystem.metadata(&staged),
            Some(Entry::File(found)) => Ok(Some(file(found.bytes))),
            Some(Entry::Log(id)) => {
                let image = self.inner.image(&id).map_err(failed)?;
                image.refresh().map_err(failed)?;
                Ok(Some(file(image.length())))
            }
            None => {
                let is_directory = self.inner.view.lock().is_directory(&relative);
                Ok(is_directory.then_some(directory))
            }
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        match self.place(path) {
            Place::Outside => return LocalFileSystem.lock(path),
            Place::Lock => {}
            _ => return Err(refused(path)),
        }
        let locked = |holder| Error::Locked {
            path: path.to_path_buf(),
            holder,
        };
        let Some(here) = LockedHere::take(&self.inner) else {
            return Err(locked(Some(std::process::id())));
        };
        let own = self.inner.own_address.lock().clone();
        let takes_over = self.inner.takes_over.load(Ordering::Relaxed);
        let lease =
            Lease::take(&self.inner.store, own, takes_over).map_err(|error| match error {
                NotTaken::Held { process, address } => {
                    *self.inner.writer_address.lock() = address;
                    locked(process)
                }
                NotTaken::Failed(error) => error.at(path, "lock"),
            })?;
        let turn = self.inner.begin_turn(&lease.holder);
        let turn = turn.map_err(|error| error.at(path, "lock"))?;
        let store = &self.inner.store;
        let every = store.timing.garbage_every;
        let epoch = turn.epoch;
        let collecting = background::collect_in_turn(Arc::downgrade(&self.inner), turn, every);
        store.runtime.spawn(collecting);
        Ok(Box::new(ObjectLock {
            path: path.to_path_buf(),
            epoch,
            lease,
            here,
        }))
    }

    fn wants_reopening(&self) -> bool {
        self.inner.cache.wants_reopening()
    }
}
