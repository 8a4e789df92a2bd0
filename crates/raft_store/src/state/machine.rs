//! The state machine for openraft, and its snapshots.
//!
//! The state lives in memory. A snapshot is all of it in one file that is replaced: objects' paths,
//! tags and bytes, or the names of their files. Files themselves are no part of it: a node that
//! lacks some fetches them afterwards, from those that have them ([`crate::files`]).
//!
//! openraft has a snapshot built beside all else, also while one that came from the leader is
//! installed. Both write the same file, so one at a time does ([`SnapshotFile`]), and what is there
//! is never replaced by an older state: the log before it may be gone.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use openraft::storage::RaftStateMachine;
use openraft::{AnyError, BasicNode, RaftSnapshotBuilder, Snapshot, SnapshotMeta, StorageIOError};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::blocking::Blocking;
use crate::disk::{self, Disk};
use crate::error::{Error, Result};
use crate::state::{Effects, State};
use crate::types::{Answer, Entry, LogId, StorageError, StoredMembership, TypeConfig};
use crate::wire;

const SNAPSHOT: &str = "snapshot";

/// The state of a node, shared between openraft, who applies, and all who read.
pub(crate) struct SharedState {
    /// The state.
    pub state: RwLock<State>,
    /// The index after the last applied entry.
    pub applied: watch::Sender<u64>,
    /// Told when a file came in that this node may lack.
    pub files_added: Notify,
    /// Files that no object has any more, and since when. Readers that have begun still want them
    /// for a while.
    pub dropped: Mutex<Vec<(Instant, String)>>,
    snapshot: Arc<SnapshotFile>,
    blocking: Blocking,
}

/// The snapshot on the disk.
struct SnapshotFile {
    disk: Arc<dyn Disk>,
    /// The last entry of the one that is there; held while it is replaced.
    written: Mutex<Option<LogId>>,
}

impl SnapshotFile {
    /// Replaces it with the bytes of a state that has applied an entry, unless it holds that state
    /// or a later one.
    fn write(&self, applied: Option<LogId>, bytes: Vec<u8>) -> Result<()> {
        let mut written = self.written.lock();
        if written.is_some() && *written >= applied {
            return Ok(());
        }
        disk::replace(&*self.disk, SNAPSHOT, bytes)?;
        *written = applied;
        Ok(())
    }

    fn read(&self) -> Result<Option<Bytes>> {
        let _none_writes = self.written.lock();
        Ok(disk::read_replaced(&*self.disk, SNAPSHOT)?.map(Bytes::from))
    }
}

/// What openraft applies to.
#[derive(Clone)]
pub(crate) struct StateMachine(Arc<SharedState>);

impl SharedState {
    /// Reads the snapshot of a directory.
    pub(crate) fn open(disk: Arc<dyn Disk>, blocking: Blocking) -> Result<Arc<Self>> {
        let snapshot = SnapshotFile {
            disk,
            written: Mutex::default(),
        };
        let state = match snapshot.read()? {
            Some(bytes) => wire::unpack(&bytes)?,
            None => State::default(),
        };
        *snapshot.written.lock() = state.applied;
        let applied = watch::Sender::new(next(&state));
        Ok(Arc::new(Self {
            state: RwLock::new(state),
            applied,
            files_added: Notify::new(),
            dropped: Mutex::default(),
            snapshot: Arc::new(snapshot),
            blocking,
        }))
    }

    /// For openraft.
    pub(crate) fn machine(self: &Arc<Self>) -> StateMachine {
        StateMachine(self.clone())
    }

    fn publish(&self) {
        let next = next(&self.state.read());
        self.applied.send_replace(next);
    }
}

fn next(state: &State) -> u64 {
    state.applied.map_or(0, |id| id.index + 1)
}

fn meta(state: &State) -> SnapshotMeta<u64, BasicNode> {
    SnapshotMeta {
        last_log_id: state.applied,
        last_membership: state.membership.clone(),
        snapshot_id: state.applied.map_or("empty".to_owned(), |id| {
            format!("{}-{}", id.leader_id, id.index)
        }),
    }
}

