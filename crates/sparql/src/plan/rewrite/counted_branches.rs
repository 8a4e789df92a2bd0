//! The rewrite of union branches and optional parts of which only totals are needed.
//!
//! ```text
//! COUNT(*) of { A } UNION { B }            SUM(n) of { COUNT(*) AS n of A } UNION { COUNT(*) AS n of B }
//! COUNT(*) of A OPTIONAL { B }             SUM(w) of A OPTIONAL { COUNT(*) AS n of B by what it shares with A }, w = COALESCE(n, 1)
//! ```
//!
//! So a branch of one pattern is counted without a row, and a row of the left side that has a
//! hundred matches stays one row. The aggregations that are made here are planned as any others, so
//! that a branch may be taken apart itself ([`eager_aggregation`](super::eager_aggregation)).

use spargebra::algebra::{AggregateExpression, Expression};

use super::totals::{Total, number, sum_of};
use crate::algebra::expression::variables;
use crate::algebra::{Derived, Group, Item, Modifier, Step, StepKind, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;

/// With fewer rows than this it is not worth another aggregation.
const ROWS_MIN: f64 = 10_000.0;
/// So many matches a row must have for them to be counted first.
const MATCHES_MIN: f64 = 4.0;

/// A group and the totals that are asked of it.
pub(super) type Totalled = (Group, Vec<(Var, Total)>);

impl Planner<'_> {
    /// The totals of a union as totals of those of its branches, if some branch is then counted
    /// without its solutions. Patterns that have nothing but keys are joined to each branch.
    pub(super) fn with_counted_branches(
        &mut self,
        inner: &Group,
        keys: &[Var],
        totals: &[(Var, Total)],
    ) -> Result<Option<Totalled>> {
        let (unions, others): (Vec<&Item>, Vec<&Item>) =
            (inner.items.iter()).partition(|item| matches!(item, Item::Union(_)));
        let [Item::Union(branches)] = unions.as_slice() else {
            return Ok(None);
        };
        let keyed = VarSet::of(keys.iter().copied());
        let is_of_keys = |item: &&Item| {
            let certain = |var| branches.iter().all(|it| it.certain.contains(var));
            matches!(item, Item::Quad(_))
                && item.visible().is_subset(&keyed)
                && item.visible().iter().all(certain)
        };
        if !others.iter().all(is_of_keys) {
            return Ok(None);
        }
        let is_sum = |(_, total): &(Var, Total)| matches!(total, Total::Sum { .. });
        if totals.is_empty()
            || !totals.iter().all(is_sum)
            || !inner.filters.is_empty()
            || !inner.steps.is_empty()
            || !branches.iter().all(Group::is_steady)
        {
            return Ok(None);
        }
        let aggregate = |(result, total): &(Var, Total)| (*result, total.aggregate(&self.table));
        let aggregates: Vec<(Var, AggregateExpression)> = totals.iter().map(aggregate).collect();
        let counts = |(_, it): &(Var, AggregateExpression)| {
            matches!(it, AggregateExpression::CountSolutions { distinct: false })
        };
        let only_counts = keys.len() <= 1 && aggregates.iter().all(counts);
        let branches: Vec<Group> = branches
            .iter()
            .map(|branch| {
                let others = others.iter().map(|item| Group::of((*item).clone()));
                others.fold(branch.clone(), |all, item| all.join(item, &self.table))
            })
            .collect();
        let mut pays = self.tuning.aggregates_early;
        for branch in &branches {
            pays = pays
                || (only_counts
                    && branch
                        .bare_quads()
                        .is_some_and(|quads| quads.len() == 1 + others.len()))
                || self.is_aggregated_eagerly(branch, keys, &aggregates)?;
        }
        if !pays {
            return Ok(None);
        }
        let partials: Vec<Var> = totals.iter().map(|_| self.table.fresh("partial")).collect();
        let mut counted = Vec::with_capacity(branches.len());
        for branch in &branches {
            let own = partials.iter().zip(&aggregates);
            let own = own.map(|(partial, (_, aggregate))| (*partial, aggregate.clone()));
            let item = aggregation(branch, keys, own.collect());
            counted.push(Group::of(item));
        }
        let group = Group::of(Item::Union(counted));
        let merged = totals.iter().zip(&partials);
        let merged = merged.map(|((result, _), partial)| {
            let value = Some(self.table.read(*partial));
            let weights = Vec::new();
            (*result, Total::Sum { value, weights })
        });
        Ok(Some((group, merged.collect())))
    }

    /// The group with optional parts counted by what they share with it, where that saves most
    /// rows.
    pub(super) fn with_counted_optionals(
        &mut self,
        inner: &Group,
        keys: &[Var],
        totals: &[(Var, Total)],
    ) -> Result<Option<Totalled>> {
        let is_optional = |step: &Step| matches!(step.kind, StepKind::Optional { .. });
        if !inner.steps.iter().any(is_optional) || !inner.is_steady() {
            return Ok(None);
        }
        let mut group = inner.clone();
        let mut totals = totals.to_vec();
        let (mut at, mut is_changed) = (0, false);
        while at < group.steps.len() {
            match self.counted_optional(&group, at, keys, &totals)? {
                Some((steps, weighted)) => {
                    for step in &steps {
                        group.visible.extend(&step.introduces);
                    }
                    let added = steps.len();
                    group.steps.splice(at..=at, steps);
                    (totals, is_changed) = (weighted, true);
                    at += added;
                }
                None => at += 1,
            }
        }
        Ok(is_changed.then_some((group, totals)))
    }

    /// The steps in place of an optional part that is counted, and the totals with its weight.
    fn counted_optional(
        &mut self,
        group: &Group,
        at: usize,
        keys: &[Var],
        totals: &[(Var, Total)],
    ) -> Result<Option<(Vec<Step>, Totals)>> {
        let Some((part, separator, own)) = self.countable_optional(group, at, keys) else {
            return Ok(None);
        };
        let is_sum = |(_, total): &(Var, Total)| matches!(total, Total::Sum { .. });
        let sides: Option<Vec<OptionalSide>> = totals
            .iter()
            .map(|(_, total)| self.optional_side(total, &own, &separator))
            .collect();
        let Some(sides) = sides.filter(|_| totals.iter().any(is_sum)) else {
            return Ok(None);
        };
        let keyed: Vec<Var> = separator.iter().collect();
        if !self.tuning.aggregates_early {
            let rows = self.group_rows(group)?;
            let matches = self.group_rows(part)?;
            let values = self.different(part, &separator, matches)?;
            let per_row = matches / values.max(1.0);
            if rows * per_row < ROWS_MIN || per_row < MATCHES_MIN {
                return Ok(None);
            }
        }
        let (mut early, mut steps) = (Vec::new(), Vec::new());
        let mut weighted = Vec::with_capacity(totals.len());
        let mut weight = None;
        for ((result, total), side) in totals.iter().zip(sides) {
            let total = match side {
                OptionalSide::Untouched => total.clone(),
                OptionalSide::Weighted => {
                    let weight = match weight {
                        Some(weight) => weight,
                        None => {
                            let count = sum_of(None, &[], &self.table);
                            let (partial, step) = self.or_else(1, "weight");
                            early.push((partial, count));
                            steps.push(step.1);
                            *weight.insert(step.0)
                        }
                    };
                    total.clone().weighted(&VarSet::default(), weight)
                }
                OptionalSide::Within => {
                    let (partial, step) = self.or_else(0, "partial");
                    early.push((partial, total.partial(&own, &self.table)));
                    steps.push(step.1);
                    total.clone().merged(self.table.read(step.0), &own)
                }
            };
            weighted.push((*result, total));
        }
        let introduced = VarSet::of(early.iter().map(|(var, _)| *var));
        let counted = Step {
            kind: StepKind::Optional {
                group: Group::of(aggregation(part, &keyed, early)),
                filters: Vec::new(),
                guard: None,
            },
            touches: introduced.clone(),
            introduces: introduced,
        };
        steps.insert(0, counted);
        Ok(Some((steps, weighted)))
    }

    /// A variable of an optional part, and a step that gives another one its value, or a number
    /// where it has none.
    fn or_else(&mut self, otherwise: i64, hint: &str) -> (Var, (Var, Step)) {
        let [partial, variable] = ["optional", hint].map(|hint| self.table.fresh(hint));
        let read = self.table.read(partial);
        let step = Step {
            kind: StepKind::Bind {
                variable,
                expression: Expression::Coalesce(vec![read, number(otherwise)]),
                is_certain: true,
            },
            introduces: VarSet::of([variable]),
            touches: VarSet::of([partial, variable]),
        };
        (partial, (variable, step))
    }

    /// An optional part that only its own total may depend on, what it shares with the group, and
    /// what it has of its own.
    fn countable_optional<'g>(
        &self,
        group: &'g Group,
        at: usize,
        keys: &[Var],
    ) -> Option<(&'g Group, VarSet, VarSet)> {
        let StepKind::Optional {
            group: part,
            filters,
            guard: None,
        } = &group.steps[at].kind
        else {
            return None;
        };
        let mut outside = VarSet::of(keys.iter().copied());
        for item in &group.items {
            outside.extend(&item.visible());
        }
        for filter in &group.filters {
            outside.extend(&variables(filter, &self.table));
        }
        for (number, step) in group.steps.iter().enumerate() {
            if number != at {
                outside.extend(&step.mentioned(&self.table));
                outside.extend(&step.introduces);
            }
        }
        let separator = part.visible.intersection(&outside);
        let own = part.visible.difference(&separator);
        let is_countable = filters.is_empty()
            && part.outer.is_empty()
            && !separator.is_empty()
            && !own.is_empty()
            && separator.is_subset(&part.certain)
            && separator.is_subset(&group.items_certain);
        is_countable.then_some((part, separator, own))
    }

    /// What becomes of a total where an optional part is counted; `None` if it needs the solutions.
    fn optional_side(
        &self,
        total: &Total,
        own: &VarSet,
        separator: &VarSet,
    ) -> Option<OptionalSide> {
        let (read, is_sum) = match total {
            Total::Sum { value, .. } => (value.as_ref(), true),
            Total::OfAny(aggregate) => (
                match aggregate {
                    AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                    AggregateExpression::CountSolutions { .. } => None,
                },
                false,
            ),
        };
        let seen = read
            .map(|it| variables(it, &self.table))
            .unwrap_or_default();
        if !seen.intersects(own) {
            return Some(match is_sum {
                true => OptionalSide::Weighted,
                false => OptionalSide::Untouched,
            });
        }
        // A count is 0 where the part has no solution, as with nothing to add up. (Of other sums
        // that are 0 there, an error would be taken for it.)
        let is_zero_without = match read {
            Some(Expression::If(condition, then, otherwise)) => {
                **then == number(1)
                    && matches!(condition.as_ref(), Expression::Bound(variable)
                    if self.table.get(variable.as_str()).is_some_and(|it| own.contains(it)))
                    && **otherwise == number(0)
            }
            _ => false,
        };
        let has_weights = match total {
            Total::Sum { weights, .. } => !weights.is_empty(),
            Total::OfAny(_) => false,
        };
        let is_within = is_sum && is_zero_without && !has_weights;
        (is_within && seen.is_subset(&own.union(separator))).then_some(OptionalSide::Within)
    }
}

/// Totals, and the variables that they are bound to.
type Totals = Vec<(Var, Total)>;

/// What becomes of a total where an optional part is counted.
#[derive(Clone, Copy)]
enum OptionalSide {
    Untouched,
    /// Each row stands for so many.
    Weighted,
    /// It is a total of the part.
    Within,
}

/// Aggregates of a group by keys as an item.
fn aggregation(group: &Group, keys: &[Var], aggregates: Vec<(Var, AggregateExpression)>) -> Item {
    let keyed = VarSet::of(keys.iter().copied());
    let mut visible = keyed.clone();
    visible.extend(&VarSet::of(aggregates.iter().map(|(var, _)| *var)));
    Item::Derived(Box::new(Derived {
        inner: group.clone(),
        certain: keyed.intersection(&group.certain),
        visible,
        modifier: Modifier::Aggregate {
            keys: keys.to_vec(),
            aggregates,
            solution: group.visible.clone(),
        },
    }))
}
