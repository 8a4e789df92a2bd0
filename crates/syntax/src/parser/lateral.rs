//! `LATERAL { ... }`: a group that is evaluated for each solution before it (SPARQL-dev SEP-0006).
//!
//! What has a value in that solution already cannot get another one inside: an assignment to a variable that is in scope before
//! the `LATERAL` is an error, told at the variable. An assignment that a subquery does not project is one to another variable of the
//! same name. Assignments are noted only while a `LATERAL` is open, so that other queries pay a comparison.

use spargebra::algebra::GraphPattern;

use super::{Parsed, Parser};
use crate::error::{ErrorKind, Hint};
use crate::names::VariableId;
use crate::token::Token;

/// Assignments (`BIND`, `VALUES`, `AS`) inside of the `LATERAL`s that are open, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    list: Vec<(VariableId, Token)>,
    /// How many `LATERAL`s are open.
    open: usize,
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
        let mut at = 0;
        let start = self.select;
        self.list.retain(|(id, _)| {
            at += 1;
            at <= start || is_kept(*id)
        });
    }
}

impl Parser<'_, '_> {
    /// The group behind the keyword; `mark` is where the scope of the group around it begins.
    pub(super) fn lateral_group(&mut self, mark: usize) -> Parsed<GraphPattern> {
        let (before, first) = (self.scope.mark(), self.assigned.mark());
        self.assigned.open += 1;
        let right = self.group();
        self.assigned.open -= 1;
        let right = right?;
        if self.assigned.mark() > first {
            let outside = self.scope.between(mark, before);
            for at in first..self.assigned.mark() {
                let (id, token) = self.assigned.list[at];
                if outside.binary_search(&id).is_ok() {
                    let variable = self.names.name(id).to_owned();
                    let failure = self.error_at(token, ErrorKind::AssignedInLateral { variable });
                    let note = "give it another name, and compare with FILTER";
                    self.report(failure.with_hint(Hint::Note(note)))?;
                }
            }
        }
        if self.assigned.open == 0 {
            self.assigned.list.clear();
        }
        Ok(right)
    }
}
