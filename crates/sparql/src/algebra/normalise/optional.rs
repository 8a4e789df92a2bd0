//! The translation of `OPTIONAL`, whose filter sees both sides.

use spargebra::algebra::{Expression, GraphPattern};

use super::{Normaliser, PatternPlace};
use crate::algebra::expression::{balanced, conjuncts, has_exists, variables};
use crate::algebra::{Group, StepKind};
use crate::error::Result;

impl Normaliser<'_> {
    pub(super) fn left_join(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        expression: Option<&Expression>,
        place: &PatternPlace,
    ) -> Result<Group> {
        if !self.rewrites {
            return self.plain_left_join(left, right, expression, place);
        }
        let mut group = self.graph_by_graph_left(left, place)?;
        let right_pattern = right;
        let mut right = self.pattern(right, place)?;
        let Some(expression) = expression else {
            group.left_join(right, Vec::new(), &place.outer, &mut self.table);
            return Ok(group);
        };
        let mut visible = group.visible.union(&right.visible).union(&place.outer);
        let mut filters = Vec::new();
        for condition in conjuncts(balanced(expression.clone())?) {
            let condition = if has_exists(&condition) {
                match self.marks_in_optional(&group, &mut right, condition, place)? {
                    Some(condition) => condition,
                    None => return self.left_join_if(group, right_pattern, expression, place),
                }
            } else {
                condition
            };
            visible.extend(&right.visible);
            let condition = self.rename(condition, &visible)?;
            right.turn_into_joins(&condition, &place.outer.union(&group.visible), &self.table);
            let seen = variables(&condition, &self.table);
            if seen.is_subset(&right.certain) {
                right.filter(condition, &place.outer, &self.table);
            } else {
                filters.push(condition);
            }
        }
        group.left_join(right, filters, &place.outer, &mut self.table);
        Ok(group)
    }

    /// `EXISTS` in the filter of an `OPTIONAL` is answered on its right side, where
    /// that side binds what the pattern shares with the left; `None` where it does not.
    fn marks_in_optional(
        &mut self,
        left: &Group,
        right: &mut Group,
        condition: Expression,
        place: &PatternPlace,
    ) -> Result<Option<Expression>> {
        let before = right.steps.len();
        let inside = PatternPlace {
            outer: place.outer.union(&left.visible),
            ..place.clone()
        };
        let condition = self.marks(right, condition, &inside)?;
        let needs_left = right.steps[before..].iter().any(|step| match &step.kind {
            StepKind::Mark { group, .. } => {
                let seen = group.visible.union(&group.outer);
                !seen.intersection(&left.visible).is_subset(&right.certain)
            }
            _ => false,
        });
        Ok((!needs_left).then_some(condition))
    }

    /// `LeftJoin(left, right, expression)` whose filter has an `EXISTS` that looks at both sides:
    /// the filter becomes steps on the joined solutions.
    pub(super) fn left_join_if(
        &mut self,
        left: Group,
        right: &GraphPattern,
        expression: &Expression,
        place: &PatternPlace,
    ) -> Result<Group> {
        let (mut group, right) = (left, self.pattern(right, place)?);
        let mut joined = Group {
            visible: group.visible.union(&right.visible),
            certain: group.certain.union(&right.certain),
            items_certain: group.certain.union(&right.certain),
            ..Group::default()
        };
        let expression = balanced(expression.clone())?;
        if self.rewrites {
            self.filter(&mut joined, expression, place)?;
        } else {
            self.plain_filter(&mut joined, expression, place)?;
        }
        group.optional_if(right, joined, &self.table);
        Ok(group)
    }
}