fn write_failed(error: Error) -> StorageError {
    StorageIOError::write_snapshot(None, AnyError::new(&error)).into()
}

fn read_failed(error: Error) -> StorageError {
    StorageIOError::read_snapshot(None, AnyError::new(&error)).into()
}

impl RaftSnapshotBuilder<TypeConfig> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<TypeConfig>, StorageError> {
        let state = self.0.state.read().clone();
        let bytes = wire::pack(&state).map_err(write_failed)?;
        let (file, copy, applied) = (self.0.snapshot.clone(), bytes.to_vec(), state.applied);
        self.0
            .blocking
            .run(move || file.write(applied, copy))
            .await
            .map_err(write_failed)?;
        Ok(Snapshot {
            meta: meta(&state),
            snapshot: Box::new(Cursor::new(bytes.to_vec())),
        })
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let state = self.0.state.read();
        Ok((state.applied, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Answer>>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let mut effects = Effects::default();
        let answers = {
            let mut state = self.0.state.write();
            entries
                .into_iter()
                .map(|entry| state.apply(entry, &mut effects))
                .collect()
        };
        self.0.publish();
        if effects.added {
            self.0.files_added.notify_one();
        }
        let now = Instant::now();
        self.0
            .dropped
            .lock()
            .extend(effects.dropped.into_iter().map(|id| (now, id)));
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMeta<u64, BasicNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = snapshot.into_inner();
        let state: State = wire::unpack(&Bytes::from(bytes.clone())).map_err(read_failed)?;
        let (file, applied) = (self.0.snapshot.clone(), state.applied);
        self.0
            .blocking
            .run(move || file.write(applied, bytes))
            .await
            .map_err(write_failed)?;
        *self.0.state.write() = state;
        self.0.publish();
        self.0.files_added.notify_one();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<TypeConfig>>, StorageError> {
        let file = self.0.snapshot.clone();
        let Some(bytes) = self
            .0
            .blocking
            .run(move || file.read())
            .await
            .map_err(read_failed)?
        else {
            return Ok(None);
        };
        let state: State = wire::unpack(&bytes).map_err(read_failed)?;
        Ok(Some(Snapshot {
            meta: meta(&state),
            snapshot: Box::new(Cursor::new(bytes.to_vec())),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::LocalDisk;
    use openraft::CommittedLeaderId;

    fn of(index: u64) -> (Option<LogId>, Vec<u8>) {
        let applied = Some(LogId::new(CommittedLeaderId::new(1, 1), index));
        let state = State {
            applied,
            ..State::default()
        };
        // Each has another length, so that a mixture is none of them.
        let mut bytes = wire::pack(&state).unwrap().to_vec();
        bytes.extend(std::iter::repeat_n(0, 64 * index as usize));
        (applied, bytes)
    }

    fn snapshot(directory: &std::path::Path) -> SnapshotFile {
        SnapshotFile {
            disk: Arc::new(LocalDisk::open(directory).unwrap()),
            written: Mutex::default(),
        }
    }

    #[test]
    fn an_older_snapshot_never_replaces_a_newer_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = snapshot(directory.path());
        for index in [3, 7, 5, 7, 6] {
            let (applied, bytes) = of(index);
            file.write(applied, bytes).unwrap();
        }
        assert_eq!(file.read().unwrap().unwrap(), of(7).1);
        // Nor after a restart.
        drop(file);
        std::fs::write(
            directory.path().join("snapshot.new"),
            b"half of one that was not finished",
        )
        .unwrap();
        let file = snapshot(directory.path());
        *file.written.lock() = of(7).0;
        let (applied, bytes) = of(4);
        file.write(applied, bytes).unwrap();
        assert_eq!(file.read().unwrap().unwrap(), of(7).1);
    }

    #[test]
    fn snapshots_that_are_built_and_installed_at_the_same_time_leave_one_that_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = snapshot(directory.path());
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..20 {
                        let (applied, bytes) = of(1 + round * 4 + thread);
                        file.write(applied, bytes).unwrap();
                        assert!(file.read().unwrap().is_some());
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().unwrap(), of(80).1);
    }
}
