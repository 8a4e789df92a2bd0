//! The pushdown of filters into parts of a group.
//!
//! ```text
//! { A OPTIONAL { B } FILTER(?b > 3) }         { A B FILTER(?b > 3) }                  ?b only of B
//! { { B } UNION { C } A FILTER(?b > 3) }      { { B FILTER(?b > 3) } UNION { C FILTER(?b > 3) } A }
//! ```
//!
//! *An `OPTIONAL` is a join* where a filter after it holds for no row that found no match: of a
//! variable that only the optional part binds, the filter is an error or false without a value. The
//! patterns of the part are then ordered with the others, and the filter's ranges bound what they
//! read (Galindo-Legaria and Rosenthal, "Outerjoin simplification and reordering for query
//! optimization", TODS 1997).
//!
//! *A filter goes into the member of a join* that alone tells whether it holds: the branches of a
//! union, a group, a subquery down through its projection, `DISTINCT` and the keys of its
//! `GROUP BY`. What the member binds surely is the same after the join; what else it may bind, no
//! other member may. A branch that leaves unbound what the filter needs is dropped. Filters on
//! variables of patterns stay where they are: patterns use them by themselves.

use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::expression::{is_volatile, map_children, variables};
use super::group::items_visible;
use super::{Derived, Group, Item, Modifier, Step, StepKind, Var, VarSet, VariableTable};

/// What expressions read that nothing binds.
const UNBOUND: &str = ".unbound";

impl Group {
    /// Makes joins of the `OPTIONAL`s without whose match the condition, which is to be a filter on
    /// this group, never holds. `outer` variables may be bound by a row around.
    pub(super) fn turn_into_joins(
        &mut self,
        condition: &Expression,
        outer: &VarSet,
        table: &VariableTable,
    ) {
        if self.steps.is_empty() {
            return;
        }
        for var in variables(condition, table).iter() {
            if needs(condition, table.name(var)) {
                self.turn_into_join(var, outer, table);
            }
        }
    }

    /// Makes a join of the only step that binds a variable, an `OPTIONAL`, as rows without the
    /// variable are not wanted.
    fn turn_into_join(&mut self, var: Var, outer: &VarSet, table: &VariableTable) {
        if let Some(guard) = self.optional_that_binds(var, outer).and_then(|(_, it)| it) {
            // The part inside of another one matches only where that one does.
            self.turn_into_join(guard, outer, table);
        }
        let Some((at, None)) = self.optional_that_binds(var, outer) else {
            return;
        };
        let StepKind::Optional { group: right, .. } = &self.steps[at].kind else {
            return;
        };
        let mut below = self.before(at);
        if below.conflicts_with(right, table) {
            return;
        }
        let visible = std::mem::take(&mut self.visible);
        let after = self.steps.split_off(at + 1);
        let step = self.steps.pop();
        below.items = std::mem::take(&mut self.items);
        below.filters = std::mem::take(&mut self.filters);
        below.steps = std::mem::take(&mut self.steps);
        below.outer = std::mem::take(&mut self.outer);
        if let Some(Step {
            kind: StepKind::Optional { group, filters, .. },
            ..
        }) = step
        {
            *self = below.join(group, table);
            for filter in filters {
                self.filter(filter, outer, table);
            }
        }
        for step in after {
            self.append(step);
        }
        self.visible.extend(&visible);
    }

    /// The place of the step that binds a variable, if it is an `OPTIONAL` and the only one that
    /// does, and its guard.
    fn optional_that_binds(&self, var: Var, outer: &VarSet) -> Option<(usize, Option<Var>)> {
        let steps = self.steps.iter().enumerate();
        let mut binders = steps.filter(|(_, step)| step.introduces.contains(var));
        let (Some((at, step)), None) = (binders.next(), binders.next()) else {
            return None;
        };
        let StepKind::Optional { guard, .. } = &step.kind else {
            return None;
        };
        let is_elsewhere = outer.contains(var) || items_visible(&self.items).contains(var);
        (!is_elsewhere).then_some((at, *guard))
    }

    /// What is known of the group before a step, without items; its steps before that one and
    /// filters for asking [`Group::conflicts_with`].
    fn before(&self, at: usize) -> Self {
        let mut below = Self {
            filters: self.filters.clone(),
            steps: self.steps[..at].to_vec(),
            visible: items_visible(&self.items),
            certain: self.items_certain.clone(),
            items_certain: self.items_certain.clone(),
            ..Self::default()
        };
        for step in &self.steps[..at] {
            below.visible.extend(&step.introduces);
            below.certain.extend(&step.surely_binds());
        }
        below
    }

