//! Plans of edge weights in memory: look-ups for given rows, or all pairs.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::weights::{WeightsExec, WeightsSpecification};

use crate::algebra::{KnownWeights, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::relation::Relation;

impl Planner<'_> {
    /// `Join(current, weights)`.
    pub(in crate::plan) fn weights(
        &mut self,
        current: Option<Relation>,
        weights: &KnownWeights,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let Some(left) = current else {
            return self.looked_up(None, weights, later, rows);
        };
        let shared = left.variables().intersection(&weights.visible());
        let ends = VarSet::of([weights.columns[0], weights.columns[1]]);
        if !shared.is_empty() && shared.is_subset(&ends) {
            return self.looked_up(Some(left), weights, later, rows);
        }
        let needed = later.union(&shared);
        let right = self.looked_up(None, weights, &needed, weights.expected_rows())?;
        self.join(left, right, later, Some(rows))
    }

    fn looked_up(
        &mut self,
        input: Option<Relation>,
        weights: &KnownWeights,
        later: &VarSet,
        rows: f64,
    ) -> Result<Relation> {
        let (mut bound, mut certain) = (weights.visible(), weights.visible());
        if let Some(input) = &input {
            bound.extend(&input.variables());
            certain.extend(&input.certain);
        }
        let columns: Vec<Var> = bound.intersection(later).iter().collect();
        let certain = certain.intersection(&VarSet::of(columns.iter().copied()));
        let specification = WeightsSpecification {
            name: Arc::clone(&weights.name),
            columns: weights.columns.map(|var| Arc::clone(self.table.name(var))),
            output: self.names(&columns),
        };
        let plan: Arc<dyn ExecutionPlan> = Arc::new(WeightsExec::over(
            Arc::clone(&self.context),
            input.map(|input| input.plan),
            Arc::clone(&weights.table),
            specification,
        ));
        self.relation(plan, columns, certain, rows)
    }
}
