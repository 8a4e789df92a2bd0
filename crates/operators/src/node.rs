//! What plan nodes have in common: the methods of [`datafusion_physical_plan::ExecutionPlan`] that are the same in each.

/// What every node says of itself. It has a field `properties`, and no expressions that an optimizer could change.
#[macro_export]
macro_rules! node_face_methods {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion_physical_plan::PlanProperties> {
            &self.properties
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

/// The same and the children in these fields, for a node with a field `metrics`.
#[macro_export]
macro_rules! node_methods {
    ($name:literal, $($child:ident),+) => {
        $crate::node_face_methods!($name);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            vec![$(&self.$child),+]
        }

        // Plans are built once and never rewritten: no rule runs over them.
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

/// What is the same in every node without inputs; it has fields `properties` and `metrics`.
macro_rules! leaf_node_methods {
    ($name:literal) => {
        $crate::node_face_methods!($name);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            Vec::new()
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

/// What is the same in every node whose field `input` is an optional child and that needs no order of it. The node
/// has `with_input(&self, input)`, which makes it anew over another child.
macro_rules! optional_input_methods {
    ($name:literal) => {
        $crate::node_face_methods!($name);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            self.input.iter().collect()
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            mut children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            _: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            datafusion_common::assert_or_internal_err!(
                children.len() == usize::from(self.input.is_some()),
                concat!($name, ": wrong number of children")
            );
            self.with_input(children.pop())
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            self.replace_children(
                children,
                datafusion_physical_plan::ReplaceChildrenOptions::new(
                    datafusion_physical_plan::ChildrenPropertiesMode::Recompute,
                ),
            )
        }
    };
}

pub(crate) use leaf_node_methods;
pub(crate) use optional_input_methods;
