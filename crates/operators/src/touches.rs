//! The cost of a run in touches: how often a row was handled. The operators count it as they work,
//! so that it says what was done, not how long that took on this machine.
//!
//! | node | touches |
//! | --- | --- |
//! | a pattern | for each of its steps, two for each row that comes out (found, and handed on), one for each that a condition drops |
//! | a path | one for each look-up, one for each row that it finds |
//! | a search for paths | one for each edge that it looks at, one for each row that comes out |
//! | an algorithm over a graph | one for each edge, as often as the algorithm looks at it, one for each row that comes out |
//! | a join of solutions, or of places | one for each pair that a condition drops, one for each row that comes out |
//! | any other | one for each row that comes out |
//!
//! Whether a step was done by the permutations or by an adjacency in memory makes no difference,
//! nor does what is in caches.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;

use crate::algorithms::AlgorithmExec;
use crate::join::SolutionJoinExec;
use crate::path::PathExec;
use crate::pattern::PatternExec;
use crate::places::PlacesJoinExec;
use crate::search::SearchExec;

/// The touches of all executions of a plan so far; nodes that several others read count once. A
/// walk through the plan.
pub fn touches(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    touches_below(plan, &mut HashSet::new())
}

fn touches_below(plan: &Arc<dyn ExecutionPlan>, seen: &mut HashSet<*const ()>) -> u64 {
    if !seen.insert(Arc::as_ptr(plan).cast::<()>()) {
        return 0;
    }
    let own = if let Some(pattern) = plan.downcast_ref::<PatternExec>() {
        pattern.touches()
    } else if let Some(path) = plan.downcast_ref::<PathExec>() {
        path.touches()
    } else if let Some(search) = plan.downcast_ref::<SearchExec>() {
        search.touches()
    } else if let Some(algorithm) = plan.downcast_ref::<AlgorithmExec>() {
        algorithm.touches()
    } else {
        let dropped = if let Some(join) = plan.downcast_ref::<SolutionJoinExec>() {
            join.dropped_pairs()
        } else {
            let join = plan.downcast_ref::<PlacesJoinExec>();
            join.map_or(0, PlacesJoinExec::dropped_pairs)
        };
        let rows = plan.metrics().and_then(|metrics| metrics.output_rows());
        dropped + rows.unwrap_or(0) as u64
    };
    let inputs = plan.children().into_iter();
    inputs.fold(own, |sum, input| {
        sum.saturating_add(touches_below(input, seen))
    })
}
