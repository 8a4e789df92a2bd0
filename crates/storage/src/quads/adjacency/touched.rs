//! The keys of a predicate that changes since the base have touched.
//!
//! A delta's entries ascend, so whether one has a predicate and a key is a binary search. Where
//! many keys are asked for, the delta's keys of the predicate are put into a set first, which is
//! kept beside the delta: a flushed delta serves all snapshots up to the next checkpoint, one in
//! memory those up to the next commit.

use crate::quads::delta::KeySet;
use std::sync::Arc;

use hashbrown::HashSet;
use orrery_term::TermId;

use crate::Result;
use crate::quads::delta::DeltaIndex;
use crate::quads::index::{QuadIndex, QuadRow};

/// For each key that is asked, so many entries may be put into a set.
const ENTRIES_PER_KEY_MAX: u64 = 4;
/// So many may be in any case.
const ENTRIES_FREE: u64 = 64;

/// The keys of a predicate that some delta touches, for one predicate of one index.
#[derive(Debug, Default)]
pub struct Touched {
    levels: Vec<TouchedLevel>,
}

/// One delta that may touch keys.
#[derive(Debug)]
enum TouchedLevel {
    Set(Arc<KeySet>),
    Search { delta: DeltaIndex, predicate: u64 },
}

impl QuadIndex {
    /// The keys, in the second column, that changes to rows of the predicate touch. About so many
    /// keys will be asked for.
    pub fn touched(&self, predicate: TermId, keys: usize) -> Result<Touched> {
        let mut levels = Vec::new();
        for delta in self.deltas() {
            levels.extend(TouchedLevel::of(delta, predicate.bits(), keys as u64)?);
        }
        Ok(Touched { levels })
    }
}

impl Touched {
    /// Whether no key is touched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Whether a key is touched.
    #[inline]
    pub fn contains(&self, key: u64) -> Result<bool> {
        for level in &self.levels {
            let is_touched = match level {
                TouchedLevel::Set(keys) => keys.contains(key),
                TouchedLevel::Search { delta, predicate } => {
                    delta.touches(&bounds(*predicate, Some(key)))?
                }
            };
            if is_touched {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl TouchedLevel {
    /// Nothing if the delta touches no key.
    fn of(delta: &DeltaIndex, predicate: u64, keys: u64) -> Result<Option<Self>> {
        let all = bounds(predicate, None);
        if !delta.touches(&all)? {
            return Ok(None);
        }
        let entries_max = ENTRIES_FREE.max(keys.saturating_mul(ENTRIES_PER_KEY_MAX));
        if let Some(set) = delta.touched_sets().get(predicate) {
            return Ok(Some(Self::Set(set)));
        }
        if !delta.is_flushed() && delta.entries_at_most(&all) > entries_max {
            let delta = delta.clone();
            return Ok(Some(Self::Search { delta, predicate }));
        }
        let mut keys = HashSet::new();
        delta.for_each(&all, |row| {
            keys.insert(row[1]);
        })?;
        let set = KeySet::new(keys);
        Ok(Some(Self::Set(delta.touched_sets().keep(predicate, set))))
    }
}

/// The least and the greatest row with a predicate, and a key.
fn bounds(predicate: u64, key: Option<u64>) -> [QuadRow; 2] {
    let row = |rest: u64| [predicate, key.unwrap_or(rest), rest, rest];
    [row(0), row(u64::MAX)]
}
