//! Joins of two planned relations.
//!
//! Where both sides surely bind all shared variables, equality is all there is to it, and
//! DataFusion's hash join does it; the smaller side is the one that is kept in memory. Where a
//! shared variable may be unbound, compatibility is not an equivalence, and our own
//! `SolutionJoinExec` does it.
//!
//! Where the probe side of a hash join is a large pattern, the keys of the build side thin it out
//! while it runs (`KeysExec`): the estimate of what a text search, a union or a path gives may be
//! far too high, and the pattern would look up for each of its rows what the join drops.

use std::sync::Arc;

use datafusion_common::{JoinType, NullEquality};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::joins::{HashJoinExec, JoinOn, PartitionMode};
use orrery_operators::join::{
    JoinMode, JoinSpecification, KEYS_MAX, KeysExec, SolutionJoinExec, Uncounted,
};
use orrery_operators::pattern::{FoundIds, PatternExec};
use spargebra::algebra::Expression;

use crate::algebra::{Substituted, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

/// Expected rows of a probe side from which the keys of the build side are collected for it: half a
/// millisecond of work.
const THINNED_ROWS_MIN: f64 = 10_000.0;
/// The keys are no more than one part of so many of these rows, or they are not worth their
/// collection.
const THINNED_PART: f64 = 8.0;

/// The side of a join that is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Kept {
    Left,
    Right,
}

