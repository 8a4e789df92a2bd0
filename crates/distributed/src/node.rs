//! The methods that all plan nodes of this crate share.

/// All methods of `ExecutionPlan` but `execute` for a node with a field `properties`: a `leaf`; or
/// one over the plan in a field, which has a method `with_input` that makes it anew over another
/// one.
macro_rules! node_methods {
    ($name:literal, leaf) => {
        $crate::node::node_methods!(@face $name);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            _: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            datafusion_common::assert_eq_or_internal_err!(children.len(), 0, "children of {}", $name);
            Ok(self)
        }
    };
    ($name:literal, over $input:ident) => {
        $crate::node::node_methods!(@face $name);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            mut children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            _: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            datafusion_common::assert_eq_or_internal_err!(children.len(), 1, "children of {}", $name);
            Ok(std::sync::Arc::new(self.with_input(children.swap_remove(0))))
        }
    };
    (@face $name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion_physical_plan::PlanProperties> {
            &self.properties
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            let recomputed = datafusion_physical_plan::ChildrenPropertiesMode::Recompute;
            self.replace_children(
                children,
                datafusion_physical_plan::ReplaceChildrenOptions::new(recomputed),
            )
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
    };
}

pub(crate) use node_methods;
