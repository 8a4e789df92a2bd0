//! Eager aggregation: counts are computed below joins and multiplied.
//!
//! ```text
//!   price of every feature            GROUP BY ?feature                 GROUP BY ?feature
//!                                            |                          SUM of sums
//!                                          join                               |
//!                                         /    \                             join on ?product
//!              (?feature, ?product) pairs        ?offer product ?product      /   \
//!                                                ?offer price ?price       pairs   GROUP BY ?product: SUM, COUNT
//!
//!   COUNT(*) of ?a :knows ?b . ?b :knows ?c . ?c :knows ?d
//!                                          SUM(w1 * w2)
//!                                               |
//!         GROUP BY ?b: COUNT of ?a :knows ?b    join    GROUP BY ?c: COUNT of ?c :knows ?d
//!                                          ?b :knows ?c
//! ```
//!
//! What hangs on the rest of a group by some variables, its *separator*, and has no other variable
//! that a key, a filter or another part needs, is aggregated by the separator first: a product's
//! twenty offers meet its features as one row with the weight 20, by which sums above are
//! multiplied. (Yan and Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995; taken as far
//! as it goes, along the whole tree of a join, it is the factorized aggregation of Olteanu and
//! Schleich, "Factorized Databases", SIGMOD Record 2016.) What depends on different solutions only
//! (`DISTINCT`, `MIN`, `MAX`) needs no weights: a part is then the different values of its
//! separator.
//!
//! Parts are taken away one at a time, the one that leaves the least work first
//! ([`parts`](super::parts) says which there are), as long as that leaves less; the last state is
//! planned where its work is much less than all solutions. A part may have parts taken away before;
//! it is planned as any other aggregation, and counted by runs where it can be. Weights are
//! `xsd:integer`s, which have no bound, and `*` and `SUM` are SPARQL's own, so a count is exact
//! however large. Sums of floating numbers may differ in their last digit, as they do with any
//! other order of the rows.

use orrery_operators::run_counts::has_runs;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};

