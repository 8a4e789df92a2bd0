//! Sequential writers and readers of files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_storage::io::{FileBytes, FileLock, FileWriter, LogFile as _};
use orrery_storage::{Error, Result};

use crate::coordination::lease::Lease;
use crate::coordination::turn::Turn;
use crate::files::inner::Inner;
use crate::files::log::{LogImage, ObjectLog};

/// What is fetched at once for who reads a file from its start to its end.
const READ_BYTES: usize = 8 << 20;

/// Where a file goes that is being written.
#[derive(Debug)]
pub(crate) enum Destination {
    /// It stays on the local disk.
    Local,
    /// It becomes an object; the path below the root.
    Object(String),
}

/// A file being written on the local disk.
#[derive(Debug)]
pub(crate) struct StagedWriter {
    pub(crate) inner: Arc<Inner>,
    pub(crate) path: PathBuf,
    pub(crate) staged: PathBuf,
    pub(crate) writer: Box<dyn FileWriter>,
    pub(crate) destination: Destination,
    /// The turn in which it was begun, if one was: in no other does it become an object.
    pub(crate) turn: Option<Arc<Turn>>,
    pub(crate) is_sent: bool,
}

impl FileWriter for StagedWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.is_sent {
            // The local file is the cache's now.
            return Err(Error::invalid_input(
                &self.path,
                "it was synced, and is written on",
            ));
        }
        self.writer.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.writer.flush()?;
        if let Destination::Object(relative) = &self.destination
            && !self.is_sent
        {
            let bytes = self.writer.bytes_written();
            if let Some(turn) = &self.turn
                && !self.inner.is_turn(turn)
            {
                return Err(Error::TurnEnded {
                    path: self.path.clone(),
                    reason: "another turn has begun".to_owned(),
                });
            }
            self.inner
                .upload(relative, &self.path, &self.staged, bytes)?;
            self.is_sent = true;
        }
        Ok(())
    }

    fn bytes_written(&self) -> u64 {
        self.writer.bytes_written()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A log file that is written from its start to its end, as it is when a backup is restored.
#[derive(Debug)]
pub(crate) struct LogCopy {
    pub(crate) log: ObjectLog,
    pub(crate) bytes: u64,
}

impl FileWriter for LogCopy {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.log.write_at(self.bytes, bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    fn bytes_written(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> &Path {
        self.log.path()
    }
}

/// Reads a file whose bytes are fetched as they are needed.
pub(crate) struct BytesReader {
    bytes: FileBytes,
    at: usize,
    fetched: usize,
}

impl BytesReader {
    pub(crate) fn new(bytes: FileBytes, offset: u64) -> Self {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let at = at.min(bytes.len());
        Self {
            bytes,
            at,
            fetched: at,
        }
    }
}

impl Read for BytesReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let end = (self.at + out.len()).min(self.bytes.len());
        if end > self.fetched {
            let next = self.at..(self.at + READ_BYTES).max(end).min(self.bytes.len());
            self.fetched = next.end;
            self.bytes.fetch(next).map_err(io::Error::other)?;
            self.bytes
                .will_need(self.fetched..self.fetched + READ_BYTES);
        }
        let read = end - self.at;
        out[..read].copy_from_slice(&self.bytes[self.at..end]);
        self.at = end;
        Ok(read)
    }
}

/// Reads a log. Before it comes to the end of what is known, it asks once whether there is more.
pub(crate) struct LogBytes {
    pub(crate) image: Arc<LogImage>,
    pub(crate) at: u64,
    pub(crate) is_fresh: bool,
}

impl Read for LogBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.is_fresh && self.at + out.len() as u64 >= self.image.length() {
            self.image.refresh().map_err(io::Error::other)?;
            self.is_fresh = true;
            if self.image.is_absent() {
                // A newer catalog does not name it any more.
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        let read = self.image.read_at(self.at, out)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The lock within this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedHere(Arc<Inner>);

impl LockedHere {
    /// Takes it, unless somebody has it.
    pub(crate) fn take(inner: &Arc<Inner>) -> Option<Self> {
        inner.lock_here().then(|| Self(Arc::clone(inner)))
    }
}

impl Drop for LockedHere {
    fn drop(&mut self) {
        self.0.unlock_here();
    }
}

/// The storage's lock: the lease, and the turn that it brought.
#[derive(Debug)]
pub(crate) struct ObjectLock {
    pub(crate) path: PathBuf,
    pub(crate) epoch: u64,
    // Given back in this order, after the turn has ended.
    pub(crate) lease: Lease,
    pub(crate) here: LockedHere,
}

impl FileLock for ObjectLock {
    fn write(&self, content: &[u8]) -> Result<()> {
        self.lease.set_text(content, &self.path)
    }

    fn sync(&self) -> Result<()> {
        let put = self.lease.put();
        put.map_err(|error| error.at(&self.path, "sync"))
    }

    /// The lease decides nothing; whoever takes over puts a catalog of the next turn before
    /// anything else.
    fn confirm(&self) -> Result<()> {
        self.here.0.confirm_turn(self.epoch, &self.path)
    }
}

impl Drop for ObjectLock {
    fn drop(&mut self) {
        self.here.0.end_turn();
    }
}
