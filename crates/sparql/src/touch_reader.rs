//! A reader of a running query's cost so far.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::context::QueryContext;
use orrery_operators::touches;
use orrery_runtime::Touched;

/// Reads the touches of the runs of one prepared query ([`orrery_operators::touches`]), and of the
/// terms of its answers.
pub struct TouchReader {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<QueryContext>,
    /// What somebody else has counted.
    without: u64,
}

impl TouchReader {
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>, context: Arc<QueryContext>) -> Self {
        Self {
            plan,
            context,
            without: 0,
        }
    }

    /// Without what planning has done, which was paid for as it was done
    /// ([`QueryOptions::spending`](crate::QueryOptions::spending)).
    #[must_use]
    pub fn of_run(mut self) -> Self {
        self.without = self.context.planned_touches();
        self
    }
}

impl Touched for TouchReader {
    /// A walk through the plan, which takes some microseconds.
    fn touches(&self) -> u64 {
        let all = touches(&self.plan).saturating_add(self.context.touches());
        all - self.without.min(all)
    }
}
