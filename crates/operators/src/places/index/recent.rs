//! The spatial index of literals that came after the base.
//!
//! These literals are those of the delta dictionary, which all states over a base share, and which
//! only grows: the first so many terms are those of a state. What was read once is kept; of a
//! transaction nothing is, for its terms may be taken back and their numbers get to stand for
//! others.

use orrery_storage::Snapshot;
use orrery_term::TermId;
use parking_lot::Mutex;

use super::base::{Entry, text_of};
use super::search::PlaceSearch;
use super::tree::Bounds;

/// Literals that are kept: 20 bytes each. Where more came since the last compaction, there is no
/// index until the next.
const KEPT_MAX: usize = 1 << 18;
/// Terms of a transaction that are looked at for each search.
const OWN_TERMS_MAX: u64 = 1 << 16;
/// Terms that are looked at while the dictionary cannot grow.
const TERMS_AT_ONCE: u64 = 256;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    /// So many terms were looked at.
    terms: u64,
    /// In the order of their terms; those without a rectangle have to be looked at whatever is
    /// asked for.
    places: Vec<(u32, Option<Bounds>)>,
}

impl Read {
    fn take(&mut self, snapshot: &Snapshot, to: u64) {
        while self.terms < to && self.places.len() <= KEPT_MAX {
            let from = self.terms;
            let mut index = from;
            self.terms = to.min(from + TERMS_AT_ONCE);
            let dictionary = snapshot.delta_dictionary();
            let mut found: Vec<(u32, _, Vec<u8>)> = Vec::new();
            dictionary.for_each(from, self.terms, |key| {
                if let (Some((notation, text)), Ok(index)) = (text_of(key), u32::try_from(index)) {
                    found.push((index, notation, text.to_vec()));
                }
                index += 1;
            });
            for (index, notation, text) in found {
                match Entry::of(&text, notation) {
                    Entry::Within(bounds) => self.places.push((index, Some(bounds))),
                    Entry::Anywhere => self.places.push((index, None)),
                    Entry::Nowhere => {}
                }
            }
        }
    }

    fn search(&self, search: &PlaceSearch, terms: u64, found: &mut Vec<TermId>) {
        for (index, bounds) in &self.places {
            let index = u64::from(*index);
            if index >= terms {
                break;
            }
            if bounds.is_none_or(|bounds| search.meets(bounds)) {
                found.push(TermId::delta(index));
            }
        }
    }
}

impl Recent {
    /// Adds those of a state that can be what is asked for; `None` where there are too many to look
    /// at.
    pub(super) fn candidates(
        &self,
        snapshot: &Snapshot,
        search: &PlaceSearch,
        found: &mut Vec<TermId>,
    ) -> Option<()> {
        let terms = snapshot.delta_terms();
        if terms == 0 {
            return Some(());
        }
        let mut read = self.0.lock();
        if read.places.len() > KEPT_MAX {
            return None;
        }
        if snapshot.is_of_transaction() {
            let mut own = Read {
                terms: read.terms.min(terms),
                places: Vec::new(),
            };
            if terms - own.terms > OWN_TERMS_MAX {
                return None;
            }
            own.take(snapshot, terms);
            read.search(search, terms, found);
            own.search(search, terms, found);
            return Some(());
        }
        read.take(snapshot, terms);
        if read.places.len() > KEPT_MAX {
            return None;
        }
        read.search(search, terms, found);
        Some(())
    }
}
