//! A pattern without its query, the template of cached plans.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{ExecutionPlan, PlanProperties};
use parking_lot::Mutex;

use super::compiler::compile::Arrangement;
use super::plan::PatternExec;
use super::run::compiled::CompiledPattern;
use super::run::pipeline::StepCounters;
use super::specification::PatternSpecification;
use crate::context::QueryContext;
use crate::dealing::Executions;

/// What a pattern is to do, over an input of the same columns, in one partition.
#[derive(Debug)]
pub(crate) struct DetachedPattern {
    specification: PatternSpecification,
    input_variables: Vec<Arc<str>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    /// If it was compiled.
    arrangement: Option<Arc<Arrangement>>,
}

impl PatternExec {
    /// The pattern without its query; nothing if it is spread over partitions, or has ids from
    /// outside.
    pub(crate) fn detached(&self) -> Option<DetachedPattern> {
        let specification = self.specification();
        let is_plain = self.spread_over().is_none()
            && specification.given.is_empty()
            && specification.found.is_empty();
        is_plain.then(|| DetachedPattern {
            specification: self.specification().clone(),
            input_variables: self.plan.input_variables.clone(),
            schema: Arc::clone(&self.plan.schema),
            properties: Arc::clone(&self.properties),
            arrangement: self.plan.arrangement.get().cloned(),
        })
    }
}

impl DetachedPattern {
    /// What it is to do.
    pub(crate) fn specification(&self) -> &PatternSpecification {
        &self.specification
    }

    /// The pattern for a query over the same base, with other constants, and bounds on the same
    /// objects, but the same variables.
    pub(crate) fn attached(
        &self,
        context: &Arc<QueryContext>,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: PatternSpecification,
    ) -> Arc<dyn ExecutionPlan> {
        let counters = specification.steps.iter().map(|_| StepCounters::default());
        let arrangement = self.arrangement.clone();
        Arc::new(PatternExec {
            input,
            spread: None,
            executions: Executions::default(),
            plan: Arc::new(CompiledPattern {
                context: Arc::clone(context),
                counters: counters.collect(),
                specification,
                input_variables: self.input_variables.clone(),
                schema: Arc::clone(&self.schema),
                arrangement: arrangement.map_or_else(OnceLock::new, OnceLock::from),
                bound: OnceLock::new(),
                others: Mutex::default(),
            }),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}
