//! The builder of groups, with the rules for moving filters and items.
//!
//! A filter sinks below every step that binds none of its variables. A group joins another one item
//! by item when its steps cannot see the difference; a step sees it when the other group may bind a
//! variable that the step *touches*: one it mentions that was not surely bound before it. A step
//! whose expression gives another value each time sees it always: it has one value for each
//! solution of its own group, not of the join.

use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::expression::{conjuncts, is_volatile, variables};
use super::{
    Derived, Group, Item, Quad, Scope, Step, StepKind, Substituted, VarSet, VariableTable,
};
use crate::algebra::Var;

impl Group {
    /// The group of one item.
    pub(crate) fn of(item: Item) -> Self {
        let (visible, certain) = (item.visible(), item.certain());
        Self {
            items: vec![item],
            visible,
            items_certain: certain.clone(),
            certain,
            ..Self::default()
        }
    }

    /// Whether it is the join of nothing: one solution that binds nothing.
    pub(crate) fn is_unit(&self) -> bool {
        self.items.is_empty() && self.filters.is_empty() && self.steps.is_empty()
    }

    /// Whether it is the join of its items and nothing more.
    pub(crate) fn is_join_of_items(&self) -> bool {
        self.filters.is_empty() && self.steps.is_empty() && self.outer.is_empty()
    }

    /// Whether every solution has a quad or the name of one of these graphs, so that the graph is
    /// there, and a variable for it is bound to its name.
    pub(crate) fn reads(&self, scope: &Scope) -> bool {
        self.items.iter().any(|item| match item {
            Item::Quad(quad) => quad.scope == *scope,
            Item::Union(branches) => branches.iter().all(|branch| branch.reads(scope)),
            Item::Group(group) => group.reads(scope),
            Item::Graphs(graphs) => graphs == scope,
            // Each of its solutions comes of one inside, unless it is the count of none.
            Item::Derived(derived) => {
                let carries = |var| derived.certain.contains(var);
                scope.variable().is_some_and(carries) && derived.inner.reads(scope)
            }
            // A path may have length zero.
            Item::Path(_)
            | Item::Values(_)
            | Item::Service(_)
            | Item::Mapped(_)
            | Item::Search(_)
            | Item::Algorithm(_)
            | Item::Weights(_)
            | Item::Seed(_) => false,
        })
    }

    /// The groups that are joined as they are, one level down: those of its items, not of its
    /// steps, and no subqueries.
    pub(crate) fn inner_groups(&self) -> impl Iterator<Item = &Self> {
        self.items.iter().flat_map(Item::groups)
    }

    /// The join of some items.
    pub(crate) fn join_of(items: &[Item]) -> Self {
        let mut group = Self::default();
        for item in items {
            group.push(item.clone());
        }
        group
    }

    /// Whether it has patterns, conditions on them, and nothing else.
    pub(crate) fn is_patterns_only(&self) -> bool {
        !self.items.is_empty()
            && self.steps.is_empty()
            && self.items.iter().all(|item| matches!(item, Item::Quad(_)))
    }

    /// The pattern that it consists of, if it is nothing else.
    pub(crate) fn bare_quad(&self) -> Option<&Quad> {
        match self.items.as_slice() {
            [Item::Quad(quad)] if self.filters.is_empty() && self.steps.is_empty() => {
                Some(quad).filter(|quad| !quad.is_impossible())
            }
            _ => None,
        }
    }

    /// The patterns that it consists of, if it is nothing else.
    pub(crate) fn bare_quads(&self) -> Option<Vec<&Quad>> {
        let is_bare = self.filters.is_empty() && self.steps.is_empty();
        let quads = self.items.iter().map(|item| match item {
            Item::Quad(quad) if is_bare && !quad.is_impossible() => Some(quad),
            _ => None,
        });
        quads.collect()
    }

    /// Whether no solution comes twice: it is a join of patterns, less what filters drop.
    pub(crate) fn is_set(&self) -> bool {
        let drops =
            |step: &Step| matches!(step.kind, StepKind::Filter(_) | StepKind::Exists { .. });
        self.items.iter().all(|item| matches!(item, Item::Quad(_)))
            && self.steps.iter().all(drops)
            && self.outer.is_empty()
    }

    /// The derived item that it consists of.
    pub(crate) fn only_derived(&self) -> Option<&Derived> {
        match self.items.as_slice() {
            [Item::Derived(derived)] if self.filters.is_empty() && self.steps.is_empty() => {
                Some(derived)
            }
            _ => None,
        }
    }

