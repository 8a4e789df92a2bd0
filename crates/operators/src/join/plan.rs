//! The plan node of a join of solutions.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::compiled::CompiledJoin;
use super::specification::{JoinMode, JoinSpecification};
use super::spill::Spill;
use super::stream::JoinStream;
use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, schema_variables};
use orrery_plan_node::{Inputs, node_methods};

/// Joins two inputs by the compatibility of their solutions; see the [module](super)'s
/// documentation.
#[derive(Debug)]
pub struct SolutionJoinExec {
    context: Arc<QueryContext>,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<CompiledJoin>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SolutionJoinExec {
    /// Joins the left input, which streams, with the right input, which is collected in memory, or
    /// on disk if it does not fit.
    pub fn try_new(
        context: Arc<QueryContext>,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        specification: JoinSpecification,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let left_variables = schema_variables(&left.schema());
        let right_variables = schema_variables(&right.schema());
        let plan = CompiledJoin::new(&context, &left_variables, &right_variables, specification)?;
        Ok(Arc::new(Self {
            context,
            left,
            right,
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl SolutionJoinExec {
    /// What the node is to do.
    pub(crate) fn specification(&self) -> &JoinSpecification {
        &self.plan.specification
    }

    /// Pairs that its filters dropped, in all executions so far.
    pub(crate) fn dropped_pairs(&self) -> u64 {
        self.plan.dropped.total()
    }
}

impl DisplayAs for SolutionJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SolutionJoinExec: ")?;
        match &self.plan.specification.mode {
            JoinMode::Inner => write!(f, "inner")?,
            JoinMode::Left => write!(f, "left")?,
            JoinMode::Anti => write!(f, "anti")?,
            JoinMode::Semi => write!(f, "semi")?,
            JoinMode::Minus(uncounted) => {
                write!(f, "minus")?;
                for uncounted in uncounted {
                    write!(f, " without ?{}", uncounted.variable)?;
                }
            }
            JoinMode::Mark(variable) => write!(f, "mark ?{variable}")?,
        }
        write!(f, " on")?;
        let left = self.left.schema();
        for &column in &self.plan.left_shared {
            write!(f, " ?{}", left.field(column).name())?;
        }
        for filter in &self.plan.specification.filters {
            write!(f, ", filter {filter}")?;
        }
        Ok(())
    }
}

impl Inputs for SolutionJoinExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn with_inputs(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Self::try_new(
            Arc::clone(&self.context),
            Arc::clone(&inputs[0]),
            Arc::clone(&inputs[1]),
            self.plan.specification.clone(),
        )?)
    }
}

impl ExecutionPlan for SolutionJoinExec {
    node_methods!("SolutionJoinExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "SolutionJoinExec has one partition");
        let reservation = MemoryConsumer::new("join of solutions")
            .with_can_spill(true)
            .register(context.memory_pool());
        let spill = Spill::new(
            context.runtime_env(),
            SpillMetrics::new(&self.metrics, partition),
            [self.left.schema(), self.right.schema()],
        );
        Ok(Box::pin(JoinStream::new(
            Arc::clone(&self.plan),
            self.left.execute(0, Arc::clone(&context))?,
            self.right.execute(0, context)?,
            spill,
            reservation,
            NodeMetrics::new(&self.metrics, partition),
        )))
    }
}
