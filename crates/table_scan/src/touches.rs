//! The touch counter of this crate's nodes.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::dense::rows_apart;
use super::node::ScanExec;

/// The touches of a node without its inputs: of a scan, one for each row that is left by its key,
/// its zones and its index, whether or not it passes then. `None` of a node of another crate.
pub fn touches(node: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    if let Some(scan) = node.downcast_ref::<ScanExec>() {
        return Some(scan.touches());
    }
    // Groups are counted where they are put together.
    rows_apart(node).map(|rest| rest.map_or(0, scans_below))
}

fn scans_below(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    match plan.downcast_ref::<ScanExec>() {
        Some(scan) => scan.touches(),
        None => plan.children().into_iter().map(scans_below).sum(),
    }
}