    /// Adds an item to the join.
    pub(crate) fn push(&mut self, item: Item) {
        let (visible, certain) = (item.visible(), item.certain());
        self.items.push(item);
        self.visible.extend(&visible);
        self.items_certain.extend(&certain);
        self.certain.extend(&certain);
    }

    /// `Join(self, other)`.
    pub(crate) fn join(self, other: Self, table: &VariableTable) -> Self {
        if self.is_unit() {
            return other.with_outer(&self.outer);
        }
        if other.is_unit() {
            return self.with_outer(&other.outer);
        }
        let mut left = if self.conflicts_with(&other, table) {
            self.nested()
        } else {
            self
        };
        let right = if other.conflicts_with(&left, table) {
            other.nested()
        } else {
            other
        };
        left.items.extend(right.items);
        left.filters.extend(right.filters);
        left.steps.extend(right.steps);
        left.visible.extend(&right.visible);
        left.certain.extend(&right.certain);
        left.items_certain.extend(&right.items_certain);
        left.outer.extend(&right.outer);
        left
    }

    /// `Join(self, other)` of two items that stay what they are.
    pub(crate) fn beside(self, other: Self) -> Self {
        let outer = self.outer.union(&other.outer);
        let mut both = self.nested();
        for item in other.nested().items {
            both.push(item);
        }
        both.with_outer(&outer)
    }

    fn with_outer(mut self, outer: &VarSet) -> Self {
        self.outer.extend(outer);
        self
    }

    /// Whether items of `other` below the steps of this group would change its meaning.
    pub(super) fn conflicts_with(&self, other: &Self, table: &VariableTable) -> bool {
        let touched = |set: &VarSet| set.intersects(&other.visible);
        self.is_volatile()
            || self.steps.iter().any(|step| touched(&step.touches))
            || self
                .filters
                .iter()
                .any(|filter| touched(&variables(filter, table).difference(&self.items_certain)))
    }

    /// Whether a step gives each solution another value each time, so that it matters how many
    /// solutions come to it.
    pub(crate) fn is_volatile(&self) -> bool {
        self.steps.iter().any(|step| match &step.kind {
            StepKind::Bind { expression, .. } => is_volatile(expression),
            StepKind::Filter(condition) => is_volatile(condition),
            StepKind::Optional { filters, .. } | StepKind::Exists { filters, .. } => {
                filters.iter().any(is_volatile)
            }
            StepKind::OptionalIf { conditions, .. } => conditions.is_volatile(),
            StepKind::Lateral { group, .. } => !group.is_steady(),
            StepKind::Minus { .. } | StepKind::Mark { .. } => false,
        })
    }

    /// The group as the only item of a new one.
    pub(crate) fn nested(self) -> Self {
        if self.filters.is_empty() && self.steps.is_empty() && self.items.len() == 1 {
            return self;
        }
        let outer = self.outer.clone();
        Self::of(Item::Group(Box::new(self))).with_outer(&outer)
    }

    /// `LeftJoin(self, right, expression)`.
    ///
    /// Optional parts inside the optional part follow as guarded steps of their own where
    /// that means the same: each mentions only variables of this group that the part around
    /// it surely binds, and that part binds something to tell by whether it matched.
    /// That cannot be an `outer` variable, which a row around an `EXISTS` has bound before.
    pub(crate) fn left_join(
        &mut self,
        mut right: Self,
        filters: Vec<Expression>,
        outer: &VarSet,
        table: &mut VariableTable,
    ) {
        if right.is_unit() {
            return;
        }
        let Some(evidence) = self.evidence_of(&right, &filters, outer, table) else {
            self.push_optional(right, filters, None, table);
            return;
        };
        let steps = std::mem::take(&mut right.steps);
        right.visible = items_visible(&right.items);
        right.certain = right.items_certain.clone();
        self.push_optional(right, filters, None, table);
        for step in steps {
            if let StepKind::Optional { group, filters, .. } = step.kind {
                let guard = self.guard(&evidence, &group, table);
                self.push_optional(group, filters, Some(guard), table);
            }
        }
    }

    /// A variable that is bound where the part around matched, and that `inner` cannot bind: it
    /// would then look bound also where nothing matched.
    fn guard(&mut self, evidence: &VarSet, inner: &Self, table: &mut VariableTable) -> Var {
        if let Some(var) = evidence.difference(&inner.visible).iter().next() {
            return var;
        }
        let guard = table.fresh("matched");
        if let Some(var) = evidence.iter().next() {
            let name = |var| Variable::new_unchecked(table.name(var).as_ref());
            let matched = Expression::If(
                Box::new(Expression::Bound(name(var))),
                Box::new(Expression::Literal(true.into())),
                // Without arguments, an error: unbound.
                Box::new(Expression::Coalesce(Vec::new())),
            );
            self.bind(guard, matched, table);
        }
        guard
    }

