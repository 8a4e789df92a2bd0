//! Estimates of items and groups: rows, and distinct values per variable.
//!
//! A [`Join`] for the order of a group's items is made of these; groups that are items of others,
//! subqueries and groupings give their own expectation to the level above.

use std::sync::Arc;

use orrery_storage::statistics::STAR_PREDICATES_MAX;
use orrery_term::TermId;
use spargebra::algebra::Expression;

use super::cardinality::{Access, Condition, Join, Member, Star, VARIABLES_MAX};
use super::id_ranges::bounds_ids;
use crate::algebra::expression::variables;
use crate::algebra::{
    Derived, GraphAlgorithm, Group, Item, Modifier, Quad, Scope, Slot, StepKind, Var, VarSet,
    VariableTable,
};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::{Estimate, selectivity};

/// The share of rows that a condition on the existence of something keeps, where nothing is known.
const EXISTENCE_UNKNOWN: f64 = 0.5;
/// Of solutions that are grouped by something unknown, how many are expected to be different.
const DIFFERENT_UNKNOWN: f64 = 0.5;

impl Planner<'_> {
    pub(in crate::plan) fn estimate(&self, item: &Item) -> Result<Estimate> {
        self.context.patience().check()?;
        Ok(match item {
            Item::Quad(quad) => self.estimator.quad(quad, &self.table)?,
            Item::Path(path) => self.estimator.path(path)?,
            Item::Values(values) => {
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let rows = values.rows.len() as f64;
                uniform(rows, &item.visible())
            }
            Item::Graphs(scope) => uniform(self.estimator.graph_names(scope)?, &item.visible()),
            Item::Union(branches) => {
                let branches: Result<Vec<Estimate>> =
                    branches.iter().map(|it| self.group_estimate(it)).collect();
                union_of(&branches?)
            }
            Item::Group(inner) => self.group_estimate(inner)?,
            Item::Derived(derived) => self.derived_estimate(derived)?,
            Item::Service(service) => uniform(service.rows, &item.visible()),
            Item::Mapped(mapped) => uniform(mapped.expected_rows(), &item.visible()),
            Item::Algorithm(_) => uniform(GraphAlgorithm::ROWS, &item.visible()),
            Item::Weights(weights) => uniform(weights.expected_rows(), &item.visible()),
            Item::Search(search) => uniform(search.expected_rows(), &item.visible()),
            Item::Seed(seed) => {
                let rows = self.seeds[seed.number].rows;
                match self.seed_values.get(&seed.number) {
                    Some(distinct) => Estimate {
                        rows,
                        distinct: distinct.clone(),
                        work: rows,
                    },
                    None => uniform(rows, &item.visible()),
                }
            }
        })
    }

    /// Expected rows of a group by itself.
    pub(in crate::plan) fn group_rows(&self, group: &Group) -> Result<f64> {
        Ok(self.group_estimate(group)?.rows)
    }

    /// What is expected of a group by itself.
    pub(in crate::plan) fn group_estimate(&self, group: &Group) -> Result<Estimate> {
        let outside = VarSet::default();
        let group = &*self.with_filters_rewritten(group, &outside)?;
        let estimates = self.estimates_of(group)?;
        let join = self.join_of(group, &estimates, None)?;
        let members: Vec<usize> = (0..group.items.len()).collect();
        let mut rows = join.rows(&members).filtered;
        for step in &group.steps {
            rows *= match &step.kind {
                StepKind::Filter(condition) => selectivity(condition),
                StepKind::Minus { .. } | StepKind::Exists { .. } => EXISTENCE_UNKNOWN,
                StepKind::Optional { .. }
                | StepKind::OptionalIf { .. }
                | StepKind::Lateral { .. }
                | StepKind::Bind { .. }
                | StepKind::Mark { .. } => 1.0,
            };
        }
        let mut distinct: Vec<(Var, f64)> = Vec::new();
        for (var, values) in estimates.iter().flat_map(|estimate| &estimate.distinct) {
            let values = values.min(rows.max(1.0));
            match distinct.iter_mut().find(|(known, _)| known == var) {
                Some((_, fewest)) => *fewest = fewest.min(values),
                None => distinct.push((*var, values)),
            }
        }
        let work = estimates.iter().map(|estimate| estimate.work);
        let work = work.fold(rows, f64::max);
        Ok(Estimate {
            rows,
            distinct,
            work,
        })
    }

    pub(in crate::plan) fn estimates_of(&self, group: &Group) -> Result<Vec<Estimate>> {
        group.items.iter().map(|item| self.estimate(item)).collect()
    }

    /// What is expected of a group under a modifier.
    fn derived_estimate(&self, derived: &Derived) -> Result<Estimate> {
        let mut inner = self.group_estimate(&derived.inner)?;
        inner
            .distinct
            .retain(|(var, _)| derived.visible.contains(*var));
        let rows = match &derived.modifier {
            Modifier::Project(_) | Modifier::Order(_) => inner.rows,
            Modifier::Distinct => inner.groups(derived.visible.iter()),
            Modifier::Slice { limit, of_each, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let limit = limit.map_or(f64::MAX, |limit| limit as f64);
                let slices = match of_each.as_slice() {
                    [] => 1.0,
                    keys => inner.groups(keys.iter().copied()),
                };
                inner.rows.min(limit * slices)
            }
            Modifier::Aggregate { keys, .. } => inner.groups(keys.iter().copied()),
        };
        for (_, values) in &mut inner.distinct {
            *values = values.min(rows.max(1.0));
        }
        for var in derived.visible.iter() {
            if !inner.distinct.iter().any(|(known, _)| *known == var) {
                inner.distinct.push((var, rows.max(1.0)));
            }
        }
        inner.rows = rows;
        let is_read_in_part = match &derived.modifier {
            Modifier::Slice { .. } => true,
            // Counts of one pattern by one variable are the lengths of runs.
            Modifier::Aggregate { keys, .. } => {
                keys.len() == 1 && derived.inner.bare_quad().is_some()
            }
            Modifier::Project(_) | Modifier::Order(_) | Modifier::Distinct => false,
        };
        if is_read_in_part {
            inner.work = rows;
        }
        Ok(inner)
    }

    /// How many different values the variables have in so many solutions of a group.
    pub(in crate::plan) fn different(
        &self,
        group: &Group,
        keys: &VarSet,
        rows: f64,
    ) -> Result<f64> {
        let mut estimate = self.group_estimate(group)?;
        estimate.rows = rows;
        Ok(estimate.groups(keys.iter()))
    }

    /// The group's items as members of a join.
    pub(in crate::plan) fn join_of(
        &self,
        group: &Group,
        estimates: &[Estimate],
        seed: Option<&Relation>,
    ) -> Result<Join> {
        let local = LocalVariables::of(group, seed);
        let members = group
            .items
            .iter()
            .zip(estimates)
            .map(|(item, estimate)| Member {
                variables: local.mask(&item.visible()),
                rows: estimate.rows.max(1e-3),
                work: estimate.work.max(estimate.rows).max(1e-3),
                distinct: estimate
                    .distinct
                    .iter()
                    .filter_map(|(var, distinct)| Some((local.number(*var)?, *distinct)))
                    .collect(),
                access: access(item),
            })
            .collect();
        let conditions = group
            .filters
            .iter()
            .map(|filter| Condition {
                variables: local.mask(&variables(filter, &self.table)),
                // The exact count of the range is the better estimate.
                selectivity: match group
                    .items
                    .iter()
                    .any(|item| is_ranged(item, filter, &self.table))
                {
                    true => 1.0,
                    false => selectivity(filter),
                },
            })
            .collect();
        Ok(Join {
            members,
            conditions,
            stars: self.stars(group, &local)?,
            patience: Arc::clone(self.context.patience()),
            seed_rows: seed.map(|seed| seed.rows),
            seed_variables: seed.map_or(0, |seed| local.mask(&seed.variables())),
            ..Join::default()
        })
    }

    /// The stars among the group's patterns.
    fn stars(&self, group: &Group, local: &LocalVariables) -> Result<Vec<Star>> {
        /// The patterns around one subject: number of the member, predicate, whether the object is
        /// selected.
        type Arms = Vec<(usize, TermId, bool)>;
        let mut subjects: Vec<(u32, Arms)> = Vec::new();
        for (number, item) in group.items.iter().enumerate().take(VARIABLES_MAX) {
            let Item::Quad(quad) = item else { continue };
            let (Some(subject), Slot::Constant(predicate)) =
                (quad.subject.variable(), quad.predicate)
            else {
                continue;
            };
            let Some(subject) = local.number(subject) else {
                continue;
            };
            if !self.sees_all_graphs(quad) || quad.subject == quad.object {
                continue;
            }
            let is_selected = quad.object.variable().is_none() || quad.object_ranges.is_some();
            let arm = (number, predicate, is_selected);
            match subjects.iter_mut().find(|(known, _)| *known == subject) {
                Some((_, arms)) if arms.len() < STAR_PREDICATES_MAX => arms.push(arm),
                Some(_) => {}
                None => subjects.push((subject, vec![arm])),
            }
        }
        let mut stars = Vec::new();
        for (subject, arms) in subjects.into_iter().filter(|(_, arms)| arms.len() > 1) {
            let predicates: Vec<TermId> = arms.iter().map(|(_, predicate, _)| *predicate).collect();
            let Some((sets, growth)) = self.estimator.star(&predicates)? else {
                continue;
            };
            let selected = arms.iter().enumerate();
            stars.push(Star {
                subject,
                selected: selected.fold(0, |mask, (number, (_, _, is_selected))| {
                    mask | u32::from(*is_selected) << number
                }),
                members: arms.into_iter().map(|(member, _, _)| member).collect(),
                sets,
                growth,
            });
        }
        Ok(stars)
    }

    /// Whether a pattern matches the quads of all graphs.
    pub(in crate::plan) fn sees_all_graphs(&self, quad: &Quad) -> bool {
        match quad.scope {
            Scope::AllUnion => true,
            Scope::Default => !self.context.view().has_named_graphs(),
            Scope::Union(_) | Scope::Named(_) | Scope::NamedVariable { .. } => false,
        }
    }
}

