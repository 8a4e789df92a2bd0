//! Reopening of files that are already open, for file systems that ask for it.
//!
//! What is fetched of a file takes up space for as long as the file is open
//! ([`ByteSource`](crate::files::io::ByteSource)). A server has the files of its base open for
//! days, so where the space is short the file system asks for them to be opened anew
//! ([`FileSystem::wants_reopening`](crate::files::io::FileSystem::wants_reopening)): the newest
//! state goes over to files that hold nothing, or little. Queries that run keep theirs, and with
//! the last of them the old files go.
//!
//! Only the base is opened anew, with its index of texts: flushed changes and files of tables stay
//! open until the next checkpoint or compaction. Ids stay what they are, for the delta dictionary
//! is the same.

use std::sync::Arc;

use crate::snapshots::base::Base;
use crate::snapshots::snapshot::Snapshot;
use crate::{Database, Result};

impl Database {
    /// The same state over files of its base that are opened anew.
    pub(crate) fn reopened(&self, snapshot: &Snapshot) -> Result<Arc<Snapshot>> {
        let file_system = &**self.file_system();
        let entry = snapshot.manifest().present();
        let base = Base::open(file_system, self.directory(), entry)?;
        let base = base.with_delta_dictionary(snapshot.base());
        let stored = snapshot.stored().reopened(Arc::new(base))?;
        let deltas = snapshot.deltas().clone();
        // Only states that were committed are opened anew.
        let reopened = snapshot
            .with_deltas(Arc::new(stored), deltas, snapshot.counts())?
            .of_commit();
        tracing::debug!("the files of {} were opened anew", entry.segment.name);
        Ok(Arc::new(reopened))
    }
}
