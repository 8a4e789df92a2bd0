//! The translation of term ids from an old base to a new one.
//!
//! An id is a rank in its base's dictionary, so a load or a compaction gives most terms other ids.
//! Who derives something from the data has three ways to survive that: to be written anew with the
//! base (the statistics are); to have ordinals of its own, with one list from these to ids that is
//! translated; or to translate its ids one by one. Both translations are a [`Renumbering`]: the
//! commits that are made beside a compaction are brought over by it, and so is what is derived
//! outside of this crate ([`crate::snapshots::derived`]).
//!
//! Cost: two searches of a dictionary for each term that is not remembered, which is why what has
//! many ids is better written anew, in the order in which the loader merges the dictionaries.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_term::{TermId, TermKind};

use crate::snapshots::base::Base;
use crate::snapshots::snapshot::Snapshot;
use crate::{Error, Result};

/// Ids whose translation is remembered, at most.
const KNOWN_MAX: usize = 1 << 20;

/// From the ids of states over an older base to those of a new one.
#[derive(Debug)]
pub(crate) struct Renumbering {
    to: Arc<Base>,
    /// New ids by old ones.
    known: HashMap<TermId, TermId>,
    key: Vec<u8>,
}

impl Renumbering {
    /// To the ids of this base.
    pub(crate) fn to(base: Arc<Base>) -> Self {
        Self {
            to: base,
            known: HashMap::new(),
            key: Vec::new(),
        }
    }

    /// The id that a term has over the new base, where it is entered into the delta's dictionary if
    /// need be. `old` is a state over the older base that knows the id; all calls are over the same
    /// one.
    pub(crate) fn id(&mut self, id: TermId, old: &Snapshot) -> Result<TermId> {
        if !is_renumbered(id) {
            return Ok(id);
        }
        let to = Arc::clone(&self.to);
        let new = self.look_up(id, old, |key| to.delta_dictionary.insert(key))?;
        new.ok_or_else(|| Error::invalid_input(to.directory(), "too many new terms"))
    }

    /// The same, but nothing is entered: none if neither the new base has the term, nor the first
    /// `delta_terms` of those that came after it.
    pub(crate) fn find(
        &mut self,
        id: TermId,
        old: &Snapshot,
        delta_terms: u64,
    ) -> Result<Option<TermId>> {
        if !is_renumbered(id) {
            return Ok(Some(id));
        }
        let to = Arc::clone(&self.to);
        self.look_up(id, old, |key| to.delta_dictionary.find(key, delta_terms))
    }

    fn look_up(
        &mut self,
        id: TermId,
        old: &Snapshot,
        after_base: impl FnOnce(&[u8]) -> Option<u64>,
    ) -> Result<Option<TermId>> {
        if let Some(&new) = self.known.get(&id) {
            return Ok(Some(new));
        }
        old.term_key(id, &mut self.key)?;
        let dictionary = self.to.dictionary();
        let new = match dictionary.find(&self.key)? {
            Some(rank) => dictionary.id_of_rank(rank),
            None => match after_base(&self.key) {
                Some(index) => TermId::delta(index),
                None => return Ok(None),
            },
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(id, new);
        Ok(Some(new))
    }
}

/// Whether an id tells a place in a dictionary; others hold their term themselves.
fn is_renumbered(id: TermId) -> bool {
    matches!(
        id.checked_kind(),
        Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm | TermKind::Delta)
    )
}
