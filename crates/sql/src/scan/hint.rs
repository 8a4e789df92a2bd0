//! Filters that operators above change while the scan runs: the bound of a TopK, the keys of a hash join.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr_common::physical_expr::snapshot_generation;

/// A filter that an operator above changes while it runs. It names columns as conditions do.
#[derive(Debug, Clone)]
pub(super) struct Dynamic(pub(super) Arc<dyn PhysicalExpr>);

impl Dynamic {
    /// Another number when it has changed.
    pub(super) fn generation(expression: &Arc<dyn PhysicalExpr>) -> u64 {
        snapshot_generation(expression)
    }

    /// What it is now.
    pub(super) fn current(expression: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        match expression.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(dynamic) => dynamic.current(),
            None => Ok(Arc::clone(expression)),
        }
    }
}
