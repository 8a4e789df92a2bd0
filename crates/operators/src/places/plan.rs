//! The plan node of a spatial join.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::memory_pool::MemoryConsumer;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::compiled::{CompiledPlaces, Side};
use super::condition::PlacesCondition;
use super::stream::Pairs;
use crate::context::QueryContext;
use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::solutions::{plan_properties, schema_variables, solution_schema};
use crate::touch_counter::TouchCounter;
use orrery_plan_node::{Inputs, node_methods};

/// Joins two inputs without a common variable by their places; see the [module](super)'s
/// documentation.
#[derive(Debug)]
pub struct PlacesJoinExec {
    context: Arc<QueryContext>,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<CompiledPlaces>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PlacesJoinExec {
    /// Joins the left input, which streams, with the right input, which is collected in memory. The
    /// output has these variables, each of which an input has.
    pub fn try_new(
        context: Arc<QueryContext>,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        condition: PlacesCondition,
        output: &[Arc<str>],
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let left_variables = schema_variables(&left.schema());
        let right_variables = schema_variables(&right.schema());
        let place = |name: &Arc<str>, variables: &[Arc<str>]| {
            variables.iter().position(|variable| variable == name)
        };
        let missing = |name: &str| {
            Error::Unsupported(format!("a join of places by ?{name}, which is no column"))
        };
        let of_output = |name| {
            let left = place(name, &left_variables).map(Side::Left);
            let side = left.or_else(|| place(name, &right_variables).map(Side::Right));
            side.ok_or_else(|| missing(name))
        };
        let plan = CompiledPlaces {
            left_column: place(&condition.left, &left_variables)
                .ok_or_else(|| missing(&condition.left))?,
            right_column: place(&condition.right, &right_variables)
                .ok_or_else(|| missing(&condition.right))?,
            output: output.iter().map(of_output).collect::<Result<_, _>>()?,
            schema: solution_schema(output),
            dropped: TouchCounter::default(),
            condition,
        };
        Ok(Arc::new(Self {
            context,
            left,
            right,
            properties: plan_properties(&plan.schema),
            plan: Arc::new(plan),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// What must hold.
    pub(crate) fn condition(&self) -> &PlacesCondition {
        &self.plan.condition
    }

    /// Pairs that the condition dropped, in all executions so far.
    pub(crate) fn dropped_pairs(&self) -> u64 {
        self.plan.dropped.total()
    }
}

impl DisplayAs for PlacesJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlacesJoinExec: {}", self.plan.condition)
    }
}

impl Inputs for PlacesJoinExec {
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
            self.plan.condition.clone(),
            &schema_variables(&self.plan.schema),
        )?)
    }
}

impl ExecutionPlan for PlacesJoinExec {
    node_methods!("PlacesJoinExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "PlacesJoinExec has one partition");
        let reservation = MemoryConsumer::new("join of places").register(context.memory_pool());
        let pairs = Pairs::new(
            Arc::clone(&self.plan),
            Arc::clone(&self.context),
            self.left.execute(0, Arc::clone(&context))?,
            self.right.execute(0, context)?,
            reservation,
            NodeMetrics::new(&self.metrics, partition),
        );
        let rows = futures::stream::try_unfold(pairs, |mut pairs| async move {
            let next = pairs.next().await?;
            Ok(next.map(|batch| (batch, pairs)))
        });
        let schema = Arc::clone(&self.plan.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
