//! An in-memory file system that records every change.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::tree::{Change, Entry, Inode, Node, ROOT, Tree, names};
use crate::files::io::{
    FileBytes, FileLock, FileMetadata, FileSystem, FileWriter, LogFile, ReadAheadWatcher,
};
use crate::{Error, Result};

/// As the local file system: what is not flushed is not in the file.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// A file system in memory; clones are the same one. Every path is taken from its root.
///
/// [`operations`](Self::operations) after something was acknowledged is the moment from which on it
/// must survive; [`power_cuts`](Self::power_cuts) goes through all moments.
#[derive(Debug, Clone, Default)]
pub struct RecordingFileSystem {
    pub(super) disk: Arc<Mutex<Disk>>,
    asked: Arc<Mutex<Asked>>,
}

/// What was asked for ahead, file by file, since somebody wanted to know.
type Asked = Option<Vec<(PathBuf, Range<usize>)>>;

/// Notes what is asked for ahead of one file.
#[derive(Debug)]
struct Watcher {
    path: PathBuf,
    asked: Arc<Mutex<Asked>>,
}

impl ReadAheadWatcher for Watcher {
    fn will_need(&self, range: Range<usize>) {
        if let Some(asked) = &mut *self.asked.lock() {
            asked.push((self.path.clone(), range));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) start: Tree,
    now: Tree,
    pub(super) operations: Vec<Operation>,
    locked: BTreeSet<Inode>,
}

/// What was done to the disk.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Change(Change),
    /// Of a file or a directory.
    Sync(Inode),
    /// The caller was told of an error; what was unsynced then is never written any more.
    FailedSync(Inode),
}

impl RecordingFileSystem {
    /// An empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn starting_with(tree: Tree) -> Self {
        let disk = Disk {
            start: tree.clone(),
            now: tree,
            ..Disk::default()
        };
        Self {
            disk: Arc::new(Mutex::new(disk)),
            asked: Arc::default(),
        }
    }

    /// Number of operations so far: creations, writes, renames, removals, syncs.
    pub fn operations(&self) -> usize {
        self.disk.lock().operations.len()
    }

    /// The file system as it is now, as another one: changes to either are not seen in the other,
    /// locks are free.
    pub fn copy(&self) -> Self {
        Self::starting_with(self.disk.lock().now.clone())
    }

    /// All files, by path.
    pub fn files(&self) -> Vec<PathBuf> {
        let disk = self.disk.lock();
        let mut files = Vec::new();
        let mut left = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, inode)) = left.pop() {
            match disk.now.node(inode) {
                Some(Node::Directory(entries)) => {
                    left.extend(
                        entries
                            .iter()
                            .map(|(name, inode)| (path.join(name), *inode)),
                    );
                }
                Some(Node::File(_)) => files.push(path),
                None => {}
            }
        }
        files.sort_unstable();
        files
    }

    /// The read-ahead requests since the last call, by file and bytes.
    pub fn take_read_ahead(&self) -> Vec<(PathBuf, Range<usize>)> {
        self.asked.lock().replace(Vec::new()).unwrap_or_default()
    }

    /// Flips one bit of a file, as a bad disk would.
    pub fn flip_bit(&self, path: &Path, bit: usize) -> Result<()> {
        let mut disk = self.disk.lock();
        let (inode, content) = disk.file(path, "damage")?;
        let Some(byte) = content.get(bit / 8) else {
            return Err(Error::invalid_input(path, "the file has no such bit"));
        };
        let flipped = [byte ^ (1 << (bit % 8))];
        disk.now.write(inode, bit / 8, &flipped);
        Ok(())
    }

    /// Records that a sync of a path failed: the system gives up what was not written, and later
    /// syncs do not save it.
    pub(super) fn record_failed_sync(&self, path: &Path) {
        let mut disk = self.disk.lock();
        if let Some(inode) = disk.now.find(path) {
            disk.operations.push(Operation::FailedSync(inode));
        }
    }
}

