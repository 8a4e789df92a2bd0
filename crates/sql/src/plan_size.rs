//! How large a plan is: whatever is named twice is planned twice.
//!
//! ```text
//! WITH a AS (...), b AS (SELECT ... FROM a p, a q), c AS (SELECT ... FROM b p, b q), ...      2, 4, 8, ... times a
//! ```
//!
//! In the logical plan the parts that are the same are shared, so that it is small; its optimizers and the physical plan take each by itself. So
//! their nodes are counted as often as they are named, with the shared ones looked at once, before anything else looks at the plan.

use std::collections::HashMap;

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::{Error, Result, SqlState};

/// Nodes of a plan.
const NODES_MAX: u64 = 50_000;
/// Nodes below each other: a plan is dropped by recursion.
const DEPTH_MAX: u32 = 4_000;

/// Refuses a plan that is too large to be worked on.
pub(crate) fn refuse_large(plan: &LogicalPlan) -> Result<()> {
    let size = size(plan, &mut HashMap::new()).map_err(|error| Error::of_run(&error))?;
    if size.nodes > NODES_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("a plan has more than {NODES_MAX} nodes"),
        )
        .with_detail("Views and common table expressions count as often as they are named."));
    }
    if size.depth > DEPTH_MAX {
        return Err(Error::new(
            SqlState::StatementTooComplex,
            format!("a plan is more than {DEPTH_MAX} nodes deep"),
        ));
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Size {
    nodes: u64,
    depth: u32,
}

/// The size of a plan; `known` has those of parts by their place in memory, where they stay while the plan is borrowed.
#[recursive::recursive]
fn size(
    plan: &LogicalPlan,
    known: &mut HashMap<*const LogicalPlan, Size>,
) -> Result<Size, DataFusionError> {
    if let Some(size) = known.get(&std::ptr::from_ref(plan)) {
        return Ok(*size);
    }
    let mut whole = Size { nodes: 1, depth: 0 };
    let mut add = |part: Size| {
        whole.nodes = whole.nodes.saturating_add(part.nodes);
        whole.depth = whole.depth.max(part.depth);
    };
    for input in plan.inputs() {
        add(size(input, known)?);
    }
    plan.apply_subqueries(|subquery| {
        // The node that is given is made for this call; its plan is the one that stays.
        if let LogicalPlan::Subquery(subquery) = subquery {
            add(size(&subquery.subquery, known)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    whole.depth = whole.depth.saturating_add(1);
    known.insert(std::ptr::from_ref(plan), whole);
    Ok(whole)
}
