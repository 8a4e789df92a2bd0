//! Walks over plans and expressions, which are compiled once for each kind of tree.
//!
//! DataFusion's walks are generic over what they call: each closure made a copy of the whole walk,
//! with a closure that guards the stack in each of its functions. Names and meanings are those of
//! DataFusion's, with `_by`.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

type Change<'c, N> = &'c mut dyn FnMut(N) -> Result<Transformed<N>>;
type See<'c, N> = &'c mut dyn FnMut(&N) -> Result<TreeNodeRecursion>;

/// Walks over any tree.
pub(crate) trait Walk: TreeNode {
    fn transform_up_by(self, change: Change<'_, Self>) -> Result<Transformed<Self>> {
        self.transform_up(change)
    }

    fn transform_down_by(self, change: Change<'_, Self>) -> Result<Transformed<Self>> {
        self.transform_down(change)
    }

    fn apply_by(&self, see: See<'_, Self>) -> Result<TreeNodeRecursion> {
        self.apply(see)
    }
}

impl<N: TreeNode> Walk for N {}

/// Walks over a plan with the plans of its subqueries, and over the expressions of one node.
pub(crate) trait WalkPlan: Sized {
    fn transform_up_with_subqueries_by(
        self,
        change: Change<'_, LogicalPlan>,
    ) -> Result<Transformed<LogicalPlan>>;

    fn transform_down_with_subqueries_by(
        self,
        change: Change<'_, LogicalPlan>,
    ) -> Result<Transformed<LogicalPlan>>;

    fn apply_with_subqueries_by(&self, see: See<'_, LogicalPlan>) -> Result<TreeNodeRecursion>;

    fn map_expressions_by(self, change: Change<'_, Expr>) -> Result<Transformed<LogicalPlan>>;

    fn apply_expressions_by(&self, see: See<'_, Expr>) -> Result<TreeNodeRecursion>;
}

impl WalkPlan for LogicalPlan {
    fn transform_up_with_subqueries_by(
        self,
        change: Change<'_, Self>,
    ) -> Result<Transformed<Self>> {
        self.transform_up_with_subqueries(change)
    }

    fn transform_down_with_subqueries_by(
        self,
        change: Change<'_, Self>,
    ) -> Result<Transformed<Self>> {
        self.transform_down_with_subqueries(change)
    }

    fn apply_with_subqueries_by(&self, see: See<'_, Self>) -> Result<TreeNodeRecursion> {
        self.apply_with_subqueries(see)
    }

    fn map_expressions_by(self, change: Change<'_, Expr>) -> Result<Transformed<Self>> {
        self.map_expressions(change)
    }

    fn apply_expressions_by(&self, see: See<'_, Expr>) -> Result<TreeNodeRecursion> {
        self.apply_expressions(see)
    }
}
