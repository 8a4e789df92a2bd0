//! The quads that differ between two states over one base, for the upkeep of derived indexes.

use std::sync::Arc;

use crate::quads::delta::{DeltaEntry, DeltaIndex};
use crate::quads::index::{Permutation, QuadIndex};
use crate::{Result, Snapshot};

impl Snapshot {
    /// The quads that are there and were not in an earlier state, and those that were and are no
    /// more: ascending rows of SPOG. `None` where the two have not the same ids, or hide other
    /// graphs of their base. While no checkpoint came between, what both share is not looked at;
    /// else all that changed since the base was written is.
    pub fn quads_changed_since(&self, earlier: &Self) -> Result<Option<Vec<DeltaEntry>>> {
        if Arc::ptr_eq(self.stored(), earlier.stored()) {
            let none = DeltaIndex::new(Permutation::Spog);
            let [new, old] = [self, earlier].map(|it| it.deltas().get(Permutation::Spog));
            let changes = new.unwrap_or(&none).changes_since(old.unwrap_or(&none))?;
            return Ok(Some(changes));
        }
        let is_comparable = self.base_name() == earlier.base_name()
            && self.stored().hidden == earlier.stored().hidden;
        match is_comparable {
            true => difference(self.spog()?, earlier.spog()?).map(Some),
            false => Ok(None),
        }
    }
}

/// What is done to the base of both in one and not in the other.
fn difference(new: &QuadIndex, old: &QuadIndex) -> Result<Vec<DeltaEntry>> {
    let (mut new, mut old) = (new.changes()?, old.changes()?);
    let (mut of_new, mut of_old) = (new.next().transpose()?, old.next().transpose()?);
    let mut changes = Vec::new();
    loop {
        match (of_new, of_old) {
            (None, None) => return Ok(changes),
            // A row of the base or not of it: both did the same.
            (Some(a), Some(b)) if a.row == b.row => {
                of_new = new.next().transpose()?;
                of_old = old.next().transpose()?;
            }
            (Some(a), b) if b.is_none_or(|b| a.row < b.row) => {
                changes.push(a);
                of_new = new.next().transpose()?;
            }
            (_, Some(b)) => {
                changes.push(DeltaEntry {
                    is_insertion: !b.is_insertion,
                    ..b
                });
                of_old = old.next().transpose()?;
            }
            (Some(_), None) => unreachable!("taken above"),
        }
    }
}
