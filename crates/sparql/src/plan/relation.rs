//! Relations: plans with the known properties of their solutions.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;

use crate::algebra::{Var, VarSet};

/// A plan and what is known of its solutions.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    /// The variable of each column.
    pub(crate) columns: Vec<Var>,
    /// Columns that are never null.
    pub(crate) certain: VarSet,
    /// Expected number of rows.
    pub(crate) rows: f64,
    /// Whether it is known to have no rows.
    pub(crate) is_empty: bool,
}

impl Relation {
    pub(crate) fn variables(&self) -> VarSet {
        VarSet::of(self.columns.iter().copied())
    }

    pub(crate) fn column(&self, var: Var) -> Option<usize> {
        self.columns.iter().position(|column| *column == var)
    }
}