    /// The variables that tell whether `right` matched, if its optional parts may be taken out.
    fn evidence_of(
        &self,
        right: &Self,
        filters: &[Expression],
        outer: &VarSet,
        table: &VariableTable,
    ) -> Option<VarSet> {
        if right.steps.is_empty() {
            return None;
        }
        let around = &right.items_certain;
        let only_optional = right.steps.iter().all(|step| match &step.kind {
            StepKind::Optional {
                group,
                filters,
                guard: None,
            } => {
                let mut seen = group.visible.union(&group.outer);
                for filter in filters {
                    seen.extend(&variables(filter, table));
                }
                seen.intersection(&self.visible).is_subset(around)
            }
            _ => false,
        });
        let introduced = right.visible.difference(&items_visible(&right.items));
        let filters_see_it = filters
            .iter()
            .any(|filter| variables(filter, table).intersects(&introduced));
        if !only_optional || filters_see_it {
            return None;
        }
        let evidence = around.difference(&self.visible).difference(outer);
        (!evidence.is_empty()).then_some(evidence)
    }

    /// `LeftJoin(self, group, filters)` as one step.
    pub(crate) fn push_optional(
        &mut self,
        group: Self,
        filters: Vec<Expression>,
        guard: Option<Var>,
        table: &VariableTable,
    ) {
        let mut mentioned = group.visible.union(&group.outer);
        for filter in &filters {
            mentioned.extend(&variables(filter, table));
        }
        if let Some(guard) = guard {
            mentioned.insert(guard);
        }
        let introduces = group.visible.difference(&self.certain);
        let touches = mentioned.difference(&self.certain);
        self.visible.extend(&group.visible);
        self.outer.extend(&group.outer);
        self.outer.extend(&mentioned.difference(&self.visible));
        self.steps.push(Step {
            kind: StepKind::Optional {
                group,
                filters,
                guard,
            },
            introduces,
            touches,
        });
    }

    /// `LeftJoin(self, group, conditions)` where the conditions are steps on the joined solutions.
    pub(crate) fn optional_if(&mut self, group: Self, conditions: Self, table: &VariableTable) {
        self.outer.extend(&group.outer.union(&conditions.outer));
        let (introduced, certain) = (group.visible.clone(), &self.certain);
        let mut step = Step {
            introduces: introduced.difference(certain),
            touches: VarSet::default(),
            kind: StepKind::OptionalIf { group, conditions },
        };
        step.touches = step.mentioned(table).difference(certain);
        self.visible.extend(&introduced);
        self.steps.push(step);
    }

    /// `Minus(self, right)`. Without a common variable nothing is removed; the name of a `GRAPH`
    /// around both must agree, and is not among them. `outer` variables may be bound by a row
    /// around.
    pub(crate) fn minus(&mut self, right: Self, graph: Option<Var>, outer: &VarSet) {
        let name = VarSet::of(graph);
        let shared = self.visible.intersection(&right.visible);
        let own = shared.difference(&name);
        if own.is_empty() {
            return;
        }
        // With a common variable that both always bind, it matters not what else is counted.
        let always_meets = own.intersects(&self.certain.intersection(&right.certain));
        let substituted = match graph {
            Some(variable) if !always_meets && shared.contains(variable) => vec![Substituted {
                variable,
                witness: None,
            }],
            _ => Vec::new(),
        };
        let touches = right.visible.union(&right.outer).difference(&self.certain);
        self.outer.extend(&right.outer);
        let of_row = right.visible.intersection(outer);
        self.outer.extend(&of_row.difference(&self.visible));
        self.steps.push(Step {
            kind: StepKind::Minus {
                group: right,
                substituted,
            },
            introduces: VarSet::default(),
            touches,
        });
    }

    /// `Extend(self, variable, expression)`.
    pub(crate) fn bind(&mut self, variable: Var, expression: Expression, table: &VariableTable) {
        self.bind_as(variable, expression, false, table);
    }

    /// `Extend(self, variable, expression)` where the expression has a value for every solution.
    pub(crate) fn bind_surely(
        &mut self,
        variable: Var,
        expression: Expression,
        table: &VariableTable,
    ) {
        self.bind_as(variable, expression, true, table);
        self.certain.insert(variable);
    }

    fn bind_as(
        &mut self,
        variable: Var,
        expression: Expression,
        is_certain: bool,
        table: &VariableTable,
    ) {
        let seen = variables(&expression, table);
        self.outer.extend(&seen.difference(&self.visible));
        let mut touches = seen.difference(&self.certain);
        touches.insert(variable);
        self.visible.insert(variable);
        self.steps.push(Step {
            kind: StepKind::Bind {
                variable,
                expression,
                is_certain,
            },
            introduces: VarSet::of([variable]),
            touches,
        });
    }

