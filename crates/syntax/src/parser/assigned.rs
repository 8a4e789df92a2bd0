//! The check of assignments inside `LATERAL`.

use crate::names::VariableId;
use crate::token::Token;

/// Assignments (`BIND`, `VALUES`, `AS`) inside of the `LATERAL`s that are open, in the order of the
/// text.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    pub(super) list: Vec<(VariableId, Token)>,
    /// How many `LATERAL`s are open.
    pub(super) open: usize,
    /// Where those of the subquery begin that is being read.
    select: usize,
}

impl Assigned {
    pub(super) fn add(&mut self, id: VariableId, token: Token) {
        if self.open > 0 {
            self.list.push((id, token));
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.list.len()
    }

    /// Forgets what came from a mark on: what `EXISTS` has inside stays there.
    pub(super) fn forget(&mut self, mark: usize) {
        self.list.truncate(mark);
    }

    /// Begins a subquery; gives where the one around it began.
    pub(super) fn begin_select(&mut self) -> usize {
        std::mem::replace(&mut self.select, self.list.len())
    }

    /// Ends a subquery with these columns.
    pub(super) fn end_select(&mut self, around: usize, columns: &[VariableId]) {
        self.keep(|id| columns.contains(&id));
        self.select = around;
    }

    /// Keeps of the assignments of the subquery those to some variables.
    pub(super) fn keep(&mut self, is_kept: impl Fn(VariableId) -> bool) {
        let start = self.select.min(self.list.len());
        let mut own = self.list.split_off(start);
        own.retain(|(id, _)| is_kept(*id));
        self.list.append(&mut own);
    }
}
