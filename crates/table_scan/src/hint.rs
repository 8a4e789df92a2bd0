//! Dynamic filters from operators above a scan: the bound of a TopK, the keys of a hash join.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    CaseExpr, Column, DynamicFilterPhysicalExpr, Literal,
};
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_plan::repartition::RangeExpr;
use orrery_storage::table::ColumnId;

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

/// The range of the key that one partition of a scan has.
#[derive(Debug, Clone)]
pub(super) struct OwnRange {
    /// The column of the key.
    pub(super) column: ColumnId,
    /// The first values of all partitions but the first.
    pub(super) values: Vec<ScalarValue>,
    pub(super) partition: usize,
}

impl OwnRange {
    /// Of a hint that says something for each range what it says of this one; any other hint as it
    /// is. `ids` are the columns that it names, by their index.
    pub(super) fn of(
        &self,
        hint: &Arc<dyn PhysicalExpr>,
        ids: &[ColumnId],
    ) -> Arc<dyn PhysicalExpr> {
        self.branch(hint, ids).unwrap_or_else(|| Arc::clone(hint))
    }

    fn branch(
        &self,
        hint: &Arc<dyn PhysicalExpr>,
        ids: &[ColumnId],
    ) -> Option<Arc<dyn PhysicalExpr>> {
        let case: &CaseExpr = hint.downcast_ref()?;
        let range: &RangeExpr = case.expr()?.downcast_ref()?;
        let [column] = range.on_columns() else {
            return None;
        };
        let column: &Column = column.downcast_ref()?;
        let points = range.split_points().iter();
        let is_same = ids.get(column.index()) == Some(&self.column)
            && points
                .map(|point| point.values())
                .eq(self.values.iter().map(std::slice::from_ref));
        if !is_same {
            return None;
        }
        match case.when_then_expr().get(self.partition) {
            Some((when, then)) => {
                let when: &Literal = when.downcast_ref()?;
                let own = ScalarValue::UInt64(Some(self.partition as u64));
                (*when.value() == own).then(|| Arc::clone(then))
            }
            None => case.else_expr().map(Arc::clone),
        }
    }
}
