//! Subqueries that stand in a query more than once are computed once.
//!
//! ```text
//! { SELECT ?country (MAX(?n) AS ?max) { { SELECT ?country ?product (COUNT(?r) AS ?n) {..} } } }
//! { SELECT ?country ?product (COUNT(?r) AS ?n) {..} }                      the same: read from one SharedExec
//! ```
//!
//! Two subqueries are the same if they are written alike but for the names of their variables: each has a *text* in which variables
//! are numbered as they come. Only what groups or removes duplicates is looked at (the rest is cheap to compute again, or
//! better computed from the other side of a join), and only while the rows are expected to fit into [`SHARED_BYTES_MAX`]. What gives another value
//! each time (`RAND`, `UUID`), asks endpoints, or looks at an outer row has no text.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use spargebra::algebra::{AggregateExpression, Expression};
use spargebra::term::Variable;

use super::{Planner, Relation, Result};
use crate::algebra::expression::{has_exists, is_volatile, map_children};
use crate::algebra::{
    Derived, Group, Item, Modifier, Slot, Step, StepKind, Var, VarSet, VariableTable,
};

/// Memory that the rows of one shared subquery are expected to take at most.
pub(super) const SHARED_BYTES_MAX: f64 = (64 << 20) as f64;

/// The subqueries that a query has more than once.
#[derive(Debug, Default)]
pub(super) struct CommonSubqueries {
    /// Whether there are several groupings, so that what the planner makes of one may come again with another.
    may_repeat: bool,
    /// Texts that occurred more than once.
    repeated: HashMap<String, usize>,
    /// What they were planned to, by text and by whether duplicates matter.
    planned: HashMap<(String, bool), Planned>,
}

#[derive(Debug)]
enum Planned {
    /// The shared relation, and its variables by their numbers in the text.
    Shared(Relation, Vec<Var>),
    /// Too large to be kept.
    Apart,
}

impl Planner<'_> {
    /// Finds the repeated subqueries of the whole query.
    pub(super) fn find_common(&mut self, query: &Group) {
        if self.common.is_some() {
            return;
        }
        let mut common = CommonSubqueries {
            may_repeat: self.tuning.rewrites && groupings(query) > 1,
            ..CommonSubqueries::default()
        };
        if common.may_repeat {
            count(query, &self.table, &mut common.repeated);
            common.repeated.retain(|_, times| *times > 1);
        }
        self.common = Some(common);
    }

    /// Keeps a subquery that the planner itself has made for a like one that may follow. Where none does, what shares it goes
    /// again when the plan is spread ([`super::parallel`]).
    pub(super) fn expect_again(&mut self, derived: &Derived) {
        if let Some(common) = self.common.as_mut().filter(|common| common.may_repeat)
            && let Some((text, _)) = text_of(derived, &self.table)
        {
            *common.repeated.entry(text).or_default() += 1;
        }
    }

    /// Whether a subquery is needed more than once, so that all of it is computed.
    pub(super) fn is_repeated(&self, derived: &Derived) -> bool {
        let common = self.common.as_ref();
        common.is_some_and(|common| {
            !common.repeated.is_empty()
                && text_of(derived, &self.table)
                    .is_some_and(|(text, _)| common.repeated.contains_key(&text))
        })
    }

    /// A subquery that was planned before, or will be needed again; `None` if it stands there once.
    pub(super) fn common(
        &mut self,
        derived: &Derived,
        needed: &VarSet,
    ) -> Result<Option<Relation>> {
        let has_repeated = self
            .common
            .as_ref()
            .is_some_and(|common| !common.repeated.is_empty());
        if !has_repeated || !removes_rows(derived) {
            return Ok(None);
        }
        let Some((text, numbered)) = text_of(derived, &self.table) else {
            return Ok(None);
        };
        let key = (text, self.is_set);
        let known = match &self.common {
            Some(common) if common.repeated.contains_key(&key.0) => common.planned.get(&key),
            _ => return Ok(None),
        };
        let relation = match known {
            Some(Planned::Apart) => return Ok(None),
            Some(Planned::Shared(relation, then)) => {
                let (relation, then) = (relation.clone(), then.clone());
                self.renamed(relation, &then, &numbered)?
            }
            None => {
                let relation = self.modified(derived, &derived.visible, None)?;
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let bytes = relation.rows * (relation.columns.len() * size_of::<u64>()) as f64;
                let is_small = bytes <= SHARED_BYTES_MAX && !relation.is_empty;
                let (planned, relation) = match is_small {
                    true => {
                        let shared = self.shared(&relation)?;
                        (Planned::Shared(shared.clone(), numbered), shared)
                    }
                    false => (Planned::Apart, relation),
                };
                if let Some(common) = &mut self.common {
                    common.planned.insert(key, planned);
                }
                relation
            }
        };
        let columns = relation.columns.iter().copied();
        let columns = columns.filter(|var| needed.contains(*var)).collect();
        self.with_columns(relation, columns).map(Some)
    }

    /// The relation under the names that variables have in another place.
    pub(super) fn renamed(
        &mut self,
        relation: Relation,
        from: &[Var],
        to: &[Var],
    ) -> Result<Relation> {
        let new = |var: Var| {
            let number = from.iter().position(|known| *known == var);
            number
                .and_then(|number| to.get(number).copied())
                .unwrap_or(var)
        };
        let columns: Vec<Var> = relation.columns.iter().map(|var| new(*var)).collect();
        if columns == relation.columns {
            return Ok(relation);
        }
        let expressions: Vec<ProjectionExpr> = relation
            .columns
            .iter()
            .zip(&columns)
            .enumerate()
            .map(|(at, (old, new))| ProjectionExpr {
                expr: Arc::new(Column::new(self.table.name(*old), at)),
                alias: self.table.name(*new).to_string(),
            })
            .collect();
        let certain = VarSet::of(relation.certain.iter().map(new));
        let plan = ProjectionExec::try_new(expressions, relation.plan)?;
        self.relation(Arc::new(plan), columns, certain, relation.rows)
    }
}

