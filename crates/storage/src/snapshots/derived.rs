//! Derived indexes: data computed outside the storage from term ids, and carried over to a new
//! base.
//!
//! ```text
//! a compaction, a load, or another process's   ->   BaseChange: the state before, the state after,   ->   each DerivedIndex
//!   (Database::refresh)                             from old ids to new ones
//! ```
//!
//! Ids are ranks in a base's dictionary, so a new base gives most terms other ids.
//! [`Database::derive`](crate::Database::derive) enters who has to know; they are told before
//! anyone sees the first state over the new base, and by whichever way it came. States over the old
//! base live on for as long as somebody reads them, so what answers for both is kept by the name of
//! the base ([`Snapshot::base_name`]).
//!
//! Both dictionaries are sorted by the same keys. So ids of the dictionary that ascend come out
//! ascending, and a list of them that stands for something (a posting list) is translated as it is;
//! only ids of terms that came after the old base (`Delta`) have to be sorted in.
//!
//! Cost: two searches of a dictionary for each id by itself ([`BaseChange::id`]), one pass over
//! both dictionaries for all of them ([`BaseChange::for_each_id`]). What is stored in files of a
//! base is better written anew with it, as the statistics are. Not done here: files of derived
//! indices; they are components of the manifest (decision 0021).

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Weak};

use orrery_term::TermId;
use parking_lot::Mutex;

use crate::Result;
use crate::snapshots::renumbering::Renumbering;
use crate::snapshots::snapshot::Snapshot;

/// Most that may be entered at a time; each is told of every new base.
pub const DERIVED_MAX: usize = 1_024;

/// Something derived from the data of a database and told by its ids.
pub trait DerivedIndex: Send + Sync + fmt::Debug {
    /// The states from now on are over another base. Called before anyone sees one of them, and
    /// while writers wait: what takes long is done on a thread of its own, by the states that
    /// `change` holds. Whoever cannot translate what they have gives it up.
    fn base_changed(&self, change: &mut BaseChange);
}

/// The change from a base to the next one.
#[derive(Debug)]
pub struct BaseChange {
    old: Arc<Snapshot>,
    new: Arc<Snapshot>,
    renumbering: Renumbering,
}

impl BaseChange {
    pub(crate) fn new(old: Arc<Snapshot>, new: Arc<Snapshot>) -> Self {
        Self {
            renumbering: Renumbering::to(Arc::clone(new.base())),
            old,
            new,
        }
    }

    /// The last state over the old base that could be seen.
    pub fn old(&self) -> &Arc<Snapshot> {
        &self.old
    }

    /// The first state over the new one.
    pub fn new_state(&self) -> &Arc<Snapshot> {
        &self.new
    }

    /// The id that a term of the old state has in the new one; none where no quad has the term any
    /// more, so that it was left out. Ids that hold their term themselves stay as they are.
    pub fn id(&mut self, old: TermId) -> Result<Option<TermId>> {
        self.renumbering
            .find(old, &self.old, self.new.delta_terms())
    }

    /// Visits all terms of the old base's dictionary that have an id in the new state: both ids,
    /// ascending by the old one. Terms that came after the old base are not among them.
    pub fn for_each_id(&self, mut each: impl FnMut(TermId, TermId) -> Result<()>) -> Result<()> {
        let (old, new) = (self.old.dictionary(), self.new.dictionary());
        let (mut old_keys, mut new_keys) = (old.iter(0), new.iter(0));
        let (mut old_rank, mut new_rank) = (0, 0);
        while old_rank < old.len() {
            let order = match new_rank < new.len() {
                true => old_keys.at(old_rank)?.cmp(new_keys.at(new_rank)?),
                false => Ordering::Less,
            };
            match order {
                Ordering::Equal => {
                    each(old.id_of_rank(old_rank), new.id_of_rank(new_rank))?;
                    (old_rank, new_rank) = (old_rank + 1, new_rank + 1);
                }
                Ordering::Greater => new_rank += 1,
                Ordering::Less => {
                    // A term that came again after the new base was begun.
                    let key = old_keys.at(old_rank)?;
                    let again = self
                        .new
                        .delta_dictionary()
                        .find(key, self.new.delta_terms());
                    if let Some(index) = again {
                        each(old.id_of_rank(old_rank), TermId::delta(index))?;
                    }
                    old_rank += 1;
                }
            }
        }
        Ok(())
    }
}

/// Who has to know of new bases.
#[derive(Debug, Default)]
pub(crate) struct DerivedIndices(Mutex<Vec<Weak<dyn DerivedIndex>>>);

impl DerivedIndices {
    /// Enters one, unless there are too many; whether it was.
    pub(crate) fn add(&self, index: Weak<dyn DerivedIndex>) -> bool {
        let mut all = self.0.lock();
        all.retain(|index| index.strong_count() > 0);
        let has_room = all.len() < DERIVED_MAX;
        if has_room && !all.iter().any(|known| known.ptr_eq(&index)) {
            all.push(index);
        }
        has_room
    }

    /// Tells all of them.
    pub(crate) fn tell(&self, old: &Arc<Snapshot>, new: &Arc<Snapshot>) {
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        if all.is_empty() {
            return;
        }
        let mut change = BaseChange::new(Arc::clone(old), Arc::clone(new));
        for index in all {
            index.base_changed(&mut change);
        }
    }
}