use super::counted_branches::Totalled;
use super::parts::{Part, Separators, is_dividable, parts};
use super::totals::{Side, Total, can_be_split, number, quotient, sum_of};
use crate::algebra::{Derived, Group, Item, Modifier, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::operator_pattern;

/// The rows that are not aggregated early must be so many times what is read and computed
/// otherwise.
const GAIN_MIN: f64 = 4.0;
/// With fewer rows than this it is not worth a second aggregation.
const ROWS_MIN: f64 = 10_000.0;
/// What a row that is counted as part of a run costs, where one of a join costs 1.
pub(super) const RUN_ROW_COST: f64 = 0.05;

/// Named aggregates.
type Aggregates = Vec<(Var, AggregateExpression)>;
/// Named totals.
type Totals = Vec<(Var, Total)>;

/// A group of which parts were taken away.
struct Divided {
    group: Group,
    totals: Totals,
    /// What was taken away.
    parts: Vec<Item>,
    /// What that is expected to cost.
    parts_cost: f64,
    /// What all of it is expected to cost.
    cost: f64,
}

impl Planner<'_> {
    /// Plans an aggregation in several steps, the first ones below joins, if that pays.
    pub(in crate::plan) fn aggregate_eagerly(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<Option<Relation>> {
        let Some((totals, averages)) = self.totals_of(inner, keys, aggregates) else {
            return Ok(None);
        };
        let Some(divided) = self.taken_apart(inner, keys, totals)? else {
            return Ok(None);
        };
        let mut relation = self.aggregate_divided(&divided, keys)?;
        let mut needed = relation.variables();
        for (result, quotient) in &averages {
            needed.insert(*result);
            relation = self.bind(relation, *result, quotient, &needed)?;
        }
        let results = aggregates.iter().map(|(var, _)| *var);
        let columns = keys.iter().copied().chain(results).collect();
        self.with_columns(relation, columns).map(Some)
    }

    /// The different values that some variables have in the solutions of a group, if computing them
    /// in several steps takes much less than so many rows of a join.
    pub(in crate::plan) fn distinct_in_steps(
        &mut self,
        inner: &Group,
        keys: &[Var],
        rows: f64,
    ) -> Result<Option<Relation>> {
        let is_forced = self.tuning.aggregates_early;
        if rows < ROWS_MIN && !is_forced {
            return Ok(None);
        }
        let Some((totals, _)) = self.totals_of(inner, keys, &[]) else {
            return Ok(None);
        };
        let Some(divided) = self.taken_apart(inner, keys, totals)? else {
            return Ok(None);
        };
        if !is_forced && rows < GAIN_MIN * self.cost_in_steps(&divided)? {
            return Ok(None);
        }
        let was_set = std::mem::replace(&mut self.is_set, true);
        let relation = self.aggregate_divided(&divided, keys);
        self.is_set = was_set;
        relation.map(Some)
    }

    /// What a division costs where its parts are taken apart as well, as they are when they are
    /// planned.
    fn cost_in_steps(&mut self, divided: &Divided) -> Result<f64> {
        let mut saved = 0.0;
        for part in &divided.parts {
            let Item::Derived(part) = part else { continue };
            let Modifier::Aggregate {
                keys, aggregates, ..
            } = &part.modifier
            else {
                continue;
            };
            let Some((totals, _)) = self.totals_of(&part.inner, keys, aggregates) else {
                continue;
            };
            if let Some(below) = self.taken_apart(&part.inner, keys, totals)? {
                let at_once = self.group_rows(&part.inner)?;
                saved += (at_once - self.cost_in_steps(&below)?).max(0.0);
            }
        }
        // Parts that are counted by runs were never charged what all of their rows cost.
        Ok(divided.cost - saved.min(divided.parts_cost))
    }

    /// Whether an aggregation is planned in several steps.
    pub(in crate::plan) fn is_aggregated_eagerly(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Result<bool> {
        match self.totals_of(inner, keys, aggregates) {
            Some((totals, _)) => Ok(self.taken_apart(inner, keys, totals)?.is_some()),
            None => Ok(false),
        }
    }

    /// A group with the same totals that has less to join, if there is one.
    fn taken_apart(
        &mut self,
        inner: &Group,
        keys: &[Var],
        totals: Totals,
    ) -> Result<Option<Divided>> {
        let undivided = |(group, totals): Totalled| Divided {
            group,
            totals,
            parts: Vec::new(),
            parts_cost: 0.0,
            cost: 0.0,
        };
        if let Some(counted) = self.with_counted_branches(inner, keys, &totals)? {
            return Ok(Some(undivided(counted)));
        }
        match self.with_counted_optionals(inner, keys, &totals)? {
            Some((group, totals)) => {
                let divided = self.division(&group, keys, totals.clone())?;
                Ok(Some(divided.unwrap_or_else(|| undivided((group, totals)))))
            }
            None => self.division(inner, keys, totals),
        }
    }

    /// The aggregates as totals, if parts may be taken away from the group: averages are sums and
    /// counts, and quotients of these.
    fn totals_of(
        &mut self,
        inner: &Group,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
    ) -> Option<(Totals, Vec<(Var, Expression)>)> {
        let is_nothing = keys.is_empty() && aggregates.is_empty();
        let can_be_split = |(_, aggregate): &_| can_be_split(aggregate);
        let has_branches = matches!(inner.items.as_slice(), [Item::Union(_)]);
        let is_joined = inner.items.len() > 1 || !inner.steps.is_empty() || has_branches;
        if is_nothing || !is_joined || !aggregates.iter().all(can_be_split) {
            return None;
        }
        let (mut totals, mut averages) = (Totals::new(), Vec::new());
        for (result, aggregate) in aggregates {
            let AggregateExpression::FunctionCall {
                name: AggregateFunction::Avg,
                expr,
                distinct: false,
            } = aggregate
            else {
                totals.push((*result, Total::of(aggregate)));
                continue;
            };
            let [sum, count] = ["sum", "count"].map(|hint| self.table.fresh(hint));
            let value = Some(expr.clone());
            let weights = Vec::new();
            totals.push((sum, Total::Sum { value, weights }));
            totals.push((count, Total::count()));
            let [sum, count] = [sum, count].map(|var| self.table.read(var));
            averages.push((*result, quotient(sum, count)));
        }
        Some((totals, averages))
    }

    /// The division with the least work, if that is little.
    fn division(&mut self, inner: &Group, keys: &[Var], totals: Totals) -> Result<Option<Divided>> {
        if !is_dividable(inner) {
            return Ok(None);
        }
        // Estimates are only asked for when there is something to decide.
        let by = self.separators_of(inner, keys, &totals);
        let mut found = parts(inner, keys, &totals, (by, self));
        if found.is_empty() {
            return Ok(None);
        }
        let is_forced = self.tuning.aggregates_early;
        let rows = self.group_rows(inner)?;
        if rows < ROWS_MIN && !is_forced {
            return Ok(None);
        }
        let mut state = Divided {
            group: inner.clone(),
            totals,
            parts: Vec::new(),
            parts_cost: 0.0,
            cost: 0.0,
        };
        let mut estimates_left = match is_forced {
            true => usize::MAX,
            false => estimates_worth(rows),
        };
        let mut least: Option<f64> = None;
        while !found.is_empty() {
            let mut cheapest: Option<(f64, f64, Part)> = None;
            for part in found {
                let Some(left) = estimates_left.checked_sub(1) else {
                    break;
                };
                estimates_left = left;
                let (below, above) = self.costs_of(&part, &state.totals)?;
                if cheapest
                    .as_ref()
                    .is_none_or(|(b, a, _)| below + above < b + a)
                {
                    cheapest = Some((below, above, part));
                }
            }
            let Some((below, above, part)) = cheapest else {
                break;
            };
            let cost = state.parts_cost + below + above;
            if !is_forced && least.is_some_and(|least| cost >= least) {
                break;
            }
            state = self.take_away(state, &part, below);
            least = Some(cost);
            found = parts(&state.group, keys, &state.totals, (by, self));
        }
        let pays = |cost: &f64| is_forced || rows >= GAIN_MIN * cost;
        let cost = least.filter(pays);
        Ok(cost.map(|cost| Divided { cost, ..state }))
    }

    /// What separates parts. Where a `NOT EXISTS` pairs what belongs to a key with what is
    /// aggregated, the keys' side stays as it is: with weights, the pairs would have to be made
    /// ([`complement`](super::complement)).
    fn separators_of(&self, inner: &Group, keys: &[Var], totals: &Totals) -> Separators {
        let aggregate = |(result, total): &(Var, Total)| (*result, total.aggregate(&self.table));
        let aggregates: Aggregates = totals.iter().map(aggregate).collect();
        match inner.steps.is_empty() || self.is_over_complement(inner, keys, &aggregates) {
            true => Separators::OfItems,
            false => Separators::OfItemsAndSteps,
        }
    }

    /// What a part is expected to cost by itself, and the rest with it.
    fn costs_of(&self, part: &Part, totals: &Totals) -> Result<(f64, f64)> {
        let separator = VarSet::of(part.separator.iter().copied());
        let estimate = self.group_estimate(&part.below)?;
        let groups = estimate.groups(part.separator.iter().copied());
        let read = match part.below.items.as_slice() {
            items if part.is_counted_by_runs => self.run_rows(items)? * RUN_ROW_COST,
            // Branches are counted each by itself.
            [Item::Union(branches), pure @ ..]
                if part.below.filters.is_empty()
                    && part.below.steps.is_empty()
                    && pure.iter().all(|item| item.visible().is_subset(&separator))
                    // Where only values are asked for, branches are not counted.
                    && !totals.is_empty()
                    && totals
                        .iter()
                        .all(|(_, total)| matches!(total, Total::Sum { .. })) =>
            {
                let mut read = 0.0;
                for branch in branches {
                    read += match self.has_runs_by(branch, &part.separator) {
                        true => self.run_rows(&[&branch.items, pure].concat())? * RUN_ROW_COST,
                        false => self.group_rows(branch)?,
                    };
                }
                read
            }
            _ => estimate.rows,
        };
        let mut above = part.above.clone();
        above.push(aggregated(part, Aggregates::new()));
        Ok((read + groups, self.group_rows(&above)?))
    }

    /// The rows that are read where items are counted by runs.
    fn run_rows(&self, items: &[Item]) -> Result<f64> {
        let rows: Result<Vec<f64>> = items
            .iter()
            .map(|item| Ok(self.estimate(item)?.rows))
            .collect();
        Ok(rows?.iter().sum())
    }

    /// Whether a group is one pattern that has the values of a separator as runs.
    pub(super) fn has_runs_by(&self, group: &Group, separator: &[Var]) -> bool {
        match (group.bare_quad(), separator) {
            (Some(quad), &[key]) => {
                let pattern = operator_pattern(quad, &self.table);
                has_runs(&self.context, &pattern, self.table.name(key))
            }
            _ => false,
        }
    }

    /// The state without a part.
    fn take_away(&mut self, state: Divided, part: &Part, cost: f64) -> Divided {
        let own = part.own_variables();
        let separator = VarSet::of(part.separator.iter().copied());
        let (mut early, mut totals) = (Aggregates::new(), Totals::new());
        // The weight of the part where its parts had these weights.
        let mut weights: Vec<(Vec<Var>, Var)> = Vec::new();
        for (result, total) in state.totals {
            let total = match (total.side(&own, &separator, &self.table), &total) {
                (Some(Side::Below), _) => {
                    let partial = self.table.fresh("partial");
                    early.push((partial, total.partial(&own, &self.table)));
                    total.merged(self.table.read(partial), &own)
                }
                (_, Total::OfAny(_)) => total,
                (_, Total::Sum { .. }) => {
                    let inside = total.weights_of(&own);
                    let known = weights.iter().find(|(factors, _)| *factors == inside);
                    let weight = match known {
                        Some((_, weight)) => *weight,
                        None => {
                            let weight = self.table.fresh("weight");
                            early.push((weight, sum_of(None, &inside, &self.table)));
                            weights.push((inside, weight));
                            weight
                        }
                    };
                    total.weighted(&own, weight)
                }
            };
            totals.push((result, total));
        }
        let mut group = part.above.clone();
        if part.separator.is_empty() {
            // Nothing counted is nothing joined; any weight tells.
            let found = match weights.first() {
                Some((_, weight)) => *weight,
                None => {
                    let found = self.table.fresh("found");
                    early.push((found, sum_of(None, &[], &self.table)));
                    found
                }
            };
            let found = Box::new(self.table.read(found));
            let is_any = Expression::Greater(found, Box::new(number(0)));
            group.filters.push(is_any);
        }
        let item = aggregated(part, early);
        group.push(item.clone());
        let mut parts = state.parts;
        parts.push(item);
        Divided {
            group,
            totals,
            parts,
            parts_cost: state.parts_cost + cost,
            cost: state.cost,
        }
    }

    /// The totals of a group whose parts were taken away, by keys.
    fn aggregate_divided(&mut self, divided: &Divided, keys: &[Var]) -> Result<Relation> {
        for item in &divided.parts {
            if let Item::Derived(derived) = item {
                self.expect_again(derived);
            }
        }
        let totals = divided.totals.iter();
        let aggregates: Aggregates = totals
            .map(|(result, total)| (*result, total.aggregate(&self.table)))
            .collect();
        let solution = divided.group.visible.clone();
        self.aggregate_at_once(&divided.group, keys, (&aggregates, &solution))
    }
}

/// How many estimates may be made to save so many rows: one takes about as long as two thousand
/// rows of a join.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two small numbers"
)]
fn estimates_worth(rows: f64) -> usize {
    (rows / 2_000.0).clamp(4.0, 64.0) as usize
}

/// A part as an item.
fn aggregated(part: &Part, aggregates: Aggregates) -> Item {
    let certain = VarSet::of(part.separator.iter().copied());
    let mut visible = certain.clone();
    visible.extend(&VarSet::of(aggregates.iter().map(|(var, _)| *var)));
    Item::Derived(Box::new(Derived {
        certain,
        visible,
        modifier: Modifier::Aggregate {
            keys: part.separator.clone(),
            aggregates,
            solution: part.below.visible.clone(),
        },
        inner: part.below.clone(),
    }))
}