impl Planner<'_> {
    /// `Join(left, right)`.
    pub(in crate::plan) fn join(
        &mut self,
        left: Relation,
        right: Relation,
        needed: &VarSet,
        rows: Option<f64>,
    ) -> Result<Relation> {
        let shared = left.variables().intersection(&right.variables());
        let certain = left.certain.union(&right.certain);
        let rows = rows.unwrap_or_else(|| left.rows.max(right.rows));
        if (left.is_empty || right.is_empty) && self.tuning.rewrites {
            let both = left.variables().union(&right.variables());
            return self.nothing(&both.intersection(needed));
        }
        if self.tuning.rewrites && is_equality(&shared, &left, &right) {
            let (build, probe) = if left.rows <= right.rows {
                (left, right)
            } else {
                (right, left)
            };
            return self.hash_join(
                &build,
                &probe,
                &shared,
                JoinType::Inner,
                (needed, &certain, rows),
            );
        }
        // The right side is the one that is kept in memory.
        let (left, right) = if self.tuning.rewrites && left.rows < right.rows {
            (right, left)
        } else {
            (left, right)
        };
        self.solution_join(
            left,
            right,
            JoinMode::Inner,
            Vec::new(),
            (needed, &certain, rows),
        )
    }

    /// `LeftJoin(left, right, filters)`.
    pub(in crate::plan) fn left_join(
        &mut self,
        left: Relation,
        right: Relation,
        filters: Vec<Expression>,
        needed: &VarSet,
    ) -> Result<Relation> {
        if right.is_empty {
            return Ok(left);
        }
        let shared = left.variables().intersection(&right.variables());
        let certain = left.certain.clone();
        let rows = left.rows.max(right.rows);
        let is_equality = self.tuning.rewrites && is_equality(&shared, &left, &right);
        if !filters.is_empty() || !is_equality {
            return self.solution_join(
                left,
                right,
                JoinMode::Left,
                filters,
                (needed, &certain, rows),
            );
        }
        if left.rows <= right.rows {
            self.hash_join(
                &left,
                &right,
                &shared,
                JoinType::Left,
                (needed, &certain, rows),
            )
        } else {
            self.hash_join(
                &right,
                &left,
                &shared,
                JoinType::Right,
                (needed, &certain, rows),
            )
        }
    }

    /// `Minus(left, right)` of relations.
    pub(in crate::plan) fn minus_join(
        &mut self,
        left: Relation,
        right: Relation,
        substituted: &[Substituted],
        needed: &VarSet,
    ) -> Result<Relation> {
        let shared = left.variables().intersection(&right.variables());
        if right.is_empty || shared.is_empty() {
            return Ok(left);
        }
        let uncounted = self.uncounted(&shared, substituted);
        let replaced = VarSet::of(substituted.iter().map(|it| it.variable));
        let is_counted = shared
            .iter()
            .any(|var| !replaced.contains(var) && !is_witness(var, substituted));
        if self.tuning.rewrites && is_counted && is_equality(&shared, &left, &right) {
            return self.semi_join(left, right, &shared, true, needed);
        }
        let (certain, rows) = (left.certain.clone(), left.rows);
        self.solution_join(
            left,
            right,
            JoinMode::Minus(uncounted),
            Vec::new(),
            (needed, &certain, rows),
        )
    }

    /// The shared variables that `MINUS` is not to count. A witness stands for another variable,
    /// and is none itself.
    fn uncounted(&self, shared: &VarSet, substituted: &[Substituted]) -> Vec<Uncounted> {
        let name = |var| Arc::clone(self.table.name(var));
        let replaced = substituted.iter().map(|it| Uncounted {
            variable: name(it.variable),
            witness: it.witness.map(name),
        });
        let witnesses = substituted.iter().filter_map(|it| it.witness);
        let witnesses = witnesses.map(|witness| Uncounted {
            variable: name(witness),
            witness: None,
        });
        let is_shared = |it: &Uncounted| {
            let var = self.table.get(&it.variable);
            var.is_some_and(|var| shared.contains(var))
        };
        replaced.chain(witnesses).filter(is_shared).collect()
    }

    /// The rows of `left` that have (`is_negated`: have no) equal row in `right`.
    pub(in crate::plan) fn semi_join(
        &mut self,
        left: Relation,
        right: Relation,
        shared: &VarSet,
        is_negated: bool,
        needed: &VarSet,
    ) -> Result<Relation> {
        let kept = match left.rows <= right.rows {
            true => Kept::Left,
            false => Kept::Right,
        };
        self.semi_join_keeping(left, right, shared, (kept, is_negated), needed)
    }

    /// The rows of `left` that have (`is_negated`: have no) equal row in `right`, with one of both
    /// kept in memory. Where that is the right one, rows of the left one come as they are asked
    /// for.
    pub(in crate::plan) fn semi_join_keeping(
        &mut self,
        left: Relation,
        right: Relation,
        shared: &VarSet,
        (kept, is_negated): (Kept, bool),
        needed: &VarSet,
    ) -> Result<Relation> {
        let (certain, rows) = (left.certain.clone(), left.rows);
        let kind = match (kept, is_negated) {
            (Kept::Left, false) => JoinType::LeftSemi,
            (Kept::Left, true) => JoinType::LeftAnti,
            (Kept::Right, false) => JoinType::RightSemi,
            (Kept::Right, true) => JoinType::RightAnti,
        };
        let (build, probe) = match kept {
            Kept::Left => (left, right),
            Kept::Right => (right, left),
        };
        self.hash_join(&build, &probe, shared, kind, (needed, &certain, rows * 0.5))
    }

    /// DataFusion's hash join; `build` is kept in memory.
    fn hash_join(
        &mut self,
        build: &Relation,
        probe: &Relation,
        shared: &VarSet,
        kind: JoinType,
        (needed, certain, rows): (&VarSet, &VarSet, f64),
    ) -> Result<Relation> {
        let mut on: JoinOn = Vec::new();
        for var in shared.iter() {
            if let (Some(left), Some(right)) = (build.column(var), probe.column(var)) {
                let name = self.table.name(var);
                on.push((
                    Arc::new(Column::new(name, left)),
                    Arc::new(Column::new(name, right)),
                ));
            }
        }
        // The columns that the join gives, in its order; of a shared variable, the side that
        // is never padded with nulls.
        let all: Vec<(Var, bool)> = match kind {
            JoinType::LeftSemi | JoinType::LeftAnti => tagged(build, true),
            JoinType::RightSemi | JoinType::RightAnti => tagged(probe, false),
            _ => [tagged(build, true), tagged(probe, false)].concat(),
        };
        let from_build = kind != JoinType::Right;
        let kept: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, (var, is_build))| {
                let is_both = build.column(*var).is_some() && probe.column(*var).is_some();
                let is_semi = all.len() < build.columns.len() + probe.columns.len();
                needed.contains(*var) && (!is_both || is_semi || *is_build == from_build)
            })
            .map(|(at, _)| at)
            .collect();
        let columns: Vec<Var> = kept.iter().map(|&at| all[at].0).collect();
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let [left, right] = self.thinned(build, probe, shared, kind)?;
        let plan = HashJoinExec::try_new(
            left,
            right,
            on,
            None,
            &kind,
            Some(kept),
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        self.relation(Arc::new(plan), columns, certain, rows)
    }

    /// The two sides of a hash join: the probe side knows the keys of the build side, if it is a
    /// large pattern of whose rows no more come out than have one of them.
    fn thinned(
        &mut self,
        build: &Relation,
        probe: &Relation,
        shared: &VarSet,
        kind: JoinType,
    ) -> Result<[Arc<dyn ExecutionPlan>; 2]> {
        let as_they_are = [Arc::clone(&build.plan), Arc::clone(&probe.plan)];
        let drops_others = match kind {
            JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi => true,
            JoinType::Right | JoinType::Full | JoinType::RightAnti | JoinType::RightMark => false,
        };
        let pattern = probe.plan.downcast_ref::<PatternExec>();
        let (Some(pattern), Some(key)) = (pattern, shared.iter().next()) else {
            return Ok(as_they_are);
        };
        let is_large = probe.rows >= THINNED_ROWS_MIN || self.tuning.reduces_always;
        if !(self.tuning.rewrites && drops_others && is_large) {
            return Ok(as_they_are);
        }
        let found = FoundIds::new(Arc::clone(self.table.name(key)), self.found_places);
        let Some(thinned) = pattern.thinned_by(found.clone())? else {
            return Ok(as_they_are);
        };
        self.found_places += 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let keys_max = match self.tuning.reduces_always {
            true => KEYS_MAX,
            false => (probe.rows / THINNED_PART) as usize,
        };
        let keys = KeysExec::try_new(Arc::clone(&build.plan), found, keys_max)?;
        self.estimates.set(&keys, build.rows);
        self.estimates.carry(&probe.plan, &thinned);
        Ok([keys, thinned])
    }

    /// Our join with compatibility.
    pub(in crate::plan) fn solution_join(
        &mut self,
        left: Relation,
        right: Relation,
        mode: JoinMode,
        filters: Vec<Expression>,
        (needed, certain, rows): (&VarSet, &VarSet, f64),
    ) -> Result<Relation> {
        let mut visible = left.variables();
        match &mode {
            JoinMode::Inner | JoinMode::Left => visible.extend(&right.variables()),
            JoinMode::Minus(_) | JoinMode::Semi | JoinMode::Anti => {}
            JoinMode::Mark(name) => {
                let mark = self.table.of(name);
                visible.insert(mark);
            }
        }
        let columns: Vec<Var> = visible.intersection(needed).iter().collect();
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let plan: Arc<dyn ExecutionPlan> = SolutionJoinExec::try_new(
            Arc::clone(&self.context),
            left.plan,
            right.plan,
            JoinSpecification {
                mode,
                filters,
                output: self.names(&columns),
            },
        )?;
        self.relation(plan, columns, certain, rows)
    }
}

fn is_witness(var: Var, substituted: &[Substituted]) -> bool {
    substituted.iter().any(|it| it.witness == Some(var))
}

fn tagged(relation: &Relation, is_build: bool) -> Vec<(Var, bool)> {
    relation
        .columns
        .iter()
        .map(|var| (*var, is_build))
        .collect()
}

/// Whether the shared variables are bound in every row of both sides.
pub(in crate::plan) fn is_equality(shared: &VarSet, left: &Relation, right: &Relation) -> bool {
    !shared.is_empty() && shared.is_subset(&left.certain) && shared.is_subset(&right.certain)
}
