//! A fix for filter pushdown through nodes with ambiguous column names.
//!
//! DataFusion finds the column of a filter in the node below by its name alone. In `a RIGHT JOIN b`
//! both may have a column `id`, and a filter on the one would be asked of the other, which gives
//! wrong rows. So its rule is applied to those parts of a plan alone in which no name stands twice
//! below the root; filters above them stay where they are, and hints of joins within them are told
//! as ever.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

/// A rule that finds columns by their names.
#[derive(Debug)]
pub(super) struct WhereNamesDiffer(pub(super) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for WhereNamesDiffer {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if plan.children().into_iter().all(have_a_name_each) {
            return self.0.optimize(plan, options);
        }
        let children = plan.children().into_iter();
        let children = children.map(|child| self.optimize(Arc::clone(child), options));
        let children = children.collect::<Result<Vec<_>>>()?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(children, options)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether the columns of a node, and of all nodes below it, have names that differ.
fn have_a_name_each(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    schema
        .fields()
        .iter()
        .all(|field| names.insert(field.name().as_str()))
        && plan.children().into_iter().all(have_a_name_each)
}