    /// A step that fills `variable` with whether `group` has a solution.
    pub(crate) fn mark(&mut self, variable: Var, group: Self) {
        let seen = group.visible.union(&group.outer);
        let mut touches = seen.difference(&self.certain);
        touches.insert(variable);
        self.outer.extend(&seen.difference(&self.visible));
        self.visible.insert(variable);
        self.certain.insert(variable);
        self.steps.push(Step {
            kind: StepKind::Mark { variable, group },
            introduces: VarSet::of([variable]),
            touches,
        });
    }

    /// `Filter(EXISTS { group }, self)` or its negation.
    pub(crate) fn exists(&mut self, group: Self, is_negated: bool) {
        let seen = group.visible.union(&group.outer);
        let touches = seen.difference(&self.certain);
        // What it shares with a pattern further out, it depends on.
        self.outer.extend(&seen.difference(&self.visible));
        self.insert_low(
            StepKind::Exists {
                group,
                filters: Vec::new(),
                is_negated,
            },
            &seen,
            touches,
        );
    }

    /// `Filter(expression, self)` for an expression without `EXISTS`. `outer` variables may be
    /// bound by a row around.
    pub(crate) fn filter(&mut self, expression: Expression, outer: &VarSet, table: &VariableTable) {
        for condition in conjuncts(expression) {
            if self.turn_into_anti_join(&condition, outer, table) {
                continue;
            }
            self.turn_into_joins(&condition, outer, table);
            let seen = variables(&condition, table);
            self.outer.extend(&seen.difference(&self.visible));
            let touches = seen.difference(&self.certain);
            if is_volatile(&condition) {
                self.filter_last(condition, table);
                continue;
            }
            if self.sink_position(&seen) == 0 {
                if !self.push_into_members(&condition, outer, table) {
                    self.filters.push(condition);
                }
            } else {
                self.insert_low(StepKind::Filter(condition), &seen, touches);
            }
        }
    }

    /// `Filter(expression, self)`, after all steps.
    pub(crate) fn filter_last(&mut self, condition: Expression, table: &VariableTable) {
        let seen = variables(&condition, table);
        self.outer.extend(&seen.difference(&self.visible));
        let touches = seen.difference(&self.certain);
        self.steps.push(Step {
            kind: StepKind::Filter(condition),
            introduces: VarSet::default(),
            touches,
        });
    }

    /// The lowest step before which something that sees these variables may stand.
    fn sink_position(&self, seen: &VarSet) -> usize {
        self.steps
            .iter()
            .rposition(|step| step.introduces.intersects(seen))
            .map_or(0, |last| last + 1)
    }

    fn insert_low(&mut self, kind: StepKind, seen: &VarSet, touches: VarSet) {
        let at = self.sink_position(seen);
        self.steps.insert(
            at,
            Step {
                kind,
                introduces: VarSet::default(),
                touches,
            },
        );
    }

    /// `OPTIONAL { .. ?v .. } FILTER(!bound(?v))` keeps the solutions without a match.
    fn turn_into_anti_join(
        &mut self,
        condition: &Expression,
        outer: &VarSet,
        table: &VariableTable,
    ) -> bool {
        let Expression::Not(inner) = condition else {
            return false;
        };
        let Expression::Bound(variable) = inner.as_ref() else {
            return false;
        };
        let Some(var) = table.get(variable.as_str()) else {
            return false;
        };
        let mut binders = self
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.introduces.contains(var));
        let (Some((at, step)), None) = (binders.next(), binders.next()) else {
            return false;
        };
        let StepKind::Optional {
            group, guard: None, ..
        } = &step.kind
        else {
            return false;
        };
        let new = &step.introduces;
        let bound_below = items_visible(&self.items).contains(var);
        let used_later = self.steps[at + 1..]
            .iter()
            .any(|later| later.touches.intersects(new));
        if !group.certain.contains(var) || bound_below || used_later || outer.contains(var) {
            return false;
        }
        let step = self.steps.remove(at);
        if let StepKind::Optional { group, filters, .. } = step.kind {
            self.steps.insert(
                at,
                Step {
                    kind: StepKind::Exists {
                        group,
                        filters,
                        is_negated: true,
                    },
                    introduces: VarSet::default(),
                    touches: step.touches,
                },
            );
        }
        true
    }
}

pub(crate) fn items_visible(items: &[Item]) -> VarSet {
    let mut visible = VarSet::default();
    for item in items {
        visible.extend(&item.visible());
    }
    visible
}
