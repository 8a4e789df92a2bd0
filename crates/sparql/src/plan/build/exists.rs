//! Plans of `EXISTS`, as a filter and as a value.
//!
//! Five ways, the first one that may be:
//!
//! 1. Nothing inside depends on the outer row, and no variable is shared: it is asked once whether
//!    there is a solution.
//! 2. Only patterns inside, of which single rows have so many partial matches that computing the
//!    different values of the shared variables is less
//!    ([`matched_values`](Planner::matched_values)): a semi join that keeps these.
//! 3. Only patterns and conditions inside: `PatternExec` in semi, anti or mark mode. Conditions
//!    see the outer columns, so that correlation costs nothing.
//! 4. Nothing inside depends on the outer row but by sharing variables that are surely bound:
//!    a semi join with the pattern's solutions.
//! 5. Else the pattern is *correlated*: the outer rows are numbered, and every part of the pattern
//!    starts from them ([`correlation`](crate::plan::rewrite::correlation)), which is what the
//!    specification's substitution does, for all rows at once.

use std::sync::Arc;

use orrery_operators::join::JoinMode;
use orrery_operators::nodes::NumberedExec;
use orrery_operators::pattern::PatternMode;
use spargebra::algebra::Expression;

use super::join::{Kept, is_equality};
use super::optional::matches_per_row;
use crate::algebra::expression::variables;
use crate::algebra::{Group, Quad, Seed, Substituted, Var, VarSet};
use crate::error::Result;
use crate::plan::estimate::expectations::existence_share;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::plan::rewrite::correlation::{Reach, correlated, depends_on, has_minus};

/// Different values of which a semi join may keep so many, as far as one knows: a hash table of
/// them does not spill.
const VALUES_MAX: f64 = 4_000_000.0;
/// Rows that a pattern gives at a time where no limit reaches it: even for one row so many are
/// matched.
const BATCH_ROWS: f64 = 8_192.0;

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
        if rewrites && filters.is_empty() && self.is_apart(&left, group) {
            let any = self.any_solution(group.clone())?;
            return self.exists_anything(left, any, is_negated, needed);
        }
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
        if filters.is_empty()
            && let Some(right) = self.matched_values(&left, group, &quads, is_negated)?
        {
            let shared = right.variables();
            let kept = (Kept::Right, is_negated);
            return self.semi_join_keeping(left, right, &shared, kept, needed);
        }
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

    /// Whether a group shares nothing with the rows around it, and is the same for all of them.
    fn is_apart(&self, left: &Relation, group: &Group) -> bool {
        let outside = left.variables();
        !outside.intersects(&group.visible)
            && !depends_on(group, &outside, &self.table)
            && group.is_steady()
    }

    /// All rows or none: whether something that has no variable of theirs has a row.
    fn exists_anything(
        &mut self,
        left: Relation,
        any: Relation,
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        if any.is_empty {
            return self.all_or_nothing(left, is_negated, needed);
        }
        let mode = match is_negated {
            true => JoinMode::Anti,
            false => JoinMode::Semi,
        };
        let any = self.with_columns(any, Vec::new())?;
        let (certain, rows) = (left.certain.clone(), left.rows * 0.5);
        self.solution_join(left, any, mode, Vec::new(), (needed, &certain, rows))
    }

    /// The different values of the variables that patterns share with the left side, where these
    /// are much less to compute than partial matches of each row, of which all are made but the
    /// last step's. Where no more rows are asked for than the first ones of the left side give,
    /// matches of these alone are compared. Equal rows match equally, and what is inside sees
    /// nothing else of them: so the group may be divided as if its solutions were grouped.
    pub(in crate::plan) fn matched_values(
        &mut self,
        left: &Relation,
        group: &Group,
        quads: &[(&Quad, f64)],
        is_negated: bool,
    ) -> Result<Option<Relation>> {
        let shared = left.variables().intersection(&group.visible);
        let is_equality = !shared.is_empty()
            && shared.is_subset(&left.certain)
            && shared.is_subset(&group.items_certain);
        if !is_equality || depends_on(group, &left.variables(), &self.table) {
            return Ok(None);
        }
        let partial = quads.split_last().map_or(&[][..], |(_, partial)| partial);
        let rows = partial.iter().map(|(_, rows)| *rows).fold(0.0, f64::max);
        let found = existence_share(matches_per_row(left, quads));
        let passing = if is_negated { 1.0 - found } else { found };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let read = match self.rows_asked {
            Some(rows) => ((rows as f64 / passing).max(BATCH_ROWS) / left.rows.max(1.0)).min(1.0),
            None => 1.0,
        };
        let keys: Vec<Var> = shared.iter().collect();
        let right = self.distinct_in_steps(group, &keys, rows * read)?;
        Ok(right.filter(|right| {
            !right.is_empty && right.rows <= VALUES_MAX && shared.is_subset(&right.certain)
        }))
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
        if rewrites && self.is_apart(&left, group) {
            let any = self.any_solution(group.clone())?;
            let any = self.with_columns(any, Vec::new())?;
            return self.mark_join(left, any, variable, needed);
        }
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
        let group = correlated(&group, &item, Reach::Patterns);
        let right = self.group(&group, None, &VarSet::of([row]), None)?;
        Ok((left, row, right))
    }

    /// What the rows of a seed replace: all their variables. Of those that may be unbound, a copy
    /// tells later in which rows they were not.
    pub(in crate::plan) fn with_witnesses(
        &mut self,
        seed: Relation,
    ) -> Result<(Relation, Vec<Substituted>)> {
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
