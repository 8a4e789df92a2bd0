//! The analysis of `LATERAL`: whether its group depends on the outer row, or is a plain join.
//!
//! A pattern does not: what the row binds, it would only drop. What looks at a variable before it
//! is bound inside does (a filter, `BIND`, `OPTIONAL`, `MINUS`), and so does what counts or chooses
//! among solutions (`LIMIT`, `GROUP BY` without the variable). What a subquery does not project is
//! another variable of the same name, so that it sees nothing of the row.

use super::expression::{is_volatile, variables};
use super::{Derived, Group, Item, Modifier, Step, StepKind, VarSet, VariableTable};

impl Group {
    /// `Lateral(self, right)` as a step.
    pub(crate) fn lateral(&mut self, right: Self) {
        self.push_lateral(right, false);
    }

    /// `Join(self, right)` where what is on the right is to be computed for the solutions that are
    /// there, and not as a whole.
    pub(crate) fn for_each_of_rows(&mut self, right: Self) {
        self.push_lateral(right, true);
    }

    fn push_lateral(&mut self, right: Self, starts_from_rows: bool) {
        let seen = right.visible.union(&right.outer);
        let step = Step {
            introduces: right.visible.difference(&self.certain),
            touches: seen.difference(&self.certain),
            kind: StepKind::Lateral {
                group: right,
                starts_from_rows,
            },
        };
        self.outer.extend(&seen.difference(&self.visible));
        if let StepKind::Lateral { group, .. } = &step.kind {
            self.visible.extend(&group.visible);
            self.certain.extend(&group.certain);
        }
        self.steps.push(step);
    }

    /// Whether nothing in it gives another value each time.
    pub(crate) fn is_steady(&self) -> bool {
        let of_step = |step: &Step| match &step.kind {
            StepKind::Optional { group, .. }
            | StepKind::Exists { group, .. }
            | StepKind::Minus { group, .. }
            | StepKind::Lateral { group, .. }
            | StepKind::Mark { group, .. } => group.is_steady(),
            StepKind::OptionalIf { group, conditions } => {
                group.is_steady() && conditions.is_steady()
            }
            StepKind::Bind { .. } | StepKind::Filter(_) => true,
        };
        !self.is_volatile()
            && !self.filters.iter().any(is_volatile)
            && self.items.iter().all(is_steady_item)
            && self.steps.iter().all(of_step)
    }
}

fn is_steady_modifier(modifier: &Modifier) -> bool {
    match modifier {
        Modifier::Order(keys) => !keys.iter().any(|key| is_volatile(&key.expression)),
        Modifier::Project(_)
        | Modifier::Distinct
        | Modifier::Slice { .. }
        | Modifier::Aggregate { .. } => true,
    }
}

/// Whether a group has other solutions for a row with these variables than those of its own that
/// join with the row.
pub(crate) fn depends_on_row(group: &Group, row: &VarSet, table: &VariableTable) -> bool {
    group.outer.intersects(row)
        || group.filters.iter().any(|filter| {
            variables(filter, table)
                .difference(&group.items_certain)
                .intersects(row)
        })
        || group
            .items
            .iter()
            .any(|item| item_depends(item, row, table))
        || group
            .steps
            .iter()
            .any(|step| step_depends(step, row, table))
}

fn item_depends(item: &Item, row: &VarSet, table: &VariableTable) -> bool {
    match item {
        Item::Derived(derived) => derived_depends(derived, row, table),
        other => {
            let mut groups = other.groups().iter();
            groups.any(|group| depends_on_row(group, row, table))
        }
    }
}

fn step_depends(step: &Step, row: &VarSet, table: &VariableTable) -> bool {
    step.touches.intersects(row)
        || match &step.kind {
            StepKind::Optional { group, .. }
            | StepKind::OptionalIf { group, .. }
            | StepKind::Minus { group, .. } => depends_on_row(group, row, table),
            // Their patterns see the row that is there.
            StepKind::Exists { .. } | StepKind::Mark { .. } | StepKind::Lateral { .. } => false,
            StepKind::Bind { .. } | StepKind::Filter(_) => false,
        }
}

/// Whether a subquery has other solutions for a row with these variables than those of its own that
/// join with the row.
fn derived_depends(derived: &Derived, row: &VarSet, table: &VariableTable) -> bool {
    let inner = &derived.inner;
    let shared = inner.visible.intersection(row);
    let chooses = match &derived.modifier {
        Modifier::Project(_) | Modifier::Order(_) => false,
        Modifier::Distinct => !shared.is_subset(&inner.certain),
        Modifier::Slice { of_each, .. } => {
            let each = VarSet::of(of_each.iter().copied());
            !shared.is_subset(&each.intersection(&inner.certain))
        }
        Modifier::Aggregate { keys, .. } => {
            let keys = VarSet::of(keys.iter().copied());
            !shared.is_subset(&keys.intersection(&inner.certain))
        }
    };
    chooses || depends_on_row(inner, row, table)
}

/// Whether only what stands at the top of a group looks at the row: its conditions and values,
/// which see the row in the solutions that they are computed of, once the group is joined to the
/// row.
pub(crate) fn sees_row_at_top(group: &Group, row: &VarSet, table: &VariableTable) -> bool {
    let mut items = group.items.iter();
    items.all(|item| is_steady_item(item) && !item_depends(item, row, table))
        && group.steps.iter().all(|step| match &step.kind {
            StepKind::Bind { .. }
            | StepKind::Filter(_)
            | StepKind::Exists { .. }
            | StepKind::Mark { .. }
            | StepKind::Lateral { .. } => true,
            StepKind::Optional { group, .. } => {
                group.is_steady() && !depends_on_row(group, row, table)
            }
            StepKind::OptionalIf { .. } | StepKind::Minus { .. } => false,
        })
}

fn is_steady_item(item: &Item) -> bool {
    match item {
        Item::Derived(derived) => {
            is_steady_modifier(&derived.modifier) && derived.inner.is_steady()
        }
        other => other.groups().iter().all(Group::is_steady),
    }
}

/// Whether another endpoint is asked for something that counts or chooses among solutions, and
/// shares variables with the row.
pub(crate) fn asks_limited(group: &Group, row: &VarSet) -> bool {
    let of_item = |item: &Item| match item {
        Item::Service(service) => !service.is_repeatable && service.visible().intersects(row),
        Item::Derived(derived) => asks_limited(&derived.inner, row),
        other => other.groups().iter().any(|group| asks_limited(group, row)),
    };
    let of_step = |step: &Step| match &step.kind {
        StepKind::Optional { group, .. }
        | StepKind::OptionalIf { group, .. }
        | StepKind::Minus { group, .. } => asks_limited(group, row),
        StepKind::Exists { .. }
        | StepKind::Mark { .. }
        | StepKind::Lateral { .. }
        | StepKind::Bind { .. }
        | StepKind::Filter(_) => false,
    };
    group.items.iter().any(of_item) || group.steps.iter().any(of_step)
}
