//! A helper for plan nodes: the methods of [`ExecutionPlan`] that are the same in each.
//!
//! A node implements [`Inputs`], which says what it reads and makes the same node over other
//! inputs; `node_methods!` makes DataFusion's methods of that. So there is one place that refuses a
//! wrong number of children, and none that drops them.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use datafusion_common::{Result, assert_eq_or_internal_err};
use datafusion_physical_expr::Distribution;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, InputDistributionRequirements, ReplaceChildrenOptions,
};

/// The inputs of a node.
pub(crate) trait Inputs: ExecutionPlan + Sized {
    /// Whether the node reads each partition of its inputs by itself; else each input has one.
    fn reads_partitions(&self) -> bool {
        false
    }

    /// Whether what the node gives are the same solutions in whatever order rows come, so that
    /// inputs that it reads whole may be computed in several partitions.
    fn takes_any_order(&self) -> bool {
        self.reads_partitions()
    }

    /// What the node reads, in order.
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>>;

    /// The same node over as many other inputs.
    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>>;

    /// The same over inputs with the same columns and partitions as it has, for plans that are
    /// kept: what follows from these need not be found out again.
    fn with_alike_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_inputs(inputs)
    }
}

/// The same node over other inputs, if there are as many, and in as few partitions, as it reads.
pub(crate) fn with_other_inputs<N: Inputs>(
    node: Arc<N>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    options: ReplaceChildrenOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (name, wanted) = (node.name(), node.inputs().len());
    assert_eq_or_internal_err!(inputs.len(), wanted, "children of {name}");
    let reads_partitions = node.reads_partitions();
    for input in inputs.iter().filter(|_| !reads_partitions) {
        let partitions = input.properties().partitioning.partition_count();
        assert_eq_or_internal_err!(partitions, 1, "partitions of a child of {name}");
    }
    match options.children_properties {
        ChildrenPropertiesMode::Keep => node.with_alike_inputs(inputs),
        ChildrenPropertiesMode::Recompute => node.with_inputs(inputs),
    }
}

/// How the rows of each input are to be spread, for those who spread a plan.
pub(crate) fn distributions<N: Inputs>(node: &N) -> InputDistributionRequirements {
    let of_each = match node.reads_partitions() {
        true => Distribution::UnspecifiedDistribution,
        false => Distribution::SinglePartition,
    };
    InputDistributionRequirements::new(vec![of_each; node.inputs().len()])
}

/// A node without inputs over none.
pub(crate) fn without_inputs<N: ExecutionPlan + 'static>(
    node: Arc<N>,
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    assert_eq_or_internal_err!(inputs.len(), 0, "children of {}", node.name());
    Ok(node)
}

/// The methods of a plan node with fields `properties` and `metrics`, and without expressions that
/// an optimizer could change: all but `execute`. The node implements [`Inputs`], or is a `leaf`.
/// With `own metrics` or `own expressions` it has the method for these itself.
macro_rules! node_methods {
    ($name:literal) => {
        $crate::node::node_methods!($name, own metrics);
        $crate::node::node_methods!(@metrics);
    };
    ($name:literal, leaf) => {
        $crate::node::node_methods!(@face $name);
        $crate::node::node_methods!(@expressions);
        $crate::node::node_methods!(@metrics);

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            _: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            $crate::node::without_inputs(self, &children)
        }
    };
    ($name:literal, own metrics) => {
        $crate::node::node_methods!(@face $name);
        $crate::node::node_methods!(@inputs);
        $crate::node::node_methods!(@expressions);
    };
    ($name:literal, own expressions) => {
        $crate::node::node_methods!(@face $name);
        $crate::node::node_methods!(@inputs);
        $crate::node::node_methods!(@metrics);
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
            self.replace_children(
                children,
                datafusion_physical_plan::ReplaceChildrenOptions::new(
                    datafusion_physical_plan::ChildrenPropertiesMode::Recompute,
                ),
            )
        }
    };
    (@inputs) => {
        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>> {
            $crate::node::Inputs::inputs(self)
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
            options: datafusion_physical_plan::ReplaceChildrenOptions,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            $crate::node::with_other_inputs(self, children, options)
        }

        fn input_distribution_requirements(
            &self,
        ) -> datafusion_physical_plan::InputDistributionRequirements {
            $crate::node::distributions(self)
        }

        // Here it says whether rows may come in any order, not whether more partitions make the
        // node faster: a query's plan passes no rule of DataFusion's that would add any, and its
        // spreading over the cores (`sparql/src/plan/parallel.rs`) asks this.
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            let takes_any_order = $crate::node::Inputs::takes_any_order(self);
            vec![takes_any_order; $crate::node::Inputs::inputs(self).len()]
        }
    };
    (@expressions) => {
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
    (@metrics) => {
        fn metrics(&self) -> Option<datafusion_physical_plan::metrics::MetricsSet> {
            Some(self.metrics.clone_inner())
        }
    };
}

pub(crate) use node_methods;

/// [`Inputs::with_alike_inputs`] of a node with one input: what it is to do, and the properties,
/// which follow from that and the input's columns and partitions, stay; its figures begin anew.
macro_rules! alike_input {
    () => {
        fn with_alike_inputs(
            self: std::sync::Arc<Self>,
            mut inputs: Vec<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>,
        ) -> datafusion_common::Result<std::sync::Arc<dyn datafusion_physical_plan::ExecutionPlan>>
        {
            Ok(std::sync::Arc::new(Self {
                input: inputs.swap_remove(0),
                metrics: datafusion_physical_plan::metrics::ExecutionPlanMetricsSet::new(),
                ..Self::clone(&self)
            }))
        }
    };
}

pub(crate) use alike_input;
