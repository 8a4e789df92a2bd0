//! The choice between plain and rewritten translation ([`Tuning`](crate::options::Tuning)).

use spargebra::algebra::{Expression, GraphPattern};

use super::{Normaliser, PatternPlace, without_projection};
use crate::algebra::Group;
use crate::algebra::expression::{balanced, has_exists};
use crate::error::Result;

impl Normaliser<'_> {
    /// `Join(left, right)`: merged where that means the same, or just as it stands.
    pub(super) fn join(&self, left: Group, right: Group) -> Group {
        if self.rewrites {
            return without_projection(left).join(without_projection(right), &self.table);
        }
        left.beside(right)
    }

    /// `LeftJoin(left, right, expression)` as one step.
    pub(super) fn plain_left_join(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        expression: Option<&Expression>,
        place: &PatternPlace,
    ) -> Result<Group> {
        let mut group = self.graph_by_graph_left(left, place)?;
        if let Some(expression) = expression
            && has_exists(expression)
        {
            return self.left_join_if(group, right, expression, place);
        }
        let right = self.pattern(right, place)?;
        let visible = group.visible.union(&right.visible).union(&place.outer);
        let mut filters = Vec::new();
        if let Some(expression) = expression {
            filters.push(self.rename(balanced(expression.clone())?, &visible)?);
        }
        group.push_optional(right, filters, None, &self.table);
        Ok(group)
    }

    /// `Filter(expression, group)` on top of all that the group does.
    pub(super) fn plain_filter(
        &mut self,
        group: &mut Group,
        expression: Expression,
        place: &PatternPlace,
    ) -> Result<()> {
        let condition = self.value(group, expression, place)?;
        group.filter_last(condition, &self.table);
        Ok(())
    }
}
