//! A helper for plan nodes that forward the rows of one input.
//!
//! A node has its fields, its properties, and what it does with the rows; the rest is here. Order,
//! partitions and the number of rows are those of the input.

use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;

/// A node with one input.
pub(crate) trait Passing: ExecutionPlan + Sized {
    fn input(&self) -> &Arc<dyn ExecutionPlan>;

    /// The same over another input, which may have the properties of this one.
    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self>;
}

/// The only one of what a node has one of.
pub(crate) fn only<T>(mut found: Vec<T>, node: &str) -> Result<T> {
    match (found.pop(), found.is_empty()) {
        (Some(input), true) => Ok(input),
        _ => internal_err!("{node} has one input"),
    }
}

/// Methods of [`ExecutionPlan`] of a node that is [`Passing`], by its name. With `own rows` it says
/// itself which expressions it has, and what is known of its rows.
macro_rules! passing_methods {
    ($name:expr) => {
        $crate::execute::passing::passing_methods!($name, own rows);

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::common::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::common::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn statistics_from_inputs(
            &self,
            of_inputs: &[std::sync::Arc<datafusion::common::Statistics>],
            _: &datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> datafusion::common::Result<std::sync::Arc<datafusion::common::Statistics>> {
            $crate::execute::passing::only(of_inputs.to_vec(), self.name())
        }
    };
    ($name:expr, own rows) => {
        fn name(&self) -> &str {
            let name: fn(&Self) -> &'static str = $name;
            name(self)
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![$crate::execute::passing::Passing::input(self)]
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<
            std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>,
        > {
            let input = $crate::execute::passing::only(children, self.name())?;
            let over =
                $crate::execute::passing::Passing::over(&*self, input, options.children_properties)?;
            Ok(std::sync::Arc::new(over))
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<
            std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>,
        > {
            let anew = datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
            self.replace_children(
                children,
                datafusion::physical_plan::execution_plan::ReplaceChildrenOptions::new(anew),
            )
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::statistics::ChildStats> {
            vec![datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn cardinality_effect(
            &self,
        ) -> datafusion::physical_plan::execution_plan::CardinalityEffect {
            datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}
pub(crate) use passing_methods;
