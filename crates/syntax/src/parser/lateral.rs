//! `LATERAL { ... }`: a group that is evaluated for each solution before it (SPARQL-dev SEP-0006).
//!
//! What has a value in that solution already cannot get another one inside: an assignment to a
//! variable that is in scope before the `LATERAL` is an error, told at the variable. An assignment
//! that a subquery does not project is one to another variable of the same name. Assignments are
//! noted only while a `LATERAL` is open, so that other queries pay a comparison.

use spargebra::algebra::GraphPattern;

use super::{Parsed, Parser};
use crate::error::{ErrorKind, Hint};

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
