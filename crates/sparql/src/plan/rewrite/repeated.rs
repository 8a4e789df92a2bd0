//! The register of repeated subqueries and their plans.

use hashbrown::HashMap;

use super::subquery_text::text_of;
use crate::algebra::{Derived, Group, Item, Modifier, StepKind, Var, VariableTable};
use crate::plan::relation::Relation;

/// The subqueries that a query has more than once.
#[derive(Debug, Default)]
pub(in crate::plan) struct RepeatedSubqueries {
    /// Whether there are several groupings, so that what the planner makes of one may come again
    /// with another.
    pub(super) may_repeat: bool,
    /// Texts that occurred more than once.
    pub(super) texts: HashMap<String, usize>,
    /// What they were planned to, by text and by whether duplicates matter.
    pub(super) planned: HashMap<(String, bool), PlannedSubquery>,
}

#[derive(Debug)]
pub(in crate::plan) enum PlannedSubquery {
    /// The shared relation, and its variables by their numbers in the text.
    Shared(Relation, Vec<Var>),
    /// Too large to be kept.
    Apart,
}

impl RepeatedSubqueries {
    /// Those of a whole query; none unless they are looked for.
    pub(super) fn of(query: &Group, table: &VariableTable, is_looked_for: bool) -> Self {
        let mut found = Self {
            may_repeat: is_looked_for && groupings(query) > 1,
            ..Self::default()
        };
        if found.may_repeat {
            count(query, table, &mut found.texts);
            found.texts.retain(|_, times| *times > 1);
        }
        found
    }
}

/// Whether a subquery groups or removes duplicates, itself or just below a projection.
pub(super) fn removes_rows(derived: &Derived) -> bool {
    match &derived.modifier {
        Modifier::Aggregate { .. } | Modifier::Distinct => true,
        Modifier::Project(_) => derived.inner.items.iter().any(|item| match item {
            Item::Derived(inner) => removes_rows(inner),
            _ => false,
        }),
        Modifier::Order(_) | Modifier::Slice { .. } => false,
    }
}

/// How many groupings a group has, those of groups inside among them.
fn groupings(group: &Group) -> usize {
    let mut found = 0;
    for_each_derived(group, &mut |derived| {
        found += usize::from(matches!(
            derived.modifier,
            Modifier::Aggregate { .. } | Modifier::Distinct
        ));
    });
    found
}

fn count(group: &Group, table: &VariableTable, texts: &mut HashMap<String, usize>) {
    for_each_derived(group, &mut |derived| {
        if removes_rows(derived)
            && let Some((text, _)) = text_of(derived, table)
        {
            *texts.entry(text).or_default() += 1;
        }
    });
}

/// Visits all subqueries, the outer ones first.
fn for_each_derived(group: &Group, visit: &mut dyn FnMut(&Derived)) {
    for item in &group.items {
        match item {
            Item::Derived(derived) => {
                visit(derived);
                for_each_derived(&derived.inner, visit);
            }
            Item::Group(inner) => for_each_derived(inner, visit),
            Item::Union(branches) => branches.iter().for_each(|b| for_each_derived(b, visit)),
            Item::Quad(_)
            | Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Service(_)
            | Item::Mapped(_)
            | Item::Search(_)
            | Item::Algorithm(_)
            | Item::Weights(_)
            | Item::Seed(_) => {}
        }
    }
    for step in &group.steps {
        match &step.kind {
            StepKind::Optional { group, .. }
            | StepKind::OptionalIf { group, .. }
            | StepKind::Minus { group, .. }
            | StepKind::Lateral { group, .. }
            | StepKind::Exists { group, .. }
            | StepKind::Mark { group, .. } => for_each_derived(group, visit),
            StepKind::Bind { .. } | StepKind::Filter(_) => {}
        }
    }
}
