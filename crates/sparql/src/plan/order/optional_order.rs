//! The order of `OPTIONAL`s, and the removal of needless ones.
//!
//! Neighbouring `OPTIONAL`s of which none reads what another binds may come in any order: what they
//! share, all rows bind before (they are *well designed*: Pérez, Arenas and Gutierrez, "Semantics
//! and complexity of SPARQL", TODS 2009, section 4). A left join never gives fewer rows than it
//! takes, so those that give at most one for each row come first, and those that multiply last.
//! Where it does not matter how often a solution comes, one whose variables nobody needs says
//! nothing.

use std::borrow::Cow;

use crate::algebra::expression::is_volatile;
use crate::algebra::{Group, Item, Step, StepKind, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;

impl Planner<'_> {
    /// The group with its `OPTIONAL`s in a cheaper order, if there is one.
    pub(in crate::plan) fn with_cheap_optionals_first<'g>(
        &self,
        group: &'g Group,
    ) -> Result<Cow<'g, Group>> {
        if !self.tuning.rewrites || !group.steps.windows(2).any(are_movable) {
            return Ok(Cow::Borrowed(group));
        }
        let mut order: Vec<usize> = Vec::with_capacity(group.steps.len());
        let mut start = 0;
        while start < group.steps.len() {
            let run = &group.steps[start..];
            let count = run.iter().take_while(|step| is_movable(step)).count();
            match count {
                0 | 1 => order.push(start),
                _ => {
                    let places = self.cheapest_first(group, &run[..count])?;
                    order.extend(places.into_iter().map(|place| start + place));
                }
            }
            start += count.max(1);
        }
        if order.is_sorted() {
            return Ok(Cow::Borrowed(group));
        }
        let steps = order.iter().map(|&at| group.steps[at].clone()).collect();
        Ok(Cow::Owned(Group {
            steps,
            ..group.clone()
        }))
    }

    /// The places of the steps, each after those that it depends on, those that multiply as late as
    /// can be.
    fn cheapest_first(&self, group: &Group, steps: &[Step]) -> Result<Vec<usize>> {
        let mut matches = Vec::with_capacity(steps.len());
        for step in steps {
            matches.push(self.multiplies(group, step)?.max(1.0));
        }
        let mut open: Vec<usize> = (0..steps.len()).collect();
        let mut order = Vec::with_capacity(steps.len());
        while !open.is_empty() {
            // The first one is free always.
            let mut next = 0;
            for at in 1..open.len() {
                let step = &steps[open[at]];
                let waits = open[..at]
                    .iter()
                    .any(|&other| are_bound(step, &steps[other]));
                if !waits && matches[open[at]] < matches[open[next]] {
                    next = at;
                }
            }
            order.push(open.remove(next));
        }
        Ok(order)
    }

    /// How many rows an `OPTIONAL` is expected to give for one.
    fn multiplies(&self, group: &Group, step: &Step) -> Result<f64> {
        let StepKind::Optional { group: right, .. } = &step.kind else {
            return Ok(1.0);
        };
        let estimate = match right.items.as_slice() {
            [only @ Item::Quad(_)] => self.estimate(only)?,
            _ => self.group_estimate(right)?,
        };
        let shared = estimate.distinct.iter();
        let shared = shared.filter(|(var, _)| group.visible_before(step).contains(*var));
        // Of several shared variables, the one that tells most.
        let values = shared.fold(1.0, |most, (_, values)| f64::max(most, *values));
        Ok(estimate.rows / values)
    }

    /// Whether a step only multiplies solutions, where their number does not matter, by values that
    /// nobody needs.
    pub(in crate::plan) fn says_nothing(&self, step: &Step, needed: &VarSet) -> bool {
        let is_left_join = matches!(
            step.kind,
            StepKind::Optional { .. } | StepKind::OptionalIf { .. }
        );
        self.tuning.rewrites && self.is_set && is_left_join && !step.introduces.intersects(needed)
    }
}

impl Group {
    /// The variables that others than a step of the group may bind.
    fn visible_before(&self, step: &Step) -> VarSet {
        self.visible.difference(&step.introduces)
    }
}

fn is_movable(step: &Step) -> bool {
    match &step.kind {
        StepKind::Optional { filters, .. } => !filters.iter().any(is_volatile),
        StepKind::OptionalIf { .. }
        | StepKind::Lateral { .. }
        | StepKind::Minus { .. }
        | StepKind::Bind { .. }
        | StepKind::Filter(_)
        | StepKind::Exists { .. }
        | StepKind::Mark { .. } => false,
    }
}

fn are_movable(pair: &[Step]) -> bool {
    pair.iter().all(is_movable)
}

/// Whether two steps have to stay in their order.
fn are_bound(a: &Step, b: &Step) -> bool {
    a.touches.intersects(&b.introduces) || b.touches.intersects(&a.introduces)
}
