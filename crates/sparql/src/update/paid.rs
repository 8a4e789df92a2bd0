//! The charge for an update's changes: one touch per quad, and an end without a commit over the
//! budget.

use orrery_runtime::Spending;
use orrery_storage::COLUMNS;
use orrery_term::TermId;

use crate::error::QueryError;

/// Quads that are changed before somebody is asked whether they can pay for them.
const QUADS_PAID_AT_ONCE: usize = 8_192;

/// Who pays for what an update changes, if anybody does.
#[derive(Clone, Copy)]
pub(super) struct Paid<'o>(pub(super) Option<&'o Spending>);

impl Paid<'_> {
    /// A change is made from its beginning.
    pub(super) fn begin(self) {
        if let Some(spending) = self.0 {
            spending.begin_change();
        }
    }

    /// Pays for quads that came or went.
    ///
    /// # Errors
    /// Where nothing is left: the transaction is not to be committed.
    pub(super) fn changed(self, quads: u64) -> Result<(), QueryError> {
        let spending = self.0;
        Ok(spending.map_or(Ok(()), |spending| spending.spend_on_change(quads))?)
    }

    /// Changes quads, and pays for those that come or go: for a portion before the next one where
    /// there is a limit, so that no more is done than may be.
    pub(super) fn for_all(
        self,
        quads: &mut Vec<[TermId; COLUMNS]>,
        mut change: impl FnMut(&mut Vec<[TermId; COLUMNS]>) -> Result<u64, QueryError>,
    ) -> Result<(), QueryError> {
        let is_limited = self.0.is_some_and(Spending::is_limited);
        if !is_limited || quads.len() <= QUADS_PAID_AT_ONCE {
            return self.changed(change(quads)?);
        }
        // Neighbours together, each once.
        quads.sort_unstable();
        quads.dedup();
        let mut portion = Vec::with_capacity(QUADS_PAID_AT_ONCE);
        for part in quads.chunks(QUADS_PAID_AT_ONCE) {
            portion.clear();
            portion.extend_from_slice(part);
            self.changed(change(&mut portion)?)?;
        }
        Ok(())
    }
}
