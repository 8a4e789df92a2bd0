//! A fix for window frames by `RANGE`.
//!
//! In the order of a column with NULLs these are one another's peers: the frame of
//! `RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING` has all of them where the row at hand is
//! one. DataFusion's operator that works while rows come takes those that came so far. The one that
//! waits for all rows of a part does not, and takes its place.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::InputOrderMode;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::nodes::NodeRule;

/// The rule that sorts what windows need, and chooses their operators.
pub(super) const SORTS: &str = "EnsureRequirements";

/// Has such windows wait.
pub(super) const WAIT_FOR_PEERS: NodeRule = NodeRule {
    name: "wait_for_peers",
    change: waiting,
};

fn waiting(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() else {
        return Ok(Transformed::no(node));
    };
    let is_sorted = window.input_order_mode == InputOrderMode::Sorted;
    let mut windows = window.window_expr().iter();
    if !is_sorted || !windows.any(is_about_the_row) {
        return Ok(Transformed::no(node));
    }
    let waits = WindowAggExec::try_new(
        window.window_expr().to_vec(),
        Arc::clone(window.input()),
        !window.partition_keys().is_empty(),
    )?;
    Ok(Transformed::yes(Arc::new(waits)))
}

/// Whether a frame is a range that ends so much before or behind the row at hand.
fn is_about_the_row(window: &Arc<dyn WindowExpr>) -> bool {
    let frame = window.get_window_frame();
    let is_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    frame.units == WindowFrameUnits::Range
        && (is_offset(&frame.start_bound) || is_offset(&frame.end_bound))
}
