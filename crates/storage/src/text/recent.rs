//! The in-memory full-text index of literals that came after the base.
//!
//! The indexed literals belong to the base as the delta dictionary does: an id that a commit
//! brought means the same in all states over it. Which literals are here already is a set of ids; a
//! state's changes are compared with those of the last state that was looked at, so a search after
//! a commit costs what the commit changed. A new part is merged with those before it that are not
//! much larger, so there are few.
//!
//! Memory: what they take is asked for as it grows ([`TextMemory`]), [`RECENT_BYTES_MAX`] at most.
//! Whoever grants it may have them given up at any time; the next search makes them again, of the
//! changes since the base.

use std::any::Any;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use orrery_full_text::OpenPart;
use parking_lot::{Mutex, MutexGuard};

use crate::quads::delta::DeltaIndex;

/// Bytes of all parts together.
pub(super) const RECENT_BYTES_MAX: usize = 256 << 20;
/// What an id in the set takes.
const ID_BYTES: usize = 9;
/// States of files that are remembered: one for each list of graphs that somebody sees, mostly one.
const SEEN_MAX: usize = 8;

/// A part in memory.
#[derive(Debug, Clone)]
pub(super) struct RecentPart {
    pub(super) part: Arc<OpenPart>,
    pub(super) bytes: usize,
}

/// The in-memory index of literals since a base, which can be dropped and is rebuilt on demand.
#[derive(Debug, Default)]
pub struct RecentTexts {
    taken: Mutex<Taken>,
    /// To be given up by whoever has them.
    is_unwanted: AtomicBool,
    used: AtomicU64,
}

/// The grantor of memory for recent literals.
pub trait TextMemory {
    /// Whether these texts may take so many bytes in all, in place of what they had. For that
    /// others may be given up ([`RecentTexts::give_up`]), these never: they are being used.
    fn hold(&self, texts: &Arc<RecentTexts>, bytes: u64) -> bool;
}

/// Grants what an index takes at most, for a process that has the memory to itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unshared;

impl TextMemory for Unshared {
    fn hold(&self, _: &Arc<RecentTexts>, _: u64) -> bool {
        true
    }
}

impl RecentTexts {
    pub(super) fn lock(&self) -> MutexGuard<'_, Taken> {
        let mut taken = self.taken.lock();
        self.forget_unwanted(&mut taken);
        taken
    }

    fn forget_unwanted(&self, taken: &mut Taken) {
        if self.is_unwanted.swap(false, Ordering::AcqRel) {
            *taken = Taken::default();
        }
    }

    /// Drops them, at once or as soon as a running build has ended. Searches that have begun keep
    /// what they read.
    pub fn give_up(&self) {
        self.is_unwanted.store(true, Ordering::Release);
        // Never waits: who has them may wait for memory.
        if let Some(mut taken) = self.taken.try_lock() {
            self.forget_unwanted(&mut taken);
        }
    }

    /// The time of the last use, from [`Self::set_used`].
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// They are used now.
    pub fn set_used(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }
}

/// What was taken up so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) parts: Vec<RecentPart>,
    /// The ids that were looked at: those in the parts, and those that the rules do not select.
    pub(super) ids: HashSet<u64>,
    /// Files of which all changes were looked at, and up to which changes in memory.
    seen: Vec<(Weak<dyn Any + Send + Sync>, Option<DeltaIndex>)>,
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

    /// Bytes of all parts, and of the ids.
    pub(super) fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(|part| part.bytes).sum();
        parts + self.ids.capacity() * ID_BYTES
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