/// Whether a subquery groups or removes duplicates, itself or just below a projection.
fn removes_rows(derived: &Derived) -> bool {
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
            | Item::Seed(_) => {}
        }
    }
    for step in &group.steps {
        match &step.kind {
            StepKind::Optional { group, .. }
            | StepKind::OptionalIf { group, .. }
            | StepKind::Minus { group, .. }
            | StepKind::Exists { group, .. }
            | StepKind::Mark { group, .. } => for_each_derived(group, visit),
            StepKind::Bind { .. } | StepKind::Filter(_) => {}
        }
    }
}

/// The text of a subquery, and its variables by number; `None` if it may not be shared.
fn text_of(derived: &Derived, table: &VariableTable) -> Option<(String, Vec<Var>)> {
    let mut writer = Writer {
        table,
        text: String::new(),
        numbered: Vec::new(),
    };
    writer.derived(derived)?;
    Some((writer.text, writer.numbered))
}

/// Writes the text of a subquery.
struct Writer<'t> {
    table: &'t VariableTable,
    text: String,
    numbered: Vec<Var>,
}

impl Writer<'_> {
    fn number(&mut self, var: Var) -> usize {
        match self.numbered.iter().position(|known| *known == var) {
            Some(number) => number,
            None => {
                self.numbered.push(var);
                self.numbered.len() - 1
            }
        }
    }

    fn var(&mut self, var: Var) {
        let number = self.number(var);
        let _ = write!(self.text, "?{number} ");
    }

    /// In the order of the numbers, for a set has none of its own.
    fn set(&mut self, set: &VarSet) {
        let mut numbers: Vec<usize> = set.iter().map(|var| self.number(var)).collect();
        numbers.sort_unstable();
        let _ = write!(self.text, "{numbers:?} ");
    }

    fn slot(&mut self, slot: Slot) {
        match slot {
            Slot::Variable(var) => self.var(var),
            Slot::Constant(_) | Slot::Absent => {
                let _ = write!(self.text, "{slot:?} ");
            }
        }
    }

    fn expression(&mut self, expression: &Expression) -> Option<()> {
        if has_exists(expression) || is_volatile(expression) {
            return None;
        }
        let numbered = self.with_numbers(expression.clone());
        let _ = write!(self.text, "({numbered:?}) ");
        Some(())
    }

    fn with_numbers(&mut self, expression: Expression) -> Expression {
        let mut name = |variable: &Variable| match self.table.get(variable.as_str()) {
            Some(var) => Variable::new_unchecked(self.number(var).to_string()),
            None => variable.clone(),
        };
        match expression {
            Expression::Variable(variable) => Expression::Variable(name(&variable)),
            Expression::Bound(variable) => Expression::Bound(name(&variable)),
            other => {
                let mapped = map_children(other, &mut |child| {
                    Ok::<_, std::convert::Infallible>(self.with_numbers(child))
                });
                match mapped {
                    Ok(expression) => expression,
                    Err(never) => match never {},
                }
            }
        }
    }

    fn derived(&mut self, derived: &Derived) -> Option<()> {
        self.text.push_str("{ ");
        self.group(&derived.inner)?;
        match &derived.modifier {
            Modifier::Project(vars) => {
                self.text.push_str("project ");
                vars.iter().for_each(|var| self.var(*var));
            }
            Modifier::Distinct => self.text.push_str("distinct "),
            Modifier::Aggregate {
                keys,
                aggregates,
                solution,
            } => {
                self.text.push_str("group ");
                keys.iter().for_each(|var| self.var(*var));
                for (var, aggregate) in aggregates {
                    self.aggregate(*var, aggregate)?;
                }
                self.set(solution);
            }
            // Which rows a limit takes is free, but must not be the same in both places by accident of a plan.
            Modifier::Order(_) | Modifier::Slice { .. } => return None,
        }
        self.set(&derived.visible);
        self.text.push_str("} ");
        Some(())
    }

    fn aggregate(&mut self, var: Var, aggregate: &AggregateExpression) -> Option<()> {
        self.var(var);
        match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                let _ = write!(self.text, "count {distinct} ");
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                let _ = write!(self.text, "{name:?} {distinct} ");
                self.expression(expr)?;
            }
        }
        Some(())
    }

    fn group(&mut self, group: &Group) -> Option<()> {
        if !group.outer.is_empty() {
            return None;
        }
        for item in &group.items {
            self.item(item)?;
        }
        for filter in &group.filters {
            self.text.push_str("filter ");
            self.expression(filter)?;
        }
        for step in &group.steps {
            self.step(step)?;
        }
        Some(())
    }

    fn item(&mut self, item: &Item) -> Option<()> {
        match item {
            Item::Quad(quad) => {
                self.slot(quad.subject);
                self.slot(quad.predicate);
                self.slot(quad.object);
                if quad.scope.variable().is_some() {
                    return None;
                }
                let _ = write!(self.text, "{:?} {:?} . ", quad.scope, quad.object_ranges);
            }
            Item::Derived(derived) => self.derived(derived)?,
            Item::Group(group) => {
                self.text.push_str("{ ");
                self.group(group)?;
                self.text.push_str("} ");
            }
            Item::Union(branches) => {
                for branch in branches {
                    self.text.push_str("union { ");
                    self.group(branch)?;
                    self.text.push_str("} ");
                }
            }
            Item::Path(_)
            | Item::Values(_)
            | Item::Graphs(_)
            | Item::Service(_)
            | Item::Seed(_) => {
                return None;
            }
        }
        Some(())
    }

    fn step(&mut self, step: &Step) -> Option<()> {
        match &step.kind {
            StepKind::Filter(condition) => {
                self.text.push_str("having ");
                self.expression(condition)
            }
            StepKind::Bind {
                variable,
                expression,
                ..
            } => {
                self.text.push_str("bind ");
                self.var(*variable);
                self.expression(expression)
            }
            StepKind::Optional { .. }
            | StepKind::OptionalIf { .. }
            | StepKind::Minus { .. }
            | StepKind::Exists { .. }
            | StepKind::Mark { .. } => None,
        }
    }
}
