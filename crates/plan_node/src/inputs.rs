//! Nodes that say what they read: the check of their inputs, in one place.
//!
//! A node implements [`Inputs`], which says what it reads and makes the same node over other
//! inputs; `node_methods!` makes DataFusion's methods of that. So there is one place that refuses a
//! wrong number of children, and none that drops them.

use std::sync::Arc;

use datafusion_common::{Result, assert_eq_or_internal_err, internal_err};
use datafusion_physical_expr::Distribution;
use datafusion_physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, InputDistributionRequirements, ReplaceChildrenOptions,
};

/// The inputs of a node.
pub trait Inputs: ExecutionPlan + Sized {
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
pub fn with_other_inputs<N: Inputs>(
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
pub fn distributions<N: Inputs>(node: &N) -> InputDistributionRequirements {
    let of_each = match node.reads_partitions() {
        true => Distribution::UnspecifiedDistribution,
        false => Distribution::SinglePartition,
    };
    InputDistributionRequirements::new(vec![of_each; node.inputs().len()])
}

/// The only one of what a node has one of.
pub fn only<T>(mut found: Vec<T>, node: &str) -> Result<T> {
    match (found.pop(), found.is_empty()) {
        (Some(input), true) => Ok(input),
        _ => internal_err!("{node} has one input"),
    }
}

/// A node without inputs over none.
pub fn without_inputs<N: ExecutionPlan + 'static>(
    node: Arc<N>,
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    assert_eq_or_internal_err!(inputs.len(), 0, "children of {}", node.name());
    Ok(node)
}

/// `Inputs::with_alike_inputs` of a node with one input: what it is to do, and the properties,
/// which follow from that and the input's columns and partitions, stay; its figures begin anew.
#[macro_export]
macro_rules! alike_input {
    () => {
        fn with_alike_inputs(
            self: std::sync::Arc<Self>,
            mut inputs: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
        ) -> $crate::common::Result<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            Ok(std::sync::Arc::new(Self {
                input: inputs.swap_remove(0),
                metrics: $crate::physical_plan::metrics::ExecutionPlanMetricsSet::new(),
                ..Self::clone(&self)
            }))
        }
    };
}
