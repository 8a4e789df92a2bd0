//! The methods of DataFusion's `ExecutionPlan` that are the same in many of our plan nodes.
//!
//! ```text
//! node_methods!("Name")               over what Inputs says: nodes of SPARQL's plans
//! node_methods!("Name", leaf)         over nothing
//! node_methods!("Name", over input)   over the plan in a field, with a method `with_input`
//! passing_methods!(|_| "Name")        hands the rows of its input on: order, partitions, number
//! ```
//!
//! A node has its fields, what it is to do with rows (`execute`), and a method beside the macro for
//! whatever differs: `own metrics`, `own expressions`. A wrong number of children is an error in all
//! of them.

pub mod inputs;
pub mod passing;

pub use inputs::Inputs;
pub use passing::Passing;

// For the macros, whose callers have DataFusion under other names.
#[doc(hidden)]
pub use {
    datafusion_common as common, datafusion_physical_expr as physical_expr,
    datafusion_physical_plan as physical_plan,
};

/// The methods of a plan node with a field `properties`: all but `execute`. It has no expressions
/// that an optimizer could change, and a field `metrics`, unless it says otherwise:
///
/// - without more, the node implements [`Inputs`];
/// - `leaf`: it has no inputs;
/// - `over FIELD`: its input is in a field, and `with_input` makes it anew over another one; it has
///   no metrics;
/// - `own metrics`, `own expressions`: the node has the method for these itself, or the default.
#[macro_export]
macro_rules! node_methods {
    ($name:literal) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@inputs);
        $crate::node_methods!(@expressions);
        $crate::node_methods!(@metrics);
    };
    ($name:literal, own metrics) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@inputs);
        $crate::node_methods!(@expressions);
    };
    ($name:literal, own expressions) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@inputs);
        $crate::node_methods!(@metrics);
    };
    ($name:literal, leaf) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@leaf);
        $crate::node_methods!(@expressions);
        $crate::node_methods!(@metrics);
    };
    ($name:literal, leaf, own metrics) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@leaf);
        $crate::node_methods!(@expressions);
    };
    ($name:literal, leaf, own expressions) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@leaf);
        $crate::node_methods!(@metrics);
    };
    ($name:literal, over $input:ident) => {
        $crate::node_methods!(@face $name);
        $crate::node_methods!(@expressions);

        fn children(&self) -> Vec<&std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            vec![&self.$input]
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
            _: $crate::physical_plan::ReplaceChildrenOptions,
        ) -> $crate::common::Result<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            let input = $crate::inputs::only(children, $name)?;
            Ok(std::sync::Arc::new(self.with_input(input)))
        }
    };
    (@face $name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<$crate::physical_plan::PlanProperties> {
            &self.properties
        }

        $crate::node_methods!(@anew);
    };
    (@anew) => {
        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
        ) -> $crate::common::Result<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            self.replace_children(
                children,
                $crate::physical_plan::ReplaceChildrenOptions::new(
                    $crate::physical_plan::ChildrenPropertiesMode::Recompute,
                ),
            )
        }
    };
    (@leaf) => {
        fn children(&self) -> Vec<&std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
            _: $crate::physical_plan::ReplaceChildrenOptions,
        ) -> $crate::common::Result<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            $crate::inputs::without_inputs(self, &children)
        }
    };
    (@inputs) => {
        fn children(&self) -> Vec<&std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            $crate::Inputs::inputs(self)
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
            options: $crate::physical_plan::ReplaceChildrenOptions,
        ) -> $crate::common::Result<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            $crate::inputs::with_other_inputs(self, children, options)
        }

        fn input_distribution_requirements(
            &self,
        ) -> $crate::physical_plan::InputDistributionRequirements {
            $crate::inputs::distributions(self)
        }

        // Here it says whether rows may come in any order, not whether more partitions make the
        // node faster: a query's plan passes no rule of DataFusion's that would add any, and its
        // spreading over the cores (`sparql/src/plan/parallel.rs`) asks this.
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            let takes_any_order = $crate::Inputs::takes_any_order(self);
            vec![takes_any_order; $crate::Inputs::inputs(self).len()]
        }
    };
    (@expressions) => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &std::sync::Arc<dyn $crate::physical_expr::PhysicalExpr>,
            ) -> $crate::common::Result<$crate::common::tree_node::TreeNodeRecursion>,
        ) -> $crate::common::Result<$crate::common::tree_node::TreeNodeRecursion> {
            Ok($crate::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
    (@metrics) => {
        fn metrics(&self) -> Option<$crate::physical_plan::metrics::MetricsSet> {
            Some(self.metrics.clone_inner())
        }
    };
}
