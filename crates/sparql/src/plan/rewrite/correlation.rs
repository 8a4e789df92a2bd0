//! Correlation: a pattern is made dependent on outer rows, as the substitution of `EXISTS` is.
//!
//! Substitution replaces the outer variables by the outer row's terms everywhere in the pattern,
//! also where SPARQL's bottom-up evaluation would not see them: in a filter of a nested group, on
//! the right side of an `OPTIONAL`. For all rows at once that means: every nested group is joined
//! to the numbered outer rows, and since the number is among the shared variables, the parts find
//! together again row by row. Subqueries of `EXISTS` are left alone: only what they project is
//! shared. Those of `LATERAL` that choose or count among solutions do that for each row
//! ([`Reach`]): the number is a key of their groups, and limits count by it.
//!
//! One operator tells a variable from the term in its place: `MINUS` asks whether both sides bind a
//! common variable. What the rows replaced, and their number, are not among those
//! ([`Substituted`]). In `LATERAL`, where rows are put beside patterns and replace nothing
//! (SEP-0006), those that both sides mention are.

use crate::algebra::expression::variables;
use crate::algebra::{
    Derived, Group, Item, Modifier, Seed, Step, StepKind, Substituted, Var, VarSet, VariableTable,
};

/// How far rows from outside reach.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) enum Reach {
    /// To patterns: `EXISTS`.
    Patterns,
    /// Into subqueries too: `LATERAL`. The variable of the number of a row.
    Subqueries(Var),
}

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
            // A common variable that is always there makes the domains meet whatever else is
            // counted.
            let always_meets = own.intersects(&group.items_certain.intersection(&right.certain));
            (shared.intersects(outer) && !always_meets) || depends_on(right, outer, table)
        }
        // Their patterns see the row that is there, outer values included.
        StepKind::Exists { .. } | StepKind::Mark { .. } => false,
        StepKind::Lateral { group: right, .. } => {
            right.visible.union(&right.outer).intersects(outer) || depends_on(right, outer, table)
        }
        StepKind::Bind { .. } | StepKind::Filter(_) => false,
    }
}

/// Whether a `MINUS` would see which variables were replaced.
pub(in crate::plan) fn has_minus(group: &Group) -> bool {
    let in_subquery = |item: &Item| match item {
        Item::Derived(derived) => has_minus(&derived.inner),
        _ => false,
    };
    group.inner_groups().any(has_minus)
        || group.items.iter().any(in_subquery)
        || group.steps.iter().any(|step| match &step.kind {
            StepKind::Minus { .. } => true,
            StepKind::Optional { group, .. } | StepKind::OptionalIf { group, .. } => {
                has_minus(group)
            }
            StepKind::Exists { .. } | StepKind::Mark { .. } | StepKind::Lateral { .. } => false,
            StepKind::Bind { .. } | StepKind::Filter(_) => false,
        })
}

/// The group with every part of it joined to the seed.
pub(in crate::plan) fn correlated(group: &Group, seed: &Seed, reach: Reach) -> Group {
    // A subquery alone in its group brings the rows along, in its order.
    let alone = match (group.items.as_slice(), reach) {
        ([Item::Derived(derived)], Reach::Subqueries(row)) if takes_rows(derived) => {
            Some(correlated_subquery(derived, seed, row))
        }
        _ => None,
    };
    let mut seeded = match alone {
        Some(derived) => Group::of(Item::Derived(Box::new(derived))),
        None => {
            let mut seeded = Group::of(Item::Seed(seed.clone()));
            for item in &group.items {
                seeded.push(correlated_item(item, seed, reach));
            }
            seeded
        }
    };
    seeded.filters.clone_from(&group.filters);
    let mut before = VarSet::default();
    for item in &group.items {
        before.extend(&item.visible());
    }
    for step in &group.steps {
        seeded
            .steps
            .push(correlated_step(step, seed, reach, &before));
        before.extend(&step.introduces);
    }
    seeded.visible.extend(&group.visible);
    seeded.certain.extend(&group.certain);
    seeded.outer.clone_from(&group.outer);
    seeded
}

fn correlated_item(item: &Item, seed: &Seed, reach: Reach) -> Item {
    match (item, reach) {
        (Item::Union(branches), _) => {
            let branches = branches.iter().map(|it| correlated(it, seed, reach));
            Item::Union(branches.collect())
        }
        (Item::Group(inner), _) => Item::Group(Box::new(correlated(inner, seed, reach))),
        (Item::Derived(derived), Reach::Subqueries(row)) if takes_rows(derived) => {
            Item::Derived(Box::new(correlated_subquery(derived, seed, row)))
        }
        (other, _) => other.clone(),
    }
}

/// Whether rows can go into a subquery. An aggregation of everything has a solution where there is
/// none to aggregate, and shares nothing with rows: what is around it, in the same subquery, may.
fn takes_rows(derived: &Derived) -> bool {
    match &derived.modifier {
        Modifier::Aggregate { keys, .. } => !keys.is_empty(),
        Modifier::Project(_) | Modifier::Distinct | Modifier::Order(_) | Modifier::Slice { .. } => {
            true
        }
    }
}

/// A subquery for each row of the seed.
fn correlated_subquery(derived: &Derived, seed: &Seed, row: Var) -> Derived {
    let inner = correlated(&derived.inner, seed, Reach::Subqueries(row));
    let mut modifier = derived.modifier.clone();
    let mut added = seed.visible.intersection(&inner.visible);
    match &mut modifier {
        Modifier::Project(projected) => {
            for var in added.iter() {
                if !projected.contains(&var) {
                    projected.push(var);
                }
            }
        }
        Modifier::Slice { of_each, .. } => of_each.push(row),
        Modifier::Aggregate { keys, .. } => {
            keys.push(row);
            added = VarSet::of([row]);
        }
        Modifier::Distinct | Modifier::Order(_) => {}
    }
    Derived {
        visible: derived.visible.union(&added),
        certain: derived.certain.union(&added.intersection(&inner.certain)),
        inner,
        modifier,
    }
}

/// `before`: the variables that what stands before the step mentions.
fn correlated_step(step: &Step, seed: &Seed, reach: Reach, before: &VarSet) -> Step {
    let kind = match &step.kind {
        StepKind::Optional {
            group,
            filters,
            guard,
        } => StepKind::Optional {
            group: correlated(group, seed, reach),
            filters: filters.clone(),
            guard: *guard,
        },
        // The conditions are steps on rows that the seed has reached already.
        StepKind::OptionalIf { group, conditions } => StepKind::OptionalIf {
            group: correlated(group, seed, reach),
            conditions: conditions.clone(),
        },
        StepKind::Minus { group, substituted } => {
            let mut all: Vec<Substituted> = substituted.clone();
            let is_own = |var| match reach {
                Reach::Patterns => false,
                Reach::Subqueries(_) => before.contains(var) && group.visible.contains(var),
            };
            all.extend(seed.substituted.iter().filter(|it| !is_own(it.variable)));
            StepKind::Minus {
                group: correlated(group, seed, reach),
                substituted: all,
            }
        }
        // What stands in these sees the row, with all that it has.
        StepKind::Exists { .. }
        | StepKind::Lateral { .. }
        | StepKind::Mark { .. }
        | StepKind::Bind { .. }
        | StepKind::Filter(_) => step.kind.clone(),
    };
    Step {
        kind,
        introduces: step.introduces.clone(),
        touches: step.touches.clone(),
    }
}
