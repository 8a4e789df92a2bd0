//! Plans of `OPTIONAL` and `MINUS`.
//!
//! A right side of patterns only is looked up for each row of the left
//! (`PatternExec` in optional or anti mode). Anything else is planned by itself, from the left
//! side's distinct keys where all of it would be too much, and joined.

use orrery_operators::pattern::{PatternMode, PatternSpecification};
use spargebra::algebra::Expression;
use spargebra::term::Variable;

use super::join::Kept;
use crate::algebra::expression::variables;
use crate::algebra::{Group, Item, Quad, Seed, Substituted, Var, VarSet};
use crate::error::Result;
use crate::plan::estimate::expectations::existence_share;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// How many matches of patterns are expected of each row of the left side.
pub(in crate::plan) fn matches_per_row(left: &Relation, quads: &[(&Quad, f64)]) -> f64 {
    quads
        .last()
        .map_or(1.0, |(_, rows)| rows / left.rows.max(1.0))
}

impl Planner<'_> {
    /// `LeftJoin(left, group, filters)`, of the rows that bind the guard.
    pub(in crate::plan) fn optional(
        &mut self,
        left: Relation,
        group: &Group,
        filters: &[Expression],
        guard: Option<Var>,
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut filters = filters.to_vec();
        if let Some(guard) = guard {
            let name = Variable::new_unchecked(self.table.name(guard).as_ref());
            filters.push(Expression::Bound(name));
        }
        if self.tuning.rewrites && group.is_patterns_only() {
            return self.optional_patterns(left, group, filters, needed);
        }
        let mut right_needed = needed.union(&left.variables());
        for filter in &filters {
            right_needed.extend(&variables(filter, &self.table));
        }
        let (left, right) = self.right_side(left, group, &right_needed)?;
        self.left_join(left, right, filters, needed)
    }

    /// `LeftJoin(left, group, conditions)` by its definition (SPARQL 1.1, 18.5): the joined
    /// solutions that fulfil the conditions, and the left ones that have none. The left rows are
    /// numbered, so that the joined ones find back to theirs.
    pub(in crate::plan) fn optional_if(
        &mut self,
        left: Relation,
        group: &Group,
        conditions: &Group,
        needed: &VarSet,
    ) -> Result<Relation> {
        let row = self.table.fresh("row");
        let numbered = self.numbered(left, row)?;
        let left = self.shared(&numbered)?;
        let item = Item::Seed(Seed {
            number: self.seeds.len(),
            visible: left.variables(),
            certain: left.certain.clone(),
            substituted: Vec::new(),
        });
        self.seeds.push(left.clone());
        let mut joined = Group::of(item);
        joined.push(Item::Group(Box::new(group.clone())));
        joined.filters.clone_from(&conditions.filters);
        joined.steps.clone_from(&conditions.steps);
        joined.visible.extend(&conditions.visible);
        joined.outer = group.outer.union(&conditions.outer);
        // What the left row binds surely, it has already.
        let brought = group.visible.intersection(needed).difference(&left.certain);
        let mut right_needed = brought;
        right_needed.insert(row);
        let right = self.group(&joined, None, &right_needed, None)?;
        let columns = right.variables().intersection(&right_needed);
        let right = self.with_columns(right, columns.iter().collect())?;
        self.left_join(left, right, Vec::new(), needed)
    }

    fn optional_patterns(
        &mut self,
        left: Relation,
        group: &Group,
        mut filters: Vec<Expression>,
        needed: &VarSet,
    ) -> Result<Relation> {
        let Some(quads) = self.ordered_quads(group, &left)? else {
            return Ok(left);
        };
        filters.extend(group.filters.iter().cloned());
        let certain = left.certain.clone();
        let matched = quads.last().map_or(0.0, |(_, rows)| *rows);
        let rows = left.rows.max(matched);
        let bound = left.variables().union(&group.visible);
        let columns: Vec<Var> = bound.intersection(needed).iter().collect();
        self.pattern_step(
            left,
            PatternMode::Optional,
            &quads,
            filters,
            columns,
            (&certain, rows),
        )
    }

    /// A `PatternExec` on top of a relation.
    pub(in crate::plan) fn pattern_step(
        &mut self,
        left: Relation,
        mode: PatternMode,
        quads: &[(&Quad, f64)],
        filters: Vec<Expression>,
        columns: Vec<Var>,
        (certain, rows): (&VarSet, f64),
    ) -> Result<Relation> {
        let specification = PatternSpecification {
            mode,
            steps: self.pattern_steps(quads),
            filters,
            given: Vec::new(),
            found: Vec::new(),
            output: self.names(&columns),
            fetch: None,
            vector_rows: self.tuning.vector_rows,
            intersects: self.tuning.intersects,
        };
        let plan = self.pattern_node(Some(left.plan), specification)?;
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        self.relation(plan, columns, certain, rows)
    }

    /// `Minus(left, group)`. Variables that were replaced by terms must agree, and are not counted
    /// as shared.
    pub(in crate::plan) fn minus(
        &mut self,
        left: Relation,
        group: &Group,
        substituted: &[Substituted],
        needed: &VarSet,
    ) -> Result<Relation> {
        let shared = left.variables().intersection(&group.visible);
        let always = substituted.iter().filter(|it| it.witness.is_none());
        let sometimes = substituted.iter().filter_map(|it| it.witness);
        let terms = VarSet::of(always.map(|it| it.variable)).union(&VarSet::of(sometimes));
        if shared.is_subset(&terms) {
            return Ok(left);
        }
        // With a shared variable that is always bound on both sides, the domains always
        // meet, and a match is all that counts.
        let is_plain = substituted.is_empty()
            && shared.is_subset(&left.certain)
            && shared.is_subset(&group.certain);
        if self.tuning.rewrites && group.is_patterns_only() && is_plain {
            let Some(quads) = self.ordered_quads(group, &left)? else {
                return Ok(left);
            };
            if let Some(right) = self.matched_values(&left, group, &quads, true)? {
                return self.semi_join_keeping(left, right, &shared, (Kept::Right, true), needed);
            }
            return self.anti_patterns(left, &quads, group.filters.clone(), needed);
        }
        let (left, right) = match self.seed_for_group(&left, group, &shared)? {
            Some((left, seed)) => (left, self.group(group, Some(seed), &shared, None)?),
            None => {
                let right = self.group(group, None, &shared, None)?;
                (left, right)
            }
        };
        self.minus_join(left, right, substituted, needed)
    }

    pub(in crate::plan) fn anti_patterns(
        &mut self,
        left: Relation,
        quads: &[(&Quad, f64)],
        filters: Vec<Expression>,
        needed: &VarSet,
    ) -> Result<Relation> {
        let certain = left.certain.clone();
        let rows = left.rows * (1.0 - existence_share(matches_per_row(&left, quads)));
        let columns = left.variables().intersection(needed).iter().collect();
        self.pattern_step(
            left,
            PatternMode::Anti,
            quads,
            filters,
            columns,
            (&certain, rows),
        )
    }

    /// Plans the right side of a step, reduced to the left's keys where that pays. For steps that
    /// look at compatible solutions only, so not for `MINUS`.
    pub(in crate::plan) fn right_side(
        &mut self,
        left: Relation,
        group: &Group,
        needed: &VarSet,
    ) -> Result<(Relation, Relation)> {
        let keys = left.variables().intersection(&group.visible);
        match self.seed_for_compatible_group(&left, group, &keys)? {
            Some((left, seed)) => {
                let right = self.group(group, Some(seed), &needed.union(&keys), None)?;
                Ok((left, right))
            }
            None => {
                let right = self.group(group, None, &needed.union(&keys), None)?;
                Ok((left, right))
            }
        }
    }
}
