//! What a query has cost so far, for whoever looks on while it runs.

use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use orrery_operators::context::QueryContext;
use orrery_operators::touches;
use orrery_runtime::Touched;

/// Reads the touches of the runs of one prepared query ([`orrery_operators::touches`]), and of the terms of its answers.
pub struct TouchReader {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<QueryContext>,
}

impl TouchReader {
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>, context: Arc<QueryContext>) -> Self {
        Self { plan, context }
    }
}

impl Touched for TouchReader {
    /// A walk through the plan, which takes some microseconds.
    fn touches(&self) -> u64 {
        touches(&self.plan).saturating_add(self.context.touches())
    }
}