impl Disk {
    fn change(&mut self, change: Change) {
        self.now.apply(&change);
        self.operations.push(Operation::Change(change));
    }

    fn inode(&self, path: &Path, operation: &'static str) -> Result<Inode> {
        let not_found = || Error::from_io(path, operation, io::ErrorKind::NotFound.into());
        self.now.find(path).ok_or_else(not_found)
    }

    fn file(&self, path: &Path, operation: &'static str) -> Result<(Inode, Arc<Vec<u8>>)> {
        let inode = self.inode(path, operation)?;
        match self.now.node(inode) {
            Some(Node::File(content)) => Ok((inode, Arc::clone(content))),
            _ => {
                let kind = io::ErrorKind::IsADirectory;
                Err(Error::from_io(path, operation, kind.into()))
            }
        }
    }

    /// The name of a path in its directory, which must be there.
    fn entry(&self, path: &Path, operation: &'static str) -> Result<Entry> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let directory = self.inode(parent, operation)?;
        match (self.now.node(directory), names(path).last()) {
            (Some(Node::Directory(_)), Some(name)) => Ok(Entry {
                directory,
                name: name.to_owned(),
            }),
            _ => {
                let kind = io::ErrorKind::NotADirectory;
                Err(Error::from_io(path, operation, kind.into()))
            }
        }
    }

    /// Creates a file, or empties the one that is there.
    fn create(&mut self, path: &Path) -> Result<Inode> {
        let entry = self.entry(path, "create")?;
        if self.now.find(path).is_some() {
            let (inode, content) = self.file(path, "create")?;
            if !content.is_empty() {
                self.change(Change::SetLength { inode, bytes: 0 });
            }
            return Ok(inode);
        }
        let inode = self.now.unused();
        self.change(Change::Create {
            entry,
            inode,
            is_directory: false,
        });
        Ok(inode)
    }

    fn remove_all(&mut self, directory: Inode) {
        let Some(Node::Directory(entries)) = self.now.node(directory) else {
            return;
        };
        for (name, inode) in entries.clone() {
            self.remove_all(inode);
            self.change(Change::Remove {
                entry: Entry { directory, name },
            });
        }
    }
}

