//! The rewrite of groups of which only existence is asked: `ASK`, and uncorrelated `EXISTS`.
//!
//! ```text
//! ASK { SELECT ?p (SUM(?x) AS ?s) { A OPTIONAL { B } } GROUP BY ?p ORDER BY ?s }        ASK { A }
//! ```
//!
//! An order changes nothing then, nor do projections and duplicates; there is a group where there
//! is a solution, and a group of all even where there is none; what is bound or optional after the
//! join takes no solution away. What is left stops at its first row, where a sort or an aggregation
//! would have read all. What counts solutions (`OFFSET`) or reads what an aggregate gives
//! (`HAVING`) stays.

use crate::algebra::{Derived, Group, Item, Modifier, Step, StepKind, VarSet, VariableTable};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

impl Planner<'_> {
    /// A row if a group has a solution, else none. Which variables the row has nobody may rely on.
    pub(crate) fn any_solution(&mut self, group: Group) -> Result<Relation> {
        let group = match self.tuning.rewrites {
            true => existence(group, &self.table),
            false => group,
        };
        let was_set = std::mem::replace(&mut self.is_set, true);
        let found = self.group(&group, None, &VarSet::default(), Some(1));
        let found = found.and_then(|found| self.limited(found, 0, Some(1)));
        self.is_set = was_set;
        found
    }
}

/// A group that has a solution if and only if this one has. Its variables may be fewer than it
/// says.
fn existence(group: Group, table: &VariableTable) -> Group {
    let mut group = group;
    group.steps = dropping_steps(std::mem::take(&mut group.steps), table);
    if !group.filters.is_empty() || !group.steps.is_empty() || group.items.len() != 1 {
        return group;
    }
    match group.items.pop() {
        Some(Item::Derived(derived)) => existence_of_derived(*derived, table),
        Some(Item::Group(inner)) => existence(*inner, table),
        Some(Item::Union(branches)) => {
            let branches = branches.into_iter().map(|it| existence(it, table));
            Group::of(Item::Union(branches.collect()))
        }
        item => {
            group.items.extend(item);
            group
        }
    }
}

fn existence_of_derived(derived: Derived, table: &VariableTable) -> Group {
    match &derived.modifier {
        Modifier::Project(_) | Modifier::Distinct | Modifier::Order(_) => {
            existence(derived.inner, table)
        }
        Modifier::Aggregate { keys, .. } => match keys.is_empty() {
            true => Group::default(),
            false => existence(derived.inner, table),
        },
        Modifier::Slice { offset, limit, .. } => match (offset, limit) {
            (_, Some(0)) => Group::of(Item::Derived(Box::new(derived))),
            (0, _) => existence(derived.inner, table),
            _ => {
                let inner = in_any_order(derived.inner);
                Group::of(Item::Derived(Box::new(Derived { inner, ..derived })))
            }
        },
    }
}

/// The group with as many solutions, whose order nobody asks for.
fn in_any_order(mut group: Group) -> Group {
    if group.only_derived().is_none() {
        return group;
    }
    match group.items.pop() {
        Some(Item::Derived(derived)) => match &derived.modifier {
            Modifier::Order(_) => in_any_order(derived.inner),
            Modifier::Project(_) | Modifier::Distinct => {
                let inner = in_any_order(derived.inner);
                Group::of(Item::Derived(Box::new(Derived { inner, ..*derived })))
            }
            Modifier::Aggregate { .. } | Modifier::Slice { .. } => {
                group.items.push(Item::Derived(derived));
                group
            }
        },
        item => {
            group.items.extend(item);
            group
        }
    }
}

/// The steps without those that keep every solution and bind nothing that a later one reads.
fn dropping_steps(steps: Vec<Step>, table: &VariableTable) -> Vec<Step> {
    let mut read = VarSet::default();
    let mut kept = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        let may_drop = match step.kind {
            StepKind::Filter(_)
            | StepKind::Exists { .. }
            | StepKind::Minus { .. }
            | StepKind::Lateral { .. } => true,
            StepKind::Bind { .. }
            | StepKind::Optional { .. }
            | StepKind::OptionalIf { .. }
            | StepKind::Mark { .. } => false,
        };
        if may_drop || step.introduces.intersects(&read) {
            read.extend(&step.mentioned(table));
            kept.push(step);
        }
    }
    kept.reverse();
    kept
}
