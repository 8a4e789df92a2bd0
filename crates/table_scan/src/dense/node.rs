//! The plan node of dense aggregation.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use super::super::node::ScanExec;
use super::plan::DensePlan;
use super::stream::DenseStream;
use super::tables::GroupTables;

/// The aggregation of the rows that are not in the file, and of the others.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) new: Arc<dyn ExecutionPlan>,
    /// Where there is no memory for tables: its partitions may stand beside others that have them,
    /// and those look at the file alone.
    pub(super) file: Arc<dyn ExecutionPlan>,
}

/// Aggregates the rows of a scan, and gives the states of groups.
#[derive(Debug)]
pub(super) struct DenseAggregateExec {
    /// The aggregation in whose place it is.
    original: Arc<dyn ExecutionPlan>,
    scan: ScanExec,
    plan: Arc<DensePlan>,
    /// Where rows are not in the file.
    rest: Option<Changed>,
    metrics: ExecutionPlanMetricsSet,
}

impl DenseAggregateExec {
    pub(super) fn new(
        original: Arc<dyn ExecutionPlan>,
        scan: ScanExec,
        plan: DensePlan,
        rest: Option<Changed>,
    ) -> Self {
        Self {
            original,
            scan,
            plan: Arc::new(plan),
            rest,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn aggregate(&self) -> Option<&AggregateExec> {
        self.original.downcast_ref()
    }
}

/// What reads the rows that are not in the file, which is no input of the node, if there are any;
/// none of other nodes.
pub(crate) fn rows_apart(node: &Arc<dyn ExecutionPlan>) -> Option<Option<&Arc<dyn ExecutionPlan>>> {
    let dense = node.downcast_ref::<DenseAggregateExec>()?;
    Some(dense.rest.as_ref().map(|rest| &rest.new))
}

impl DisplayAs for DenseAggregateExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(aggregate) = self.aggregate() else {
            return write!(f, "DenseAggregateExec");
        };
        if matches!(format, DisplayFormatType::TreeRender) {
            return writeln!(f, "groups={}", self.plan.groups.count());
        }
        let keys = aggregate.group_expr().expr().iter();
        let keys: Vec<&str> = keys.map(|(_, name)| name.as_str()).collect();
        let functions = aggregate.aggr_expr().iter().map(|function| function.name());
        let functions: Vec<&str> = functions.collect();
        write!(
            f,
            "DenseAggregateExec: gby=[{}], aggr=[{}], groups={}",
            keys.join(", "),
            functions.join(", "),
            self.plan.groups.count()
        )
    }
}

impl ExecutionPlan for DenseAggregateExec {
    fn name(&self) -> &str {
        "DenseAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.original.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.original.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.original.apply_expressions(f)
    }

    /// Over another input it is the aggregation itself: what is known of the columns was known of
    /// the scan.
    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Arc::clone(&self.original).replace_children(children, options)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new("tables of groups");
        let memory = consumer.register(context.memory_pool());
        let bytes = GroupTables::bytes(self.plan.groups.count(), &self.plan.aggregates);
        let rest = self.rest.as_ref();
        if memory.try_grow(bytes).is_err() {
            let Some(rest) = rest else {
                return self.original.execute(partition, context);
            };
            let of_file = rest.file.execute(partition, Arc::clone(&context))?;
            let both = of_file.chain(rest.new.execute(partition, context)?);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), both)));
        }
        let rest = rest.map(|rest| rest.new.execute(partition, Arc::clone(&context)));
        let stream = DenseStream::new(
            Arc::clone(&self.plan),
            self.scan.stream_of_file(partition, &context),
            rest.transpose()?,
            memory,
            context.session_config().batch_size(),
            BaselineMetrics::new(&self.metrics, partition),
        );
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.original.statistics_from_inputs(inputs, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.original.child_stats_requests(partition)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