/// The share of rows that find at least one of so many matches a row.
pub(in crate::plan) fn existence_share(matches_per_row: f64) -> f64 {
    // As if matches fell on rows at random; nothing is ever quite sure.
    (1.0 - (-matches_per_row).exp()).clamp(0.02, 0.98)
}

impl Estimate {
    /// How many different values some variables have together.
    pub(in crate::plan) fn groups(&self, keys: impl Iterator<Item = Var>) -> f64 {
        let mut combinations = 1.0;
        for key in keys {
            let known = self.distinct.iter().find(|(var, _)| *var == key);
            combinations *= match known {
                Some((_, values)) => *values,
                None => (self.rows * DIFFERENT_UNKNOWN).max(1.0),
            };
        }
        // Of so many combinations, those that so many rows meet at random.
        let met = combinations * -(-self.rows / combinations).exp_m1();
        met.min(self.rows).max(1.0)
    }
}

/// What is expected of a union. A value that is joined to it finds its matches of all branches, so
/// that the distinct values of a variable are the rows by the matches that a value has, whether the
/// branches have the same values or others.
fn union_of(branches: &[Estimate]) -> Estimate {
    let mut union = Estimate::default();
    // Of each variable: the rows that bind it, and the matches of a value.
    let mut bound: Vec<(Var, f64, f64)> = Vec::new();
    for branch in branches {
        union.rows += branch.rows;
        union.work += branch.work;
        for &(var, values) in &branch.distinct {
            let matches = branch.rows / values.max(1.0);
            match bound.iter_mut().find(|(known, ..)| *known == var) {
                Some((_, rows, sum)) => {
                    *rows += branch.rows;
                    *sum += matches;
                }
                None => bound.push((var, branch.rows, matches)),
            }
        }
    }
    let distinct = bound.into_iter();
    union.distinct = distinct
        .map(|(var, rows, matches)| (var, (rows / matches.max(f64::MIN_POSITIVE)).max(1.0)))
        .collect();
    union
}

