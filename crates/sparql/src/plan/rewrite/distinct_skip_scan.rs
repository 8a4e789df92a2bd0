//! The skip scan: `DISTINCT` over one position of one pattern, by jumps in a permutation.
//!
//! `SELECT DISTINCT ?p { ?s ?p ?o }` has as many answers as there are predicates; reading all quads
//! for them would take a thousand times longer. These are looked up while planning, so only where
//! there are few. Others stand in the order of a permutation after the constants: there each value
//! is a run of rows ([`RunCountsExec`]), and nothing has to be remembered.

use std::sync::Arc;

use orrery_operators::graph_names::GraphNamesExec;
use orrery_operators::rows::RowsExec;
use orrery_operators::run_counts::{RunCountsExec, RunCountsSpecification};
use orrery_storage::Permutation;
use orrery_term::TermId;

use crate::algebra::{Derived, Group, Item, Modifier, Quad, Scope, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;
use crate::statistics::operator_pattern;

/// Values that are looked up while planning; with more, the pattern is read.
const VALUES_MAX: usize = 1_000;

impl Planner<'_> {
    /// The distinct values of the projected variable, if they can be skipped through.
    pub(in crate::plan) fn distinct_by_skipping(
        &mut self,
        inner: &Group,
        visible: &VarSet,
    ) -> Result<Option<Relation>> {
        let mut variables = visible.iter();
        let (Some(var), None) = (variables.next(), variables.next()) else {
            return Ok(None);
        };
        let Some(quad) = only_quad(inner) else {
            return Ok(None);
        };
        if quad.is_impossible() || quad.occurrences() != quad.variables().iter().count() {
            return Ok(None);
        }
        if quad.scope.variable() == Some(var) {
            return self.distinct_graphs(quad, var);
        }
        if quad.predicate == Slot::Variable(var)
            && let Some(relation) = self.distinct_predicates(quad, var)?
        {
            return Ok(Some(relation));
        }
        self.distinct_runs(quad, var)
    }

    /// The values that follow the constants of a pattern in a permutation.
    fn distinct_runs(&mut self, quad: &Quad, var: Var) -> Result<Option<Relation>> {
        let specification = RunCountsSpecification {
            patterns: vec![operator_pattern(quad, &self.table)],
            key: Arc::clone(self.table.name(var)),
            counts: Vec::new(),
        };
        let Some(plan) = RunCountsExec::try_new(&self.context, specification)? else {
            return Ok(None);
        };
        let group = Group::of(Item::Quad(quad.clone()));
        let rows = self.group_rows(&group)?;
        let rows = self.different(&group, &VarSet::of([var]), rows)?;
        self.relation(plan, vec![var], VarSet::of([var]), rows)
            .map(Some)
    }

    fn distinct_graphs(&mut self, quad: &Quad, var: Var) -> Result<Option<Relation>> {
        let Scope::NamedVariable { allowed, .. } = &quad.scope else {
            return Ok(None);
        };
        let slots = [quad.subject, quad.predicate, quad.object];
        if slots.iter().any(|slot| slot.variable().is_none()) {
            return Ok(None);
        }
        let name = Arc::clone(self.table.name(var));
        let plan = GraphNamesExec::try_new(Arc::clone(&self.context), name, allowed.clone())?;
        let rows = self.estimator.graph_names(&quad.scope)?;
        let relation = self.relation(plan, vec![var], VarSet::of([var]), rows)?;
        Ok(Some(relation))
    }

    /// Predicates of everything, where all graphs count alike.
    fn distinct_predicates(&mut self, quad: &Quad, var: Var) -> Result<Option<Relation>> {
        let view = Arc::clone(self.context.view());
        if !self.sees_all_graphs(quad)
            || quad.subject.variable().is_none()
            || quad.object.variable().is_none()
        {
            return Ok(None);
        }
        let Some(index) = view.index(Permutation::Psog) else {
            return Ok(None);
        };
        // They become rows of the plan.
        self.context.note_bound_to_commit();
        let mut cursor = index.cursor();
        let mut rows: Vec<Vec<Option<TermId>>> = Vec::new();
        let mut after = None;
        while let Some(value) = cursor.distinct_next(&[], after)? {
            if rows.len() == VALUES_MAX {
                return Ok(None);
            }
            rows.push(vec![Some(value)]);
            after = Some(value);
        }
        let plan = RowsExec::try_new(&self.names(&[var]), &rows)?;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let count = rows.len() as f64;
        Ok(Some(self.relation(
            plan,
            vec![var],
            VarSet::of([var]),
            count,
        )?))
    }
}

/// A group without the projections on it.
pub(in crate::plan) fn below_projections(group: &Group) -> &Group {
    match group.only_derived() {
        Some(Derived {
            modifier: Modifier::Project(_),
            inner,
            ..
        }) => below_projections(inner),
        _ => group,
    }
}

/// The pattern that a group consists of, below a projection.
fn only_quad(group: &Group) -> Option<&Quad> {
    let group = below_projections(group);
    match group.items.as_slice() {
        [Item::Quad(quad)] if group.filters.is_empty() && group.steps.is_empty() => Some(quad),
        _ => None,
    }
}