    /// Adds a step of before, now that more may be bound surely.
    fn append(&mut self, mut step: Step) {
        step.introduces = step.introduces.difference(&self.certain);
        step.touches = step.touches.difference(&self.certain);
        if let StepKind::Optional { guard, .. } = &mut step.kind {
            *guard = guard.filter(|guard| !self.certain.contains(*guard));
        }
        self.visible.extend(&step.introduces);
        self.certain.extend(&step.surely_binds());
        self.steps.push(step);
    }

    /// Puts a condition into the members that alone tell whether it holds; whether there is one.
    pub(super) fn push_into_members(
        &mut self,
        condition: &Expression,
        outer: &VarSet,
        table: &VariableTable,
    ) -> bool {
        if self.items.iter().all(|item| matches!(item, Item::Quad(_))) {
            return false;
        }
        let seen = variables(condition, table);
        let is_of_patterns = seen.iter().all(|var| {
            let mut items = self.items.iter();
            items.any(|item| matches!(item, Item::Quad(quad) if quad.variables().contains(var)))
        });
        if is_of_patterns || seen.intersects(outer) || is_volatile(condition) {
            return false;
        }
        let takes: Vec<usize> = (0..self.items.len())
            .filter(|&at| self.tells_alone(at, &seen) && self.items[at].takes(condition, table))
            .collect();
        for &at in &takes {
            self.items[at].push(condition, outer, table);
        }
        !takes.is_empty()
    }

    /// Whether a member binds the variables as they are after the join.
    fn tells_alone(&self, at: usize, seen: &VarSet) -> bool {
        let (visible, certain) = (self.items[at].visible(), self.items[at].certain());
        let mut others = VarSet::default();
        for (_, item) in self
            .items
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
        {
            others.extend(&item.visible());
        }
        seen.is_subset(&visible) && !seen.difference(&certain).intersects(&others)
    }
}

impl Item {
    /// Whether a condition on variables of the item may stand inside of it, and does some good
    /// there.
    fn takes(&self, condition: &Expression, table: &VariableTable) -> bool {
        match self {
            Self::Union(branches) => branches.iter().any(|it| !is_dead(it, condition, table)),
            Self::Group(_) => true,
            Self::Derived(derived) => derived.lets_through(&variables(condition, table)),
            Self::Quad(_)
            | Self::Path(_)
            | Self::Values(_)
            | Self::Graphs(_)
            | Self::Service(_)
            | Self::Mapped(_)
            | Self::Search(_)
            | Self::Algorithm(_)
            | Self::Weights(_)
            | Self::Seed(_) => false,
        }
    }

    fn push(&mut self, condition: &Expression, outer: &VarSet, table: &VariableTable) {
        match self {
            Self::Union(branches) => {
                branches.retain(|branch| !is_dead(branch, condition, table));
                for branch in branches {
                    let unbound = variables(condition, table).difference(&branch.visible);
                    let condition = without(condition.clone(), &unbound, table);
                    branch.filter(condition, outer, table);
                }
            }
            Self::Group(group) => group.filter(condition.clone(), outer, table),
            Self::Derived(derived) => derived.inner.filter(condition.clone(), outer, table),
            Self::Quad(_)
            | Self::Path(_)
            | Self::Values(_)
            | Self::Graphs(_)
            | Self::Service(_)
            | Self::Mapped(_)
            | Self::Search(_)
            | Self::Algorithm(_)
            | Self::Weights(_)
            | Self::Seed(_) => {}
        }
    }
}

impl Derived {
    /// Whether conditions on these variables may be asked before the modifier, and those of
    /// subqueries below.
    pub(crate) fn lets_through(&self, seen: &VarSet) -> bool {
        let is_through = match &self.modifier {
            Modifier::Project(_) | Modifier::Distinct | Modifier::Order(_) => true,
            Modifier::Aggregate { keys, .. } => seen.is_subset(&VarSet::of(keys.iter().copied())),
            Modifier::Slice { .. } => false,
        };
        is_through
            && match self.inner.items.as_slice() {
                [Item::Derived(below)] => {
                    seen.is_subset(&below.visible) && below.lets_through(seen)
                }
                _ => true,
            }
    }
}

impl Step {
    /// What is bound in each row after the step, by the step.
    fn surely_binds(&self) -> VarSet {
        match &self.kind {
            StepKind::Mark { variable, .. } => VarSet::of([*variable]),
            StepKind::Lateral { group, .. } => group.certain.clone(),
            StepKind::Bind {
                variable,
                is_certain: true,
                ..
            } => VarSet::of([*variable]),
            StepKind::Bind { .. }
            | StepKind::Optional { .. }
            | StepKind::OptionalIf { .. }
            | StepKind::Minus { .. }
            | StepKind::Filter(_)
            | StepKind::Exists { .. } => VarSet::default(),
        }
    }
}

