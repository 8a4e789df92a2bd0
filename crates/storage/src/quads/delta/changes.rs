//! A merge of stacked deltas into one, relative to the base below all of them.

use super::chunk::DeltaEntry;
use super::{DeltaIndex, Entries};
use crate::Result;

/// The net changes of a stack of deltas, ascending by row. Ends after the first error.
///
/// A row that one level inserts and a higher one deletes, or the reverse, did not change.
#[derive(Debug)]
pub struct Changes {
    levels: Vec<(Option<DeltaEntry>, Entries)>,
}

impl Changes {
    /// Of these deltas, from the lowest up.
    pub(crate) fn new(deltas: &[DeltaIndex]) -> Result<Self> {
        let levels = deltas.iter().map(|delta| {
            let mut entries = delta.entries();
            Ok((entries.next().transpose()?, entries))
        });
        Ok(Self {
            levels: levels.collect::<Result<_>>()?,
        })
    }

    fn next_change(&mut self) -> Result<Option<DeltaEntry>> {
        loop {
            let heads = self.levels.iter().filter_map(|(head, _)| head.as_ref());
            let Some(row) = heads.map(|head| head.row).min() else {
                return Ok(None);
            };
            // The levels take turns at a row, so an even number of them cancel each other.
            let mut change = None;
            for (head, entries) in &mut self.levels {
                if let Some(entry) = head.filter(|head| head.row == row) {
                    change = change.xor(Some(entry));
                    *head = entries.next().transpose()?;
                }
            }
            if change.is_some() {
                return Ok(change);
            }
        }
    }
}

impl Iterator for Changes {
    type Item = Result<DeltaEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_change();
        if next.is_err() {
            self.levels.clear();
        }
        next.transpose()
    }
}
