//! The distributable parts of a plan: scans whose partitions hold shares of the rows.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::dense::rows_apart;
use super::keys::KeysExec;
use super::node::ScanExec;

/// Whether a node reads a stored table in several partitions, each of which has a share of its rows
/// whoever runs the others. Nodes that read one themselves are taken with it ([`reads_by_itself`]).
pub fn is_in_shares(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<ScanExec>() {
        Some(scan) => scan.is_in_shares(),
        None => reads_by_itself(plan) && scans_in_shares(plan),
    }
}

/// The same of the one scan below, over which rows are changed one by one.
fn scans_in_shares(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.downcast_ref::<ScanExec>(), plan.children().as_slice()) {
        (Some(scan), _) => scan.is_in_shares(),
        (None, [child]) => scans_in_shares(child),
        (None, _) => false,
    }
}

/// Whether a node's input is a scan that it reads in its own way.
pub fn reads_by_itself(plan: &Arc<dyn ExecutionPlan>) -> bool {
    rows_apart(plan).is_some()
}

/// Whether a node tells a scan elsewhere in the plan which keys its rows have, and has to see all
/// of them there.
pub fn tells_keys(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<KeysExec>()
}