fn access(item: &Item) -> Access {
    match item {
        Item::Quad(_) | Item::Path(_) | Item::Weights(_) => Access::Lookup,
        Item::Service(service) if service.is_repeatable => Access::Lookup,
        Item::Union(branches) => Access::Seeded(branches.len()),
        Item::Group(_) => Access::Seeded(1),
        Item::Derived(derived) if !derived.seedable().is_empty() => Access::Seeded(1),
        Item::Values(_)
        | Item::Graphs(_)
        | Item::Seed(_)
        | Item::Service(_)
        | Item::Mapped(_)
        | Item::Search(_)
        | Item::Algorithm(_)
        | Item::Derived(_) => Access::Whole,
    }
}

/// Whether the ids that pass the filter are a range of the pattern.
fn is_ranged(item: &Item, filter: &Expression, table: &VariableTable) -> bool {
    match item {
        Item::Quad(quad) if quad.object_ranges.is_some() => quad
            .object
            .variable()
            .is_some_and(|object| bounds_ids(filter, table.name(object))),
        _ => false,
    }
}

fn uniform(rows: f64, variables: &VarSet) -> Estimate {
    Estimate {
        rows,
        work: rows,
        distinct: variables.iter().map(|var| (var, rows.max(1.0))).collect(),
    }
}

