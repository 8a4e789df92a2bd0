//! A simulated disk that loses unsynced names and bytes when its machine stops.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::disk::{Disk, parent};
use crate::error::{Error, Result};
use crate::simulation::random::Random;

#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Default)]
struct Platter {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
}

/// A handle to a disk, as one start of a node has it. Another start gets another handle to the same
/// disk.
#[derive(Default)]
pub(crate) struct MemoryDisk {
    platter: Arc<Mutex<Platter>>,
    stopped: AtomicBool,
}

impl MemoryDisk {
    /// Stops the machine: this handle fails from now on, and the one that is returned has what was
    /// on disk.
    pub(crate) fn crash(&self, random: &mut Random) -> Arc<Self> {
        self.stopped.store(true, Ordering::SeqCst);
        let mut platter = self.platter.lock();
        let live = std::mem::take(&mut platter.names);
        let mut names = platter.synced_names.clone();
        // A directory's changes may be on disk without a sync. All of them or none: a journal keeps
        // their order.
        if random.chance(50) {
            names = live;
        }
        platter.names = names.clone();
        platter.synced_names = names;
        for inode in &mut platter.inodes {
            let common = inode
                .bytes
                .iter()
                .zip(&inode.synced)
                .take_while(|(one, other)| one == other)
                .count();
            let is_longer = common == inode.synced.len();
            if is_longer && random.chance(70) {
                // Some of what was written behind the end: torn anywhere.
                let kept = common + random.below((inode.bytes.len() - common) as u64 + 1) as usize;
                inode.synced = inode.bytes[..kept].to_vec();
            }
            inode.bytes = inode.synced.clone();
        }
        drop(platter);
        Arc::new(Self {
            platter: self.platter.clone(),
            stopped: AtomicBool::new(false),
        })
    }

    fn platter(&self, path: &str) -> Result<parking_lot::MutexGuard<'_, Platter>> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(Error::disk(
                "use",
                path,
                io::Error::other("the machine has stopped"),
            ));
        }
        Ok(self.platter.lock())
    }
}

impl Platter {
    fn inode(&mut self, path: &str) -> Option<&mut Inode> {
        let number = *self.names.get(path)?;
        self.inodes.get_mut(number)
    }
}

fn missing(path: &str) -> Error {
    Error::disk("find", path, io::ErrorKind::NotFound.into())
}

impl Disk for MemoryDisk {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        Ok(self
            .platter(path)?
            .inode(path)
            .map(|inode| inode.bytes.clone()))
    }

    fn read_range(&self, path: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let mut platter = self.platter(path)?;
        let inode = platter.inode(path).ok_or_else(|| missing(path))?;
        inode
            .bytes
            .get(range.start as usize..range.end as usize)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| missing(path))
    }

    fn length(&self, path: &str) -> Result<Option<u64>> {
        Ok(self
            .platter(path)?
            .inode(path)
            .map(|inode| inode.bytes.len() as u64))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>> {
        let platter = self.platter(directory)?;
        let within = platter
            .names
            .keys()
            .filter(|path| parent(path) == directory);
        Ok(within
            .map(|path| path.rsplit('/').next().unwrap_or(path).to_owned())
            .collect())
    }

    fn write_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut platter = self.platter(path)?;
        if platter.inode(path).is_none() {
            let number = platter.inodes.len();
            platter.inodes.push(Inode::default());
            platter.names.insert(path.to_owned(), number);
        }
        let inode = platter.inode(path).ok_or_else(|| missing(path))?;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        inode.bytes.resize(inode.bytes.len().max(end), 0);
        inode.bytes[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, path: &str) -> Result<()> {
        let mut platter = self.platter(path)?;
        let inode = platter.inode(path).ok_or_else(|| missing(path))?;
        inode.synced = inode.bytes.clone();
        Ok(())
    }

    fn sync_directory(&self, directory: &str) -> Result<()> {
        let mut platter = self.platter(directory)?;
        let mut synced = std::mem::take(&mut platter.synced_names);
        synced.retain(|path, _| parent(path) != directory);
        synced.extend(
            platter
                .names
                .iter()
                .filter(|(path, _)| parent(path) == directory)
                .map(|(path, &number)| (path.clone(), number)),
        );
        platter.synced_names = synced;
        Ok(())
    }

    fn truncate(&self, path: &str, length: u64) -> Result<()> {
        let mut platter = self.platter(path)?;
        platter
            .inode(path)
            .ok_or_else(|| missing(path))?
            .bytes
            .truncate(length as usize);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut platter = self.platter(from)?;
        let number = platter.names.remove(from).ok_or_else(|| missing(from))?;
        platter.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.platter(path)?.names.remove(path);
        Ok(())
    }
}
