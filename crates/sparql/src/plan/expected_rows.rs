//! The estimated rows of a plan's nodes.
//!
//! While a plan is made, [`NodeEstimates`] keeps the figure of each node together with its place in
//! memory, so that no other one can take that; what a dropped node held is freed. Of the finished
//! plan they are told by position, in [`PlanEstimates`]:
//!
//! ```text
//!   SortExec              1
//!     HashJoinExec        2        a node before its inputs, in their order;
//!       SharedExec        3        what is shared is entered where it is met first
//!         PatternExec     4
//!       FilterExec        5
//!         SharedExec      6
//! ```
//!
//! Whoever reads them walks the plan in this order ([`Positions`]). So they do not depend on where
//! the nodes are in memory.

use std::sync::{Arc, Weak};

use datafusion_physical_plan::ExecutionPlan;
use hashbrown::{HashMap, HashSet};
use orrery_operators::nodes::SharedExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Tells the nodes of a plan that is held from each other.
pub(in crate::plan) fn identity(plan: &Plan) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

/// The expected rows of nodes while a plan is made of them.
#[derive(Debug, Default)]
pub(crate) struct NodeEstimates {
    /// With the nodes: a weak one keeps the memory at its address, but nothing that it held.
    by_identity: HashMap<usize, (Weak<dyn ExecutionPlan>, f64)>,
}

impl NodeEstimates {
    /// A node gives so many rows.
    pub(in crate::plan) fn set(&mut self, plan: &Plan, rows: f64) {
        let known = (Arc::downgrade(plan), rows);
        self.by_identity.insert(identity(plan), known);
    }

    /// What is expected of a node.
    pub(in crate::plan) fn get(&self, plan: &Plan) -> Option<f64> {
        let known = self.by_identity.get(&identity(plan));
        known.map(|(_, rows)| *rows)
    }

    /// What was expected of one node is expected of another one.
    pub(in crate::plan) fn carry(&mut self, from: &Plan, to: &Plan) {
        if let Some(rows) = self.get(from) {
            self.set(to, rows);
        }
    }

    /// The figures of a finished plan.
    pub(crate) fn of_plan(&self, plan: &Plan) -> PlanEstimates {
        let mut rows = Vec::with_capacity(self.by_identity.len());
        self.push(plan, &mut Entered::default(), &mut rows);
        PlanEstimates { rows }
    }

    fn push(&self, plan: &Plan, entered: &mut Entered, rows: &mut Vec<Option<f64>>) {
        rows.push(self.get(plan));
        if entered.enter(plan) {
            for child in plan.children() {
                self.push(child, entered, rows);
            }
        }
    }
}

/// The shared nodes that a walk over a plan has entered.
#[derive(Debug, Default)]
struct Entered {
    shared: HashSet<usize>,
}

impl Entered {
    /// Whether the walk goes on below a node.
    fn enter(&mut self, plan: &Plan) -> bool {
        !plan.is::<SharedExec>() || self.shared.insert(identity(plan))
    }
}

/// The expected rows of all nodes of a plan, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanEstimates {
    rows: Vec<Option<f64>>,
}

impl PlanEstimates {
    /// How many positions there are.
    pub(crate) fn nodes(&self) -> usize {
        self.rows.len()
    }

    /// A walk from the root on.
    pub(crate) fn positions(&self) -> Positions<'_> {
        Positions {
            rows: &self.rows,
            entered: Entered::default(),
        }
    }
}

/// A walk over a plan with its estimates: each node is visited before its inputs.
#[derive(Debug)]
pub(crate) struct Positions<'e> {
    /// Those of the positions to come.
    rows: &'e [Option<f64>],
    entered: Entered,
}

impl Positions<'_> {
    /// What is expected of the next node, and whether its inputs come next; else it was entered
    /// before.
    pub(crate) fn visit(&mut self, plan: &Plan) -> (Option<f64>, bool) {
        let rows = match self.rows.split_first() {
            Some((first, rest)) => {
                self.rows = rest;
                *first
            }
            None => None,
        };
        (rows, self.entered.enter(plan))
    }
}

#[cfg(test)]
mod tests {
    use datafusion_physical_plan::union::UnionExec;
    use orrery_operators::rows::RowsExec;

    use super::*;

    #[test]
    fn a_node_that_is_dropped_keeps_nothing_alive() {
        let leaf = RowsExec::single_empty_row().unwrap();
        let dropped: Plan = Arc::new(SharedExec::new(Arc::clone(&leaf)));
        let mut estimates = NodeEstimates::default();
        estimates.set(&dropped, 1.0);
        let place = identity(&dropped);
        drop(dropped);
        assert_eq!(Arc::strong_count(&leaf), 1);
        let others = (0..100).map(|_| Arc::new(SharedExec::new(Arc::clone(&leaf))) as Plan);
        for other in others.collect::<Vec<_>>() {
            assert_ne!(identity(&other), place);
            assert_eq!(estimates.get(&other), None);
        }
    }

    #[test]
    fn a_plan_that_is_built_anew_has_the_same_figures_by_position() {
        let plan = || {
            let leaf = RowsExec::single_empty_row().unwrap();
            let shared: Plan = Arc::new(SharedExec::new(Arc::clone(&leaf)));
            let other = RowsExec::single_empty_row().unwrap();
            let inputs = vec![Arc::clone(&shared), Arc::clone(&other), Arc::clone(&shared)];
            let union = UnionExec::try_new(inputs).unwrap();
            [union, shared, leaf, other]
        };
        let [union, shared, leaf, other] = plan();
        let mut estimates = NodeEstimates::default();
        for (plan, rows) in [(&union, 1.0), (&shared, 2.0), (&leaf, 3.0)] {
            estimates.set(plan, rows);
        }
        estimates.carry(&leaf, &other);
        let estimates = estimates.of_plan(&union);
        assert_eq!(estimates.nodes(), 5);

        // Another plan, of which nothing was said.
        let [union, shared, leaf, other] = plan();
        let mut positions = estimates.positions();
        assert_eq!(positions.visit(&union), (Some(1.0), true));
        assert_eq!(positions.visit(&shared), (Some(2.0), true));
        assert_eq!(positions.visit(&leaf), (Some(3.0), true));
        assert_eq!(positions.visit(&other), (Some(3.0), true));
        assert_eq!(
            positions.visit(&shared),
            (Some(2.0), false),
            "entered before"
        );
        assert_eq!(positions.visit(&leaf), (None, true), "beyond the plan");
    }
}
