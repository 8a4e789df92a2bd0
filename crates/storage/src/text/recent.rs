//! Texts that came since the base was written: parts in memory.
//!
//! They belong to the base as the delta dictionary does: an id that a commit brought means the same in all states over it. Which literals are here already is a set of ids; a
//! state's changes are compared with those of the last state that was looked at, so a search after a commit costs what the commit changed. A new part is merged with those
//! before it that are not much larger, so there are few.

use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, Weak};

use orrery_text::OpenPart;
use parking_lot::{Mutex, MutexGuard};

use crate::delta::DeltaIndex;

/// Bytes of all parts together.
pub(super) const RECENT_BYTES_MAX: usize = 256 << 20;
/// States of files that are remembered: one for each list of graphs that somebody sees, mostly one.
const SEEN_MAX: usize = 8;

/// A part in memory.
#[derive(Debug, Clone)]
pub(super) struct RecentPart {
    pub(super) part: Arc<OpenPart>,
    pub(super) bytes: usize,
}

/// What came since the base.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Taken>);

/// What was taken up so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) parts: Vec<RecentPart>,
    /// The ids that were looked at: those in the parts, and those that the rules do not select.
    pub(super) ids: HashSet<u64>,
    /// Files of which all changes were looked at, and up to which changes in memory.
    seen: Vec<(Weak<dyn Any + Send + Sync>, Option<DeltaIndex>)>,
}

impl Recent {
    pub(super) fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock()
    }
}

impl Taken {
    /// Whether the changes in these files were looked at, and up to which changes in memory.
    pub(super) fn seen(&self, files: &Arc<dyn Any + Send + Sync>) -> Option<Option<&DeltaIndex>> {
        let wanted = Arc::downgrade(files);
        let found = self.seen.iter().find(|(seen, _)| seen.ptr_eq(&wanted));
        found.map(|(_, changes)| changes.as_ref())
    }

    /// All changes of a state were looked at.
    pub(super) fn note_seen(
        &mut self,
        files: &Arc<dyn Any + Send + Sync>,
        changes: Option<DeltaIndex>,
    ) {
        let wanted = Arc::downgrade(files);
        self.seen
            .retain(|(seen, _)| seen.strong_count() > 0 && !seen.ptr_eq(&wanted));
        if self.seen.len() >= SEEN_MAX {
            self.seen.remove(0);
        }
        self.seen.push((wanted, changes));
    }

    /// Bytes of all parts.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The parts that a new one of so many documents is to be merged with, taken out.
    pub(super) fn take_mergeable(&mut self, mut documents: u64) -> Vec<RecentPart> {
        let mut taken = Vec::new();
        while let Some(last) = self
            .parts
            .pop_if(|last| last.part.documents() <= 2 * documents)
        {
            documents += last.part.documents();
            taken.push(last);
        }
        taken
    }
}
