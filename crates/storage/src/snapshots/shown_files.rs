//! Filtered files and deltas per list of graphs, cached between two checkpoints for
//! [`crate::snapshots::shown_states`].
//!
//! ```text
//! files less the graphs that a list hides     masks, and the visible flushed changes: made once
//! visible changes in memory                   those of the newest state that was asked for; others take up their chunks
//! ```
//!
//! Bounded as [`ByList`] is. Nothing here holds a state.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::Result;
use crate::access::by_list::ByList;
use crate::access::read_scope::GraphNames;
use crate::quads::delta::DeltaIndex;
use crate::quads::graph_set::GraphSet;
use crate::quads::index::Permutation;
use crate::quads::statistics::SampledStatistics;
use crate::snapshots::stored::{Deltas, Stored};

/// See the module. All states over the same files have the same one, and no others.
#[derive(Debug, Default)]
pub(crate) struct ShownFiles {
    kept: Mutex<ByList<Arc<ShownList>>>,
}

/// What a list shows.
#[derive(Debug)]
pub(crate) struct ShownList {
    pub(crate) graphs: Arc<GraphNames>,
    /// The graphs of the files that it does not have.
    hidden: GraphSet,
    /// The files without them.
    pub(crate) files: Arc<Stored>,
    /// What that takes in memory.
    pub(crate) files_bytes: u64,
    last: Mutex<Arc<ShownChanges>>,
}

/// What a list shows of the changes that a state has in memory.
#[derive(Debug)]
pub(crate) struct ShownChanges {
    pub(crate) commit: u64,
    /// How many terms of the delta dictionary the state has.
    pub(crate) delta_terms: u64,
    /// All changes, of SPOG.
    pub(crate) whole: DeltaIndex,
    /// Those that are left.
    pub(crate) deltas: Deltas,
    /// Whether all are, and nothing of the files is hidden.
    pub(crate) is_whole: bool,
    /// Of all these changes.
    pub(crate) bytes: u64,
    /// The same as long as no change is shown.
    pub(crate) sampled: Arc<SampledStatistics>,
}

impl ShownFiles {
    /// What is kept for a list.
    pub(crate) fn find(&self, graphs: &Arc<GraphNames>) -> Option<Arc<ShownList>> {
        self.kept.lock().find(graphs)
    }

    /// Begins to keep what a list shows of some files, of which it hides some graphs.
    pub(crate) fn add(
        &self,
        graphs: &Arc<GraphNames>,
        hidden: GraphSet,
        stored: &Arc<Stored>,
    ) -> Result<Arc<ShownList>> {
        // Other names may hide the same.
        let same = {
            let kept = self.kept.lock();
            let same = kept.iter().find(|it| it.hidden == hidden);
            same.map(|it| (Arc::clone(&it.files), it.files_bytes))
        };
        // Others need not wait; who asks for the same meanwhile makes it, too.
        let (files, files_bytes) = match same {
            Some(same) => same,
            None if hidden.is_empty() => (Arc::clone(stored), 0),
            None => {
                let files = stored.showing_all_but(&hidden)?;
                let bytes = files.memory_bytes();
                (Arc::new(files), bytes)
            }
        };
        let made = Arc::new(ShownList {
            graphs: Arc::clone(graphs),
            last: Mutex::new(Arc::new(ShownChanges::none(hidden.is_empty()))),
            hidden,
            files,
            files_bytes,
        });
        self.kept.lock().add(graphs, Arc::clone(&made));
        Ok(made)
    }

    /// Lets lists go until the rest takes no more memory than it may, beside a state after a
    /// commit.
    pub(crate) fn shrink(&self, commit: u64) {
        let mut files = Vec::new();
        self.kept.lock().shrink(|list| {
            let changes_bytes = list.last.lock().bytes_beside(commit);
            // Several lists may share them.
            if files.contains(&Arc::as_ptr(&list.files)) {
                return changes_bytes;
            }
            files.push(Arc::as_ptr(&list.files));
            changes_bytes + list.files_bytes
        });
    }
}

impl ShownList {
    /// What was left of the newest state that was asked for.
    pub(crate) fn last(&self) -> Arc<ShownChanges> {
        Arc::clone(&self.last.lock())
    }

    /// Takes in what is left of a state, if none was asked for that is newer.
    pub(crate) fn note(&self, made: Arc<ShownChanges>) {
        let mut last = self.last.lock();
        if made.commit >= last.commit {
            *last = made;
        }
    }
}

impl ShownChanges {
    /// Of files without changes.
    fn none(is_whole: bool) -> Self {
        Self {
            commit: 0,
            delta_terms: 0,
            whole: DeltaIndex::new(Permutation::Spog),
            deltas: Deltas::default(),
            is_whole,
            bytes: 0,
            sampled: Arc::default(),
        }
    }

    /// Bytes that are not those of the state after a commit.
    fn bytes_beside(&self, commit: u64) -> u64 {
        match self.is_whole && self.commit == commit {
            true => 0,
            false => self.bytes,
        }
    }
}
