//! Making a pattern depend on the rows around it, as the substitution of `EXISTS` does.
//!
//! Substitution replaces the outer variables by the outer row's terms everywhere in the pattern,
//! also where SPARQL's bottom-up evaluation would not see them: in a filter of a nested group, on the
//! right side of an `OPTIONAL`. For all rows at once that means: every nested group is joined to
//! the numbered outer rows, and since the number is among the shared variables, the parts
//! find together again row by row. Subqueries are left alone: only what they project is shared.

use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Seed, Step, StepKind, VarSet, VariableTable};

/// Whether knowing the outer row changes what a group does inside, beyond joining with it.
pub(super) fn depends_on(group: &Group, outer: &VarSet, table: &VariableTable) -> bool {
    if group.outer.intersects(outer) {
        return true;
    }
    let loose_filter = group.filters.iter().any(|filter| {
        variables(filter, table)
            .difference(&group.items_certain)
            .intersects(outer)
    });
    let loose_step = group
        .steps
        .iter()
        .any(|step| step.touches.intersects(outer));
    loose_filter
        || loose_step
        || group.items.iter().any(|item| match item {
            Item::Union(branches) => branches.iter().any(|b| depends_on(b, outer, table)),
            Item::Group(inner) => depends_on(inner, outer, table),
            Item::Quad(_)
            | Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Seed(_)
            | Item::Service(_)
            | Item::Derived(_) => false,
        })
}

/// The group with every part of it joined to the seed.
pub(super) fn correlated(group: &Group, seed: &Seed) -> Group {
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
        StepKind::Minus(group) => StepKind::Minus(correlated(group, seed)),
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
