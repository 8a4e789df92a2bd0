//! The plan node of `SERVICE`.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::compiled::CompiledService;
use super::endpoints::ServiceOptions;
use super::run::ServiceRun;
use super::specification::{Endpoint, ServiceSpecification};
use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, schema_variables};
use orrery_plan_node::{Inputs, node_methods};

/// Characters of a pattern that a plan shows.
const PATTERN_CHARS_MAX: usize = 120;

/// Asks other endpoints and joins their solutions to its input; see the [module](super)'s
/// documentation.
#[derive(Debug)]
pub struct ServiceExec {
    plan: Arc<CompiledService>,
    input: Option<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ServiceExec {
    /// With an input, each of its solutions is joined to those of the endpoint; without, these are
    /// given alone. Fails if the endpoint is a variable that the input does not have.
    pub fn try_new(
        context: Arc<QueryContext>,
        options: ServiceOptions,
        input: Option<Arc<dyn ExecutionPlan>>,
        specification: ServiceSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let columns = input
            .as_ref()
            .map(|input| schema_variables(&input.schema()))
            .unwrap_or_default();
        let plan = CompiledService::new(context, options, &columns, specification)?;
        Ok(Arc::new(Self {
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl ServiceExec {
    /// What the node is to do.
    pub(crate) fn specification(&self) -> &ServiceSpecification {
        &self.plan.specification
    }
}

impl DisplayAs for ServiceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specification = &self.plan.specification;
        write!(f, "ServiceExec: ")?;
        if specification.is_silent {
            write!(f, "silent ")?;
        }
        match &specification.endpoint {
            Endpoint::Iri(iri) => write!(f, "<{iri}>")?,
            Endpoint::Variable(name) => write!(f, "?{name}")?,
        }
        if specification.sends_keys && !self.plan.shared.is_empty() {
            write!(f, ", sends")?;
            for shared in &self.plan.shared {
                write!(f, " {}", shared.name)?;
            }
        }
        let pattern = specification.pattern.to_string();
        let words: Vec<&str> = pattern.split_whitespace().collect();
        let pattern = words.join(" ");
        let shown: String = pattern.chars().take(PATTERN_CHARS_MAX).collect();
        let more = if shown.len() < pattern.len() {
            "..."
        } else {
            ""
        };
        write!(f, ", {{ {shown}{more} }}")
    }
}

impl Inputs for ServiceExec {
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            self.plan.options.clone(),
            inputs.pop(),
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for ServiceExec {
    node_methods!("ServiceExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "ServiceExec has one partition");
        let reservation = MemoryConsumer::new("SERVICE").register(context.memory_pool());
        let input = match &self.input {
            Some(input) => Some(input.execute(0, context)?),
            None => None,
        };
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let run = ServiceRun::new(Arc::clone(&self.plan), input, reservation, baseline);
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next_batch().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.plan.schema),
            batches,
        )))
    }
}
