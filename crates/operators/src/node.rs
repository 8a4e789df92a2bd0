//! What plan nodes without inputs have in common.

/// The methods of [`datafusion_physical_plan::ExecutionPlan`] that are the same for every node
/// without inputs and without expressions. The node has a field `properties`.
macro_rules! leaf_node_methods {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion_physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion_physical_expr::PhysicalExpr>,
            ) -> datafusion_common::Result<
                datafusion_common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion_common::Result<datafusion_common::tree_node::TreeNodeRecursion> {
            Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            _: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            _: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            _: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }

        fn metrics(&self) -> Option<datafusion_physical_plan::metrics::MetricsSet> {
            Some(self.metrics.clone_inner())
        }
    };
}

pub(crate) use leaf_node_methods;
