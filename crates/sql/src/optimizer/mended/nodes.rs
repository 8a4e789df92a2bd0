//! A helper for physical rules that change one node at a time, bottom up.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use crate::execute::stopping::require_somebody_here;
use crate::plan::walk::Walk;

/// What comes in a node's place, if anything does.
pub(crate) type Changed = Result<Transformed<Arc<dyn ExecutionPlan>>>;

/// Such a rule. Columns of the plan stay what they are.
#[derive(Debug)]
pub(crate) struct NodeRule {
    pub(super) name: &'static str,
    /// Asked of a node whose inputs are done.
    pub(super) change: fn(Arc<dyn ExecutionPlan>) -> Changed,
}

impl PhysicalOptimizerRule for NodeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up_by(&mut |node| {
            require_somebody_here()?;
            (self.change)(node)
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A node over other inputs, and what is known of its rows from these.
pub(super) fn over(
    node: &Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(node).replace_children(inputs, anew)
}
