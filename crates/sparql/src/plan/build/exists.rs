//! `EXISTS`, as a filter and as a value.
//!
//! Three ways, from the cheapest:
//!
//! 1. Only patterns and conditions inside: `PatternExec` in semi, anti or mark mode. Conditions
//!    see the outer columns, so that correlation costs nothing.
//! 2. Nothing inside depends on the outer row but by sharing variables that are surely bound:
//!    a semi join with the pattern's solutions.
//! 3. Else the pattern is *correlated*: the outer rows are numbered, and every part of
//!    the pattern starts from them ([`correlation`](crate::plan::rewrite::correlation)), which is what the specification's
//!    substitution does, for all rows at once.

use std::sync::Arc;

use orrery_operators::join::JoinMode;
use orrery_operators::nodes::NumberedExec;
use orrery_operators::pattern::PatternMode;
use spargebra::algebra::Expression;

use super::join::is_equality;
use super::optional::matches_per_row;
use crate::algebra::expression::variables;
use crate::algebra::{Group, Seed, Substituted, Var, VarSet};
use crate::error::Result;
use crate::plan::estimate::expectations::existence_share;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::plan::rewrite::correlation::{correlated, depends_on, has_minus};

impl Planner<'_> {
    /// Keeps the rows for which the group has (`is_negated`: has no) solution.
    pub(in crate::plan) fn exists(
        &mut self,
        left: Relation,
        group: &Group,
        filters: &[Expression],
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        let rewrites = self.tuning.rewrites;
        let constants;
        let group = match rewrites {
            true => {
                let mut outside = left.variables();
                for filter in filters {
                    outside.extend(&variables(filter, &self.table));
                }
                constants = self.with_constants(group, &outside)?;
                &*constants
            }
            false => group,
        };
        if rewrites && group.is_patterns_only() {
            return self.exists_patterns(left, group, filters, is_negated, needed);
        }
        if rewrites && !depends_on(group, &left.variables(), &self.table) {
            return self.exists_by_join(left, group, filters, is_negated, needed);
        }
        let (left, row, right) = self.correlated_side(left, group, filters)?;
        if right.is_empty {
            return self.all_or_nothing(left, is_negated, needed);
        }
        let keys = VarSet::of([row]);
        debug_assert!(is_equality(&keys, &left, &right));
        self.semi_join(left, right, &keys, is_negated, needed)
    }

    fn exists_patterns(
        &mut self,
        left: Relation,
        group: &Group,
        filters: &[Expression],
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        let Some(quads) = self.ordered_quads(group, &left)? else {
            return self.all_or_nothing(left, is_negated, needed);
        };
        let conditions = [filters, &group.filters].concat();
        if is_negated {
            return self.anti_patterns(left, &quads, conditions, needed);
        }
        let certain = left.certain.clone();
        let rows = left.rows * existence_share(matches_per_row(&left, &quads));
        let columns = left.variables().intersection(needed).iter().collect();
        self.pattern_step(
            left,
            PatternMode::Semi,
            &quads,
            conditions,
            columns,
            (&certain, rows),
        )
    }

    /// The pattern has no solution whatever the row.
    fn all_or_nothing(
        &mut self,
        left: Relation,
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        if is_negated {
            return Ok(left);
        }
        let visible = left.variables().intersection(needed);
        self.nothing(&visible)
    }

    /// Binds `variable` to whether the group has a solution.
    pub(in crate::plan) fn mark(
        &mut self,
        left: Relation,
        variable: Var,
        group: &Group,
        needed: &VarSet,
    ) -> Result<Relation> {
        let rewrites = self.tuning.rewrites;
        if rewrites
            && group.is_patterns_only()
            && let Some(quads) = self.ordered_quads(group, &left)?
        {
            let mut certain = left.certain.clone();
            certain.insert(variable);
            let mut columns: Vec<Var> = left.variables().intersection(needed).iter().collect();
            columns.push(variable);
            let mode = PatternMode::Mark(Arc::clone(self.table.name(variable)));
            let (rows, filters) = (left.rows, group.filters.clone());
            return self.pattern_step(left, mode, &quads, filters, columns, (&certain, rows));
        }
        if rewrites && !depends_on(group, &left.variables(), &self.table) {
            return self.mark_by_join(left, group, variable, needed);
        }
        let (left, row, right) = self.correlated_side(left, group, &[])?;
        let right = self.with_columns(right, vec![row])?;
        self.mark_join(left, right, variable, needed)
    }

    fn mark_by_join(
        &mut self,
        left: Relation,
        group: &Group,
        variable: Var,
        needed: &VarSet,
    ) -> Result<Relation> {
        let shared = left.variables().intersection(&group.visible);
        let (left, right) = self.right_side(left, group, &shared)?;
        let right = self.with_columns(right, shared.iter().collect())?;
        self.mark_join(left, right, variable, needed)
    }

    fn mark_join(
        &mut self,
        left: Relation,
        right: Relation,
        variable: Var,
        needed: &VarSet,
    ) -> Result<Relation> {
        let mut certain = left.certain.clone();
        certain.insert(variable);
        let rows = left.rows;
        let mode = JoinMode::Mark(Arc::clone(self.table.name(variable)));
        self.solution_join(
            left,
            right,
            mode,
            Vec::new(),
            (&with(needed, variable), &certain, rows),
        )
    }

    /// A semi or anti join with the pattern's own solutions.
    fn exists_by_join(
        &mut self,
        left: Relation,
        group: &Group,
        filters: &[Expression],
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        let shared = left.variables().intersection(&group.visible);
        let mut right_needed = shared.clone();
        for filter in filters {
            right_needed.extend(&variables(filter, &self.table));
        }
        let (left, right) = self.right_side(left, group, &right_needed)?;
        if right.is_empty {
            return self.all_or_nothing(left, is_negated, needed);
        }
        if filters.is_empty() && is_equality(&shared, &left, &right) {
            return self.semi_join(left, right, &shared, is_negated, needed);
        }
        let mode = if is_negated {
            JoinMode::Anti
        } else {
            JoinMode::Semi
        };
        let (certain, rows) = (left.certain.clone(), left.rows * 0.5);
        self.solution_join(
            left,
            right,
            mode,
            filters.to_vec(),
            (needed, &certain, rows),
        )
    }

    /// The left side with its rows numbered, the number's variable, and the correlated
    /// solutions with that variable.
    fn correlated_side(
        &mut self,
        left: Relation,
        group: &Group,
        filters: &[Expression],
    ) -> Result<(Relation, Var, Relation)> {
        let row = self.table.fresh("row");
        let numbered = self.numbered(left, row)?;
        let left = self.shared(&numbered)?;
        let mut group = group.clone();
        for filter in filters {
            group.outer.extend(&variables(filter, &self.table));
            group.filters.push(filter.clone());
        }
        let mut mentioned = VarSet::of([row]);
        for var in left.variables().iter() {
            if group.visible.contains(var) || group.outer.contains(var) {
                mentioned.insert(var);
            }
        }
        let mut seed = self.with_columns(left.clone(), mentioned.iter().collect())?;
        let mut substituted = Vec::new();
        if has_minus(&group) {
            (seed, substituted) = self.with_witnesses(seed)?;
        }
        let item = Seed {
            number: self.seeds.len(),
            visible: seed.variables(),
            certain: seed.certain.clone(),
            substituted,
        };
        self.seeds.push(seed);
        let group = correlated(&group, &item);
        let right = self.group(&group, None, &VarSet::of([row]), None)?;
        Ok((left, row, right))
    }

    /// What the rows of a seed replace: all their variables. Of those that may be unbound, a copy tells later
    /// in which rows they were not.
    fn with_witnesses(&mut self, seed: Relation) -> Result<(Relation, Vec<Substituted>)> {
        let mut substituted = Vec::with_capacity(seed.columns.len());
        let mut copies = Vec::new();
        for &variable in &seed.columns {
            let witness = match seed.certain.contains(variable) {
                true => None,
                false => Some(self.table.fresh("outer")),
            };
            copies.extend(witness.map(|witness| (variable, witness)));
            substituted.push(Substituted { variable, witness });
        }
        Ok((self.with_copies(seed, &copies)?, substituted))
    }

    pub(in crate::plan) fn numbered(&mut self, input: Relation, row: Var) -> Result<Relation> {
        let name = Arc::clone(self.table.name(row));
        let plan = Arc::new(NumberedExec::new(input.plan, &name));
        let mut columns = input.columns;
        columns.push(row);
        let mut certain = input.certain;
        certain.insert(row);
        self.relation(plan, columns, certain, input.rows)
    }
}

fn with(set: &VarSet, var: Var) -> VarSet {
    let mut more = set.clone();
    more.insert(var);
    more
}