/// The variables of one join, numbered for bit masks.
struct LocalVariables {
    variables: Vec<Var>,
}

impl LocalVariables {
    fn of(group: &Group, seed: Option<&Relation>) -> Self {
        let mut all = group.visible.clone();
        if let Some(seed) = seed {
            all.extend(&seed.variables());
        }
        Self {
            variables: all.iter().take(VARIABLES_MAX).collect(),
        }
    }

    fn number(&self, var: Var) -> Option<u32> {
        let at = self.variables.binary_search(&var).ok()?;
        u32::try_from(at).ok()
    }

    fn mask(&self, set: &VarSet) -> u128 {
        set.iter()
            .filter_map(|var| self.number(var))
            .fold(0, |mask, number| mask | 1 << number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_joined_to_a_union_finds_its_matches_in_all_branches() {
        let mut table = VariableTable::default();
        let a = table.of("a");
        let branch = |rows, values| Estimate {
            rows,
            distinct: vec![(a, values)],
            work: rows,
        };
        let union = union_of(&[branch(1_000.0, 10.0), branch(1_000.0, 1_000.0)]);
        let matches = union.rows / union.distinct[0].1;
        assert!((matches - 101.0).abs() < 1e-6, "{matches}");
    }

    #[test]
    fn groups_are_no_more_than_rows_nor_than_combinations() {
        let mut table = VariableTable::default();
        let (a, b) = (table.of("a"), table.of("b"));
        let mut estimate = Estimate {
            rows: 1e6,
            distinct: vec![(a, 10.0), (b, 20.0)],
            work: 1e6,
        };
        assert!((estimate.groups([a].into_iter()) - 10.0).abs() < 0.01);
        assert!((estimate.groups([a, b].into_iter()) - 200.0).abs() < 0.01);
        estimate.rows = 5.0;
        assert!(estimate.groups([a, b].into_iter()) <= 5.0);
        assert!((estimate.groups(std::iter::empty()) - 1.0).abs() < 0.01);
    }
}