impl FileSystem for RecordingFileSystem {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let inode = self.disk.lock().create(path)?;
        Ok(Box::new(RecordingWriter {
            file: RecordingFile::new(self, path, inode),
            buffer: Vec::new(),
            bytes_flushed: 0,
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        let bytes = self.disk.lock().file(path, "open")?.1;
        let watcher = Watcher {
            path: path.to_path_buf(),
            asked: Arc::clone(&self.asked),
        };
        Ok(FileBytes::watched(bytes, Arc::new(watcher)))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(self.disk.lock().file(path, "open")?.1.to_vec())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        self.open_at(path, 0)
    }

    fn open_at(&self, path: &Path, offset: u64) -> Result<Box<dyn Read + Send>> {
        let mut content = io::Cursor::new(FileBytes::from(self.disk.lock().file(path, "open")?.1));
        content.set_position(offset);
        Ok(Box::new(content))
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let inode = self.disk.lock().create(path)?;
        Ok(Arc::new(RecordingFile::new(self, path, inode)))
    }

    fn open_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        let (inode, _) = self.disk.lock().file(path, "open")?;
        Ok(Arc::new(RecordingFile::new(self, path, inode)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let change = Change::Rename {
            inode: disk.inode(from, "rename")?,
            from: disk.entry(from, "rename")?,
            to: disk.entry(to, "rename")?,
        };
        disk.change(change);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        disk.file(path, "remove")?;
        let entry = disk.entry(path, "remove")?;
        disk.change(Change::Remove { entry });
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let inode = disk.inode(path, "remove")?;
        let entry = disk.entry(path, "remove")?;
        disk.remove_all(inode);
        disk.change(Change::Remove { entry });
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let mut parent = PathBuf::from("/");
        for name in names(path) {
            let directory = parent.join(name);
            match disk.now.find(&directory).map(|inode| disk.now.node(inode)) {
                Some(Some(Node::Directory(_))) => {}
                Some(_) => {
                    return Err(Error::NotADirectory {
                        path: directory,
                        operation: "create",
                    });
                }
                None => {
                    let change = Change::Create {
                        entry: disk.entry(&directory, "create")?,
                        inode: disk.now.unused(),
                        is_directory: true,
                    };
                    disk.change(change);
                }
            }
            parent = directory;
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut disk = self.disk.lock();
        let inode = disk.inode(path, "sync")?;
        disk.operations.push(Operation::Sync(inode));
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let disk = self.disk.lock();
        let inode = disk.inode(path, "list")?;
        match disk.now.node(inode) {
            Some(Node::Directory(entries)) => {
                Ok(entries.keys().map(|name| path.join(name)).collect())
            }
            _ => Err(Error::NotADirectory {
                path: path.to_path_buf(),
                operation: "list",
            }),
        }
    }

    fn metadata(&self, path: &Path) -> Result<Option<FileMetadata>> {
        let disk = self.disk.lock();
        let node = disk.now.find(path).and_then(|inode| disk.now.node(inode));
        Ok(node.map(|node| match node {
            Node::File(content) => FileMetadata {
                bytes: content.len() as u64,
                is_directory: false,
                is_file: true,
            },
            Node::Directory(_) => FileMetadata {
                bytes: 0,
                is_directory: true,
                is_file: false,
            },
        }))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut disk = self.disk.lock();
        let inode = match disk.now.find(path) {
            Some(inode) => inode,
            None => disk.create(path)?,
        };
        if !disk.locked.insert(inode) {
            return Err(Error::Locked {
                path: path.to_path_buf(),
                holder: None,
            });
        }
        Ok(Box::new(RecordingLock {
            file: RecordingFile::new(self, path, inode),
        }))
    }
}

#[derive(Debug)]
struct RecordingLock {
    file: RecordingFile,
}

impl FileLock for RecordingLock {
    fn write(&self, content: &[u8]) -> Result<()> {
        self.file.write_at(0, content)?;
        self.file.set_length(content.len() as u64)
    }

    fn sync(&self) -> Result<()> {
        LogFile::sync(&self.file)
    }
}

impl Drop for RecordingLock {
    fn drop(&mut self) {
        let file = &self.file;
        file.file_system.disk.lock().locked.remove(&file.inode);
    }
}

#[derive(Debug)]
struct RecordingFile {
    file_system: RecordingFileSystem,
    path: PathBuf,
    inode: Inode,
}

impl RecordingFile {
    fn new(file_system: &RecordingFileSystem, path: &Path, inode: Inode) -> Self {
        Self {
            file_system: file_system.clone(),
            path: path.to_path_buf(),
            inode,
        }
    }
}

impl LogFile for RecordingFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if !bytes.is_empty() {
            self.file_system.disk.lock().change(Change::Write {
                inode: self.inode,
                offset: offset as usize,
                bytes: bytes.into(),
            });
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.file_system.disk.lock();
        disk.operations.push(Operation::Sync(self.inode));
        Ok(())
    }

    fn set_length(&self, bytes: u64) -> Result<()> {
        if self.length()? != bytes {
            self.file_system.disk.lock().change(Change::SetLength {
                inode: self.inode,
                bytes: bytes as usize,
            });
        }
        Ok(())
    }

    fn length(&self) -> Result<u64> {
        match self.file_system.disk.lock().now.node(self.inode) {
            Some(Node::File(content)) => Ok(content.len() as u64),
            _ => Ok(0),
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug)]
struct RecordingWriter {
    file: RecordingFile,
    buffer: Vec<u8>,
    bytes_flushed: u64,
}

impl FileWriter for RecordingWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= WRITE_BUFFER_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.bytes_flushed, &self.buffer)?;
        self.bytes_flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync()
    }

    fn bytes_written(&self) -> u64 {
        self.bytes_flushed + self.buffer.len() as u64
    }

    fn path(&self) -> &Path {
        &self.file.path
    }
}
