//! The Raft log of a node: entries in order, and the vote.
//!
//! openraft appends entries in groups and waits for each group; so a group is one frame
//! ([`frame`]), one write and one sync ([`files`]). Entries since the last snapshot are kept in
//! memory too, for those who replicate and apply them: a snapshot is made every 5,000 entries or 64
//! MiB, so that they stay few.
//!
//! The vote is a small file that is replaced. Which entry is known to be committed is written with
//! the next entries: it is a hint that lets a node that starts show what it had, and costs no sync
//! of its own.
//!
//! A vote by which this node led is read as one by which it was a candidate. Else openraft lets it
//! lead on after a restart without an election, and without an entry of its own: it would answer
//! reads from what it had applied, before it knows which entries were committed meanwhile.

pub(crate) mod files;
pub(crate) mod frame;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{AnyError, LogState, RaftLogReader, StorageIOError};
use parking_lot::Mutex;

use crate::blocking::Blocking;
use crate::disk::{self, Disk};
use crate::error::{Error, Result};
use crate::log::files::{Contents, LogFiles};
use crate::types::{Entry, LogId, NodeId, StorageError, TypeConfig, Vote, files_named};

const VOTE: &str = "vote";
/// A file of the log takes no more frames when it has this many bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;
/// Entries are sent in groups of about this many bytes.
const SEND_BYTES_MAX: usize = 4 << 20;

/// The log of a node; clones are the same log.
#[derive(Clone)]
pub(crate) struct LogStore {
    node: NodeId,
    disk: Arc<dyn Disk>,
    blocking: Blocking,
    /// Entries and what is known of them. Held for moments; taken after `files` where both are.
    memory: Arc<Mutex<Memory>>,
    /// Held during a write.
    files: Arc<Mutex<LogFiles>>,
}

#[derive(Default)]
struct Memory {
    contents: Contents,
    /// Of all entries.
    bytes: usize,
}

impl LogStore {
    /// Reads the log of a directory.
    pub(crate) fn open(
        node: NodeId,
        disk: Arc<dyn Disk>,
        blocking: Blocking,
        file_bytes_max: u64,
    ) -> Result<Self> {
        let (files, contents) = LogFiles::open(disk.clone(), file_bytes_max)?;
        let bytes = contents.entries.iter().map(|(_, bytes)| bytes).sum();
        Ok(Self {
            node,
            disk,
            blocking,
            memory: Arc::new(Mutex::new(Memory { contents, bytes })),
            files: Arc::new(Mutex::new(files)),
        })
    }

    /// Bytes of the entries that are in no purged part.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.lock().bytes
    }

    /// Names of files that entries speak of.
    pub(crate) fn files_named(&self) -> BTreeSet<String> {
        self.memory
            .lock()
            .contents
            .entries
            .iter()
            .flat_map(|(entry, _)| files_named(entry))
            .collect()
    }

    fn entries(&self, range: impl RangeBounds<u64>, bytes_max: usize) -> Vec<Entry> {
        let memory = self.memory.lock();
        let Some((first, _)) = memory.contents.entries.front() else {
            return Vec::new();
        };
        let first = first.log_id.index;
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start + 1,
            Bound::Unbounded => first,
        };
        let mut bytes = 0;
        let mut found = Vec::new();
        for (entry, size) in memory
            .contents
            .entries
            .iter()
            .skip(start.saturating_sub(first) as usize)
        {
            bytes += size;
            if !range.contains(&entry.log_id.index) || (bytes > bytes_max && !found.is_empty()) {
                break;
            }
            found.push(entry.clone());
        }
        found
    }

    async fn write(&self, frame: bytes::Bytes, last_index: Option<u64>) -> Result<()> {
        let files = self.files.clone();
        self.blocking
            .run(move || files.lock().write(&frame, last_index))
            .await
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.entries(range, usize::MAX))
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.entries(start..end, SEND_BYTES_MAX))
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let memory = self.memory.lock();
        let last_purged_log_id = memory.contents.purged;
        let last_log_id = memory
            .contents
            .entries
            .back()
            .map(|(entry, _)| entry.log_id)
            .or(last_purged_log_id);
        Ok(LogState {
            last_purged_log_id,
            last_log_id,
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let failed = |error: Error| StorageIOError::write_vote(AnyError::new(&error));
        let bytes = serde_json::to_vec(vote).map_err(|error| failed(error.into()))?;
        let disk = self.disk.clone();
        self.blocking
            .run(move || disk::replace(&*disk, VOTE, bytes))
            .await
            .map_err(failed)?;
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        let failed = |error: Error| StorageIOError::read_vote(AnyError::new(&error));
        let Some(bytes) = disk::read_replaced(&*self.disk, VOTE).map_err(failed)? else {
            return Ok(None);
        };
        let mut vote: Vote =
            serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
        if vote.leader_id().voted_for() == Some(self.node) {
            vote.committed = false;
        }
        Ok(Some(vote))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        let mut memory = self.memory.lock();
        memory.contents.committed = committed.max(memory.contents.committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        // A hint that names what is not here (it came in a snapshot) is none.
        let memory = self.memory.lock();
        let committed = memory.contents.committed;
        Ok(committed.filter(|id| {
            memory
                .contents
                .entries
                .iter()
                .any(|(entry, _)| entry.log_id == *id)
        }))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<TypeConfig>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let failed = |error: Error| StorageIOError::write_logs(AnyError::new(&error));
        let committed = self.memory.lock().contents.committed;
        let (frame, sizes) = frame::encode_entries(committed, &entries).map_err(failed)?;
        let last_index = entries.last().map(|entry| entry.log_id.index);
        {
            let mut memory = self.memory.lock();
            memory.bytes += sizes.iter().sum::<usize>();
            memory
                .contents
                .entries
                .extend(entries.into_iter().zip(sizes));
        }
        let written = self.write(frame, last_index).await;
        callback.log_io_completed(written.map_err(io::Error::other));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let failed = |error: Error| StorageIOError::write_logs(AnyError::new(&error));
        self.write(frame::encode_cut(log_id.index).map_err(failed)?, None)
            .await
            .map_err(failed)?;
        let mut memory = self.memory.lock();
        memory.contents.cut(log_id.index);
        memory.count_bytes();
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let failed = |error: Error| StorageIOError::write_logs(AnyError::new(&error));
        self.write(frame::encode_purged(log_id).map_err(failed)?, None)
            .await
            .map_err(failed)?;
        {
            let mut memory = self.memory.lock();
            memory.contents.purge(log_id);
            memory.count_bytes();
        }
        let files = self.files.clone();
        self.blocking
            .run(move || files.lock().remove_purged(log_id.index))
            .await
            .map_err(failed)?;
        Ok(())
    }
}

impl Memory {
    fn count_bytes(&mut self) {
        self.bytes = self.contents.entries.iter().map(|(_, bytes)| bytes).sum();
    }
}

#[cfg(test)]
mod tests;
