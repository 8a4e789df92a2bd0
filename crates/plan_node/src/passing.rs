//! Nodes that hand the rows of one input on.
//!
//! A node has its fields, its properties, and what it does with the rows; the rest is here. Order,
//! partitions and the number of rows are those of the input.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_physical_plan::{ChildrenPropertiesMode, ExecutionPlan};

/// A node with one input.
pub trait Passing: ExecutionPlan + Sized {
    /// The input.
    fn input(&self) -> &Arc<dyn ExecutionPlan>;

    /// The same over another input, which may have the properties of this one.
    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self>;
}

/// Methods of [`ExecutionPlan`] of a node that is [`Passing`], by its name. With `own rows` it says
/// itself which expressions it has, and what is known of its rows.
#[macro_export]
macro_rules! passing_methods {
    ($name:expr) => {
        $crate::passing_methods!($name, own rows);

        $crate::node_methods!(@expressions);

        fn statistics_from_inputs(
            &self,
            of_inputs: &[std::sync::Arc<$crate::common::Statistics>],
            _: &$crate::physical_plan::statistics::StatisticsArgs,
        ) -> $crate::common::Result<std::sync::Arc<$crate::common::Statistics>> {
            $crate::inputs::only(of_inputs.to_vec(), self.name())
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
        ) -> Vec<&std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>> {
            vec![$crate::passing::Passing::input(self)]
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>>,
            options: $crate::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> $crate::common::Result<
            std::sync::Arc<dyn $crate::physical_plan::ExecutionPlan>,
        > {
            let input = $crate::inputs::only(children, self.name())?;
            let over =
                $crate::passing::Passing::over(&*self, input, options.children_properties)?;
            Ok(std::sync::Arc::new(over))
        }

        $crate::node_methods!(@anew);

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<$crate::physical_plan::statistics::ChildStats> {
            vec![$crate::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn cardinality_effect(
            &self,
        ) -> $crate::physical_plan::execution_plan::CardinalityEffect {
            $crate::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}
