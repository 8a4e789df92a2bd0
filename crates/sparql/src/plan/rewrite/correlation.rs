//! Making a pattern depend on the rows around it, as the substitution of `EXISTS` does.
//!
//! Substitution replaces the outer variables by the outer row's terms everywhere in the pattern,
//! also where SPARQL's bottom-up evaluation would not see them: in a filter of a nested group, on the
//! right side of an `OPTIONAL`. For all rows at once that means: every nested group is joined to
//! the numbered outer rows, and since the number is among the shared variables, the parts
//! find together again row by row. Subqueries are left alone: only what they project is shared.
//!
//! One operator tells a variable from the term in its place: `MINUS` asks whether both sides bind a common
//! variable. What the rows replaced, and their number, are not among those ([`Substituted`]).

use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Seed, Step, StepKind, Substituted, VarSet, VariableTable};

/// Whether knowing the outer row changes what a group does inside, beyond joining with it.
pub(in crate::plan) fn depends_on(group: &Group, outer: &VarSet, table: &VariableTable) -> bool {
    if group.outer.intersects(outer) {
        return true;
    }
    let loose_filter = group.filters.iter().any(|filter| {
        variables(filter, table)
            .difference(&group.items_certain)
            .intersects(outer)
    });
    loose_filter
        || group
            .steps
            .iter()
            .any(|step| step_depends_on(step, group, outer, table))
        || group
            .inner_groups()
            .any(|inner| depends_on(inner, outer, table))
}

fn step_depends_on(step: &Step, group: &Group, outer: &VarSet, table: &VariableTable) -> bool {
    if step.touches.intersects(outer) {
        return true;
    }
    match &step.kind {
        StepKind::Optional { group: right, .. } | StepKind::OptionalIf { group: right, .. } => {
            depends_on(right, outer, table)
        }
        StepKind::Minus { group: right, .. } => {
            let shared = group.visible.intersection(&right.visible);
            let own = shared.difference(outer);
            // A common variable that is always there makes the domains meet whatever else is counted.
            let always_meets = own.intersects(&group.items_certain.intersection(&right.certain));
            (shared.intersects(outer) && !always_meets) || depends_on(right, outer, table)
        }
        // Their patterns see the row that is there, outer values included.
        StepKind::Exists { .. } | StepKind::Mark { .. } => false,
        StepKind::Bind { .. } | StepKind::Filter(_) => false,
    }
}

/// Whether a `MINUS` would see which variables were replaced.
pub(in crate::plan) fn has_minus(group: &Group) -> bool {
    group.inner_groups().any(has_minus)
        || group.steps.iter().any(|step| match &step.kind {
            StepKind::Minus { .. } => true,
            StepKind::Optional { group, .. } | StepKind::OptionalIf { group, .. } => {
                has_minus(group)
            }
            StepKind::Exists { .. } | StepKind::Mark { .. } => false,
            StepKind::Bind { .. } | StepKind::Filter(_) => false,
        })
}

/// The group with every part of it joined to the seed.
pub(in crate::plan) fn correlated(group: &Group, seed: &Seed) -> Group {
    let mut seeded = Group::of(Item::Seed(seed.clone()));
    for item in &group.items {
        seeded.push(match item {
            Item::Union(branches) => {
                Item::Union(branches.iter().map(|b| correlated(b, seed)).collect())
            }
            Item::Group(inner) => Item::Group(Box::new(correlated(inner, seed))),
            other => other.clone(),
        });
    }
    seeded.filters.clone_from(&group.filters);
    seeded.steps = group
        .steps
        .iter()
        .map(|step| correlated_step(step, seed))
        .collect();
    seeded.visible.extend(&group.visible);
    seeded.certain.extend(&group.certain);
    seeded.outer.clone_from(&group.outer);
    seeded
}

fn correlated_step(step: &Step, seed: &Seed) -> Step {
    let kind = match &step.kind {
        StepKind::Optional {
            group,
            filters,
            guard,
        } => StepKind::Optional {
            group: correlated(group, seed),
            filters: filters.clone(),
            guard: *guard,
        },
        // The conditions are steps on rows that the seed has reached already.
        StepKind::OptionalIf { group, conditions } => StepKind::OptionalIf {
            group: correlated(group, seed),
            conditions: conditions.clone(),
        },
        StepKind::Minus { group, substituted } => {
            let mut all: Vec<Substituted> = substituted.clone();
            all.extend(&seed.substituted);
            StepKind::Minus {
                group: correlated(group, seed),
                substituted: all,
            }
        }
        StepKind::Exists {
            group,
            filters,
            is_negated,
        } => StepKind::Exists {
            group: group.clone(),
            filters: filters.clone(),
            is_negated: *is_negated,
        },
        StepKind::Mark { variable, group } => StepKind::Mark {
            variable: *variable,
            group: group.clone(),
        },
        StepKind::Bind {
            variable,
            expression,
            is_certain,
        } => StepKind::Bind {
            variable: *variable,
            expression: expression.clone(),
            is_certain: *is_certain,
        },
        StepKind::Filter(expression) => StepKind::Filter(expression.clone()),
    };
    Step {
        kind,
        introduces: step.introduces.clone(),
        touches: step.touches.clone(),
    }
}