/// Whether a branch leaves something unbound that the condition needs.
fn is_dead(branch: &Group, condition: &Expression, table: &VariableTable) -> bool {
    let unbound = variables(condition, table).difference(&branch.visible);
    unbound.iter().any(|var| needs(condition, table.name(var)))
}

/// The condition where these variables are unbound.
fn without(condition: Expression, unbound: &VarSet, table: &VariableTable) -> Expression {
    if unbound.is_empty() {
        return condition;
    }
    let name = |variable: Variable| match table.get(variable.as_str()) {
        Some(var) if unbound.contains(var) => Variable::new_unchecked(UNBOUND),
        Some(_) | None => variable,
    };
    match condition {
        Expression::Variable(variable) => Expression::Variable(name(variable)),
        Expression::Bound(variable) => Expression::Bound(name(variable)),
        other => {
            let mapped = map_children(other, &mut |child| {
                Ok::<_, std::convert::Infallible>(without(child, unbound, table))
            });
            match mapped {
                Ok(expression) => expression,
                Err(never) => match never {},
            }
        }
    }
}

/// Whether a condition is false or an error, whatever else is bound, where this variable is not.
fn needs(condition: &Expression, variable: &str) -> bool {
    match condition {
        Expression::And(a, b) => needs(a, variable) || needs(b, variable),
        Expression::Or(a, b) => needs(a, variable) && needs(b, variable),
        Expression::If(_, a, b) => {
            is_error(condition, variable) || (needs(a, variable) && needs(b, variable))
        }
        Expression::Coalesce(parts) => parts.iter().all(|part| needs(part, variable)),
        Expression::Bound(bound) => bound.as_str() == variable,
        other => is_error(other, variable),
    }
}

/// Whether an expression is an error, whatever else is bound, where this variable is not.
fn is_error(expression: &Expression, variable: &str) -> bool {
    let of = |expression: &Expression| is_error(expression, variable);
    match expression {
        Expression::Variable(read) => read.as_str() == variable,
        Expression::Equal(a, b)
        | Expression::SameTerm(a, b)
        | Expression::Greater(a, b)
        | Expression::GreaterOrEqual(a, b)
        | Expression::Less(a, b)
        | Expression::LessOrEqual(a, b)
        | Expression::Add(a, b)
        | Expression::Subtract(a, b)
        | Expression::Multiply(a, b)
        | Expression::Divide(a, b) => of(a) || of(b),
        // One of two may be an error, and the other decide.
        Expression::And(a, b) | Expression::Or(a, b) => of(a) && of(b),
        Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => of(a),
        Expression::If(condition, a, b) => of(condition) || (of(a) && of(b)),
        // In nothing is nothing, not even an error.
        Expression::In(a, list) => !list.is_empty() && (of(a) || list.iter().all(of)),
        Expression::Coalesce(parts) => parts.iter().all(of),
        Expression::FunctionCall(_, arguments) => arguments.iter().any(of),
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Bound(_)
        | Expression::Exists(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::SparqlParser;
    use spargebra::algebra::GraphPattern;

    fn condition(text: &str) -> Expression {
        let query = format!("SELECT * {{ FILTER({text}) }}");
        let query = SparqlParser::new().parse_query(&query).expect("a query");
        let spargebra::Query::Select { pattern, .. } = query else {
            panic!("a SELECT");
        };
        let GraphPattern::Project { inner, .. } = pattern else {
            panic!("a projection");
        };
        let GraphPattern::Filter { expr, .. } = *inner else {
            panic!("a filter");
        };
        expr
    }

    #[test]
    fn conditions_that_need_a_variable_are_told_from_those_that_do_not() {
        for text in [
            "?x > 1",
            "?x",
            "?y = ?x + 1",
            "bound(?x)",
            "!(?x = 1)",
            "?y && bound(?x)",
            "?x = 1 || ?x = 2",
            "?x IN (1, ?y)",
            "1 IN (?x)",
            "!(?x IN (1))",
            "strlen(?x) > ?y",
            "if(?x, true, true)",
            "if(?y, ?x, bound(?x))",
            "coalesce(?x, bound(?x))",
            "!(?x && ?x)",
        ] {
            assert!(needs(&condition(text), "x"), "{text}");
        }
        for text in [
            "?y > 1",
            "!bound(?x)",
            "?x = 1 || ?y = 2",
            "!(?x && ?y)",
            "?x NOT IN ()",
            "1 IN (1, ?x)",
            "coalesce(?x, true)",
            "if(bound(?x), ?x, true)",
            "!(bound(?x) && ?y)",
        ] {
            assert!(!needs(&condition(text), "x"), "{text}");
        }
    }
}
