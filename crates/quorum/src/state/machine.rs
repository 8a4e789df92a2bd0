//! The state as openraft applies it, and its snapshots.
//!
//! The state lives in memory. A snapshot is all of it in one file that is replaced: objects' paths, tags and bytes, or the names of their files.
//! Files themselves are no part of it: a node that lacks some fetches them afterwards, from those that have them ([`crate::files`]).

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
    /// Files that no object has any more, and since when. Readers that have begun still want them for a while.
    pub dropped: Mutex<Vec<(Instant, String)>>,
    disk: Arc<dyn Disk>,
    blocking: Blocking,
}

/// What openraft applies to.
#[derive(Clone)]
pub(crate) struct StateMachine(Arc<SharedState>);

impl SharedState {
    /// Reads the snapshot of a directory.
    pub(crate) fn open(disk: Arc<dyn Disk>, blocking: Blocking) -> Result<Arc<Self>> {
        let state = match read_snapshot(&*disk)? {
            Some(bytes) => wire::unpack(&bytes)?,
            None => State::default(),
        };
        let applied = watch::Sender::new(next(&state));
        Ok(Arc::new(Self {
            state: RwLock::new(state),
            applied,
            files_added: Notify::new(),
            dropped: Mutex::default(),
            disk,
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

fn read_snapshot(disk: &dyn Disk) -> Result<Option<Bytes>> {
    Ok(disk::read_replaced(disk, SNAPSHOT)?.map(Bytes::from))
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
        let (disk, copy) = (self.0.disk.clone(), bytes.to_vec());
        self.0
            .blocking
            .run(move || disk::replace(&*disk, SNAPSHOT, copy))
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
        let disk = self.0.disk.clone();
        self.0
            .blocking
            .run(move || disk::replace(&*disk, SNAPSHOT, bytes))
            .await
            .map_err(write_failed)?;
        *self.0.state.write() = state;
        self.0.publish();
        self.0.files_added.notify_one();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<TypeConfig>>, StorageError> {
        let disk = self.0.disk.clone();
        let Some(bytes) = self
            .0
            .blocking
            .run(move || read_snapshot(&*disk))
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
