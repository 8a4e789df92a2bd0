//! Aggregation below a join.
//!
//! ```text
//!   price of every feature            GROUP BY ?feature                 GROUP BY ?feature
//!                                            |                          SUM of sums by SUM of counts
//!                                          join                               |
//!                                         /    \                             join on ?product
//!              (?feature, ?product) pairs        ?offer product ?product      /   \
//!                                                ?offer price ?price       pairs   GROUP BY ?product: SUM, COUNT
//! ```
//!
//! Where the aggregates read only patterns that hang on the others by one variable, those are aggregated by that
//! variable first: a product's twenty offers meet its features as one row. (Yan and Larson, "Eager Aggregation and Lazy
//! Aggregation", VLDB 1995, eager groupby-count.) Sums of floating numbers may differ in their last digit, as they do with
//! any other order of the rows. Only done where it saves most of the rows, by the estimates.

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};
use spargebra::term::Variable;

use crate::algebra::expression::{is_volatile, variables};
use crate::algebra::{Derived, Group, Item, Modifier, Step, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// The rows that are not aggregated early must be so many times those of both parts.
const GAIN_MIN: f64 = 4.0;
/// With fewer rows than this it is not worth a second aggregation.
const ROWS_MIN: f64 = 10_000.0;

/// Named aggregates.
type Aggregates = Vec<(Var, AggregateExpression)>;

/// How the patterns are divided.
struct Division {
    /// What joins them.
    key: Var,
    /// What is aggregated first.
    below: Vec<Item>,
    /// Everything else.
    above: Vec<Item>,
}

impl Planner<'_> {
    /// Plans an aggregation in two steps, the first one below the join, if that pays.
    pub(in crate::plan) fn aggregate_eagerly(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        match self.eager_division(inner, keys, aggregates)? {
            Some(division) => self
                .aggregate_twice(inner, division, keys, aggregates)
                .map(Some),
            None => Ok(None),
        }
    }

    fn eager_division(
        &self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Division>> {
        let is_split = |(_, aggregate): &_| argument_of(aggregate).is_some();
        let plain_steps = inner.steps.iter().all(is_plain) && inner.outer.is_empty();
        let plain_filters = !inner.filters.iter().any(is_volatile);
        if keys.is_empty()
            || aggregates.is_empty()
            || !aggregates.iter().all(is_split)
            || !plain_steps
            || !plain_filters
        {
            return Ok(None);
        }
        self.division(inner, keys, aggregates)
    }

    /// Whether an aggregation is planned in two steps.
    pub(in crate::plan) fn is_aggregated_eagerly(
        &self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<bool> {
        Ok(self.eager_division(inner, keys, aggregates)?.is_some())
    }

    /// The division that saves rows, if one does.
    fn division(
        &self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Division>> {
        let mut read = VarSet::default();
        for (_, aggregate) in aggregates {
            if let Some(Some(argument)) = argument_of(aggregate) {
                read.extend(&variables(argument, &self.table));
            }
        }
        let mut fixed = VarSet::of(keys.iter().copied());
        for filter in &inner.filters {
            fixed.extend(&variables(filter, &self.table));
        }
        for step in &inner.steps {
            fixed.extend(&step.mentioned(&self.table));
        }
        // Estimates are only asked for when there is something to decide.
        let mut rows = None;
        for key in inner.items_certain.iter() {
            let Some(division) = divide(inner, key, &read, &fixed) else {
                continue;
            };
            if self.tuning.aggregates_early {
                return Ok(Some(division));
            }
            let rows = match rows {
                Some(rows) => rows,
                None => *rows.insert(self.group_rows(inner)?),
            };
            let below = self.group_rows(&Group::join_of(&division.below))?;
            let above = self.group_rows(&Group::join_of(&division.above))?;
            if rows >= ROWS_MIN && rows >= GAIN_MIN * (below + above) {
                return Ok(Some(division));
            }
        }
        Ok(None)
    }

    fn aggregate_twice(
        &mut self,
        inner: &Group,
        division: Division,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Relation> {
        let (mut early, mut late) = (Aggregates::new(), Aggregates::new());
        let mut averages: Vec<(Var, Expression)> = Vec::new();
        for (result, aggregate) in aggregates {
            let mut part = |planner: &mut Self, early_aggregate, result: Option<Var>| {
                let partial = planner.table.fresh("partial");
                let result = result.unwrap_or_else(|| planner.table.fresh("total"));
                late.push((result, call(AggregateFunction::Sum, planner.read(partial))));
                early.push((partial, early_aggregate));
                result
            };
            match aggregate {
                AggregateExpression::FunctionCall {
                    name: AggregateFunction::Avg,
                    expr,
                    ..
                } => {
                    let sum = call(AggregateFunction::Sum, expr.clone());
                    let count = AggregateExpression::CountSolutions { distinct: false };
                    let sum = part(self, sum, None);
                    let count = part(self, count, None);
                    let quotient =
                        Expression::Divide(Box::new(self.read(sum)), Box::new(self.read(count)));
                    averages.push((*result, quotient));
                }
                other => {
                    part(self, other.clone(), Some(*result));
                }
            }
        }
        let below = Group::join_of(&division.below);
        let mut visible = VarSet::of([division.key]);
        visible.extend(&VarSet::of(early.iter().map(|(var, _)| *var)));
        let derived = Derived {
            certain: VarSet::of([division.key]),
            visible,
            modifier: Modifier::Aggregate {
                keys: vec![division.key],
                aggregates: early,
                solution: below.visible.clone(),
            },
            inner: below,
        };
        self.expect_again(&derived);
        let mut above = Group::join_of(&division.above);
        above.push(Item::Derived(Box::new(derived)));
        for step in &inner.steps {
            above.visible.extend(&step.introduces);
        }
        above.filters.clone_from(&inner.filters);
        above.steps.clone_from(&inner.steps);
        let solution = above.visible.clone();
        let mut needed = VarSet::of(keys.iter().copied());
        needed.extend(&VarSet::of(late.iter().map(|(var, _)| *var)));
        let mut relation = self.aggregate(&above, keys, (&late, &solution), &needed)?;
        for (result, quotient) in &averages {
            needed.insert(*result);
            relation = self.bind(relation, *result, quotient, &needed)?;
        }
        let results = aggregates.iter().map(|(var, _)| *var);
        let columns = keys.iter().copied().chain(results).collect();
        self.with_columns(relation, columns)
    }

    fn read(&self, var: Var) -> Expression {
        Variable::new_unchecked(self.table.name(var).as_ref()).into()
    }
}

fn call(name: AggregateFunction, expr: Expression) -> AggregateExpression {
    AggregateExpression::FunctionCall {
        name,
        expr,
        distinct: false,
    }
}

/// What an aggregate reads, if it can be put together from those of parts: outer `None` if not, inner for `COUNT(*)`.
fn argument_of(aggregate: &AggregateExpression) -> Option<Option<&Expression>> {
    match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => Some(None),
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg,
            expr,
            distinct: false,
        } if !is_volatile(expr) => Some(Some(expr)),
        AggregateExpression::CountSolutions { .. } | AggregateExpression::FunctionCall { .. } => {
            None
        }
    }
}

/// Whether a step treats equal rows equally, and binds nothing.
fn is_plain(step: &Step) -> bool {
    match &step.kind {
        StepKind::Exists { filters, .. } => !filters.iter().any(is_volatile),
        StepKind::Filter(condition) => !is_volatile(condition),
        StepKind::Optional { .. }
        | StepKind::OptionalIf { .. }
        | StepKind::Minus { .. }
        | StepKind::Bind { .. }
        | StepKind::Mark { .. } => false,
    }
}

/// The patterns that hang together with the variables `read` when `key` is cut, if nothing else needs their
/// variables; and with them those that restrict nothing but the key, which cost little and keep the first step small.
fn divide(inner: &Group, key: Var, read: &VarSet, fixed: &VarSet) -> Option<Division> {
    let only_key = VarSet::of([key]);
    let mut inside = read.difference(&only_key);
    if inside.is_empty() {
        return None;
    }
    let mut is_below = vec![false; inner.items.len()];
    loop {
        let next = inner
            .items
            .iter()
            .enumerate()
            .position(|(number, item)| !is_below[number] && item.visible().intersects(&inside));
        let Some(next) = next else { break };
        let Item::Quad(quad) = &inner.items[next] else {
            return None;
        };
        if quad.is_impossible() {
            return None;
        }
        inside.extend(&quad.variables().difference(&only_key));
        is_below[next] = true;
    }
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut has_key = false;
    for (item, is_below) in inner.items.iter().zip(is_below) {
        match is_below {
            true => below.push(item.clone()),
            false => above.push(item.clone()),
        }
    }
    let is_joined = below.iter().any(|item| item.visible().contains(key));
    let mut joins_more = false;
    for item in &above {
        let Item::Quad(quad) = item else {
            joins_more = true;
            continue;
        };
        let variables = quad.variables();
        has_key |= variables.contains(key);
        match variables.contains(key) && variables.is_subset(&only_key) {
            true => below.push(item.clone()),
            false => joins_more = true,
        }
    }
    let is_free = !inside.intersects(fixed) && read.is_subset(&inside.union(&only_key));
    (is_joined && has_key && joins_more && is_free).then_some(Division { key, below, above })
}
