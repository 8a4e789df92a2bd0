//! The plan node.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use spargebra::term::Variable;

use super::run::ServiceRun;
use super::{Endpoint, ServiceOptions, ServiceSpecification};
use crate::context::QueryContext;
use crate::error::Error;
use crate::node::optional_input_methods;
use crate::solutions::{plan_properties, schema_variables, solution_schema};

/// Characters of a pattern that a plan shows.
const PATTERN_CHARS_MAX: usize = 120;

/// A variable that both the input and the pattern have.
#[derive(Clone, Debug)]
pub(super) struct SharedColumn {
    /// Its column in the input.
    pub(super) input: usize,
    /// Its place among the variables of the answer.
    pub(super) answer: usize,
    /// Its name in the pattern.
    pub(super) name: Variable,
}

/// Where an output variable comes from: the input, or where that leaves it unbound, the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputColumn {
    pub(super) input: Option<usize>,
    pub(super) answer: Option<usize>,
}

/// A compiled specification.
#[derive(Debug)]
pub(super) struct ServicePlan {
    pub(super) context: Arc<QueryContext>,
    pub(super) options: ServiceOptions,
    pub(super) specification: ServiceSpecification,
    pub(super) schema: SchemaRef,
    pub(super) shared: Vec<SharedColumn>,
    /// The column of the endpoint's variable.
    pub(super) endpoint_column: Option<usize>,
    pub(super) output: Vec<OutputColumn>,
}

impl ServicePlan {
    fn new(
        context: Arc<QueryContext>,
        options: ServiceOptions,
        input: &[Arc<str>],
        specification: ServiceSpecification,
    ) -> Result<Self, Error> {
        let place = |name: &Arc<str>| input.iter().position(|column| column == name);
        let endpoint_column = match &specification.endpoint {
            Endpoint::Iri(_) => None,
            Endpoint::Variable(name) => Some(place(name).ok_or_else(|| {
                Error::Unsupported(format!("SERVICE ?{name}: nothing before it binds ?{name}"))
            })?),
        };
        let variables = specification.variables.iter().enumerate();
        let shared = variables
            .filter_map(|(answer, variable)| {
                Some(SharedColumn {
                    input: place(&variable.column)?,
                    answer,
                    name: variable.name.clone(),
                })
            })
            .collect();
        let output = specification.output.iter().map(|name| {
            let mut variables = specification.variables.iter();
            OutputColumn {
                input: place(name),
                answer: variables.position(|variable| variable.column == *name),
            }
        });
        Ok(Self {
            output: output.collect(),
            schema: solution_schema(&specification.output),
            shared,
            endpoint_column,
            context,
            options,
            specification,
        })
    }

    /// The columns of the input that make one request differ from another.
    pub(super) fn key_columns(&self) -> Vec<usize> {
        let shared = self.shared.iter().map(|shared| shared.input);
        let sent = shared.filter(|_| self.specification.sends_keys);
        sent.chain(self.endpoint_column).collect()
    }
}

/// Asks other endpoints and joins their solutions to its input; see the [module](super)'s
/// documentation.
#[derive(Debug)]
pub struct ServiceExec {
    plan: Arc<ServicePlan>,
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
        let plan = ServicePlan::new(context, options, &columns, specification)?;
        Ok(Arc::new(Self {
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }))
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

impl ServiceExec {
    fn with_input(&self, input: Option<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Self::try_new(
            Arc::clone(&self.plan.context),
            self.plan.options.clone(),
            input,
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for ServiceExec {
    optional_input_methods!("ServiceExec");

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
        let baseline = BaselineMetrics::new(&self.metrics, partition);
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
