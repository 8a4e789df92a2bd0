//! `DISTINCT` over one position of one pattern, by skipping from value to value in a permutation
//! that starts with it.
//!
//! `SELECT DISTINCT ?p { ?s ?p ?o }` has as many answers as there are predicates; reading all quads for
//! them would take a thousand times longer. The values are looked up while planning, so
//! only where there are few.

use std::sync::Arc;

use orrery_operators::graph_names::GraphNamesExec;
use orrery_operators::rows::RowsExec;
use orrery_storage::Permutation;
use orrery_term::TermId;

use crate::algebra::{Group, Item, Modifier, Quad, Scope, Slot, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

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
        if quad.predicate == Slot::Variable(var) {
            return self.distinct_predicates(quad, var);
        }
        Ok(None)
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
        let rows = self.estimator.graph_names(&quad.scope);
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

/// The pattern that a group consists of, below a projection.
fn only_quad(group: &Group) -> Option<&Quad> {
    if let Some(derived) = group.only_derived() {
        return match derived.modifier {
            Modifier::Project(_) => only_quad(&derived.inner),
            _ => None,
        };
    }
    match group.items.as_slice() {
        [Item::Quad(quad)] if group.filters.is_empty() && group.steps.is_empty() => Some(quad),
        _ => None,
    }
}
