//! The set of terms of the base's dictionary that are still in use.
//!
//! A term that only deleted quads had would stay in the dictionary for ever, as the merge takes up
//! the old one key by key. So where there are deletions, the rows of the base that have no
//! tombstone are read once (SPOG, some 100 million rows a second on one core), and the merge leaves
//! out what none of them has. What insertions since use comes with their batch.

use crate::merge::permutations::next_tombstone;
use orrery_storage::Permutation;
use orrery_storage::{ReadView, Result};
use orrery_term::TermId;

/// One bit for each rank of a dictionary.
#[derive(Debug)]
pub(crate) struct UsedTerms(Vec<u64>);

impl UsedTerms {
    /// The terms that are in quads of the base which were not deleted; `None` if nothing was
    /// deleted, for then all may be.
    pub(crate) fn of(view: &ReadView) -> Result<Option<Self>> {
        let Some(index) = view.index(Permutation::Spog) else {
            return Ok(None);
        };
        let mut changes = index.changes()?;
        let mut tombstone = next_tombstone(&mut changes)?;
        if tombstone.is_none() && index.hidden_rows() == 0 {
            return Ok(None);
        }
        let words = view.snapshot().dictionary().len().div_ceil(64) as usize;
        let mut used = Self(vec![0; words]);
        let base = index.base();
        let mut scan = base.scan(base.all(), [true; 4]);
        while let Some(vector) = scan.next_vector()? {
            let columns = [0, 1, 2, 3].map(|column| vector.column(column));
            for row in 0..columns[0].len() {
                let row = columns.map(|column| column[row]);
                if tombstone == Some(row) {
                    tombstone = next_tombstone(&mut changes)?;
                    continue;
                }
                row.into_iter().for_each(|bits| used.insert(bits));
            }
        }
        Ok(Some(used))
    }

    #[inline]
    fn insert(&mut self, bits: u64) {
        let id = TermId::from_bits(bits);
        // An id of a rank that does not exist is damage, which whoever reads the row reports.
        if id.is_dictionary()
            && let Some(word) = self.0.get_mut(id.payload() as usize / 64)
        {
            *word |= 1 << (id.payload() % 64);
        }
    }

    /// Whether the term of a rank is in use.
    pub(crate) fn contains(&self, rank: u64) -> bool {
        let word = self.0.get(rank as usize / 64);
        word.is_some_and(|word| word & (1 << (rank % 64)) != 0)
    }
}
