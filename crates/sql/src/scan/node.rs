//! The node of a plan that reads a projection of a stored table.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Statistics, stats::Precision};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use orrery_storage::table::{ColumnId, Projection, TableState};

use super::morsels::Morsels;
use super::stream::ScanStream;

/// Reads a projection of a table, in as many partitions as there are threads.
#[derive(Clone)]
pub(super) struct ScanExec {
    /// The table's name, for people.
    table: String,
    projection: Projection,
    /// The columns that are given.
    columns: Vec<ColumnId>,
    schema: SchemaRef,
    limit: Option<usize>,
    morsels: Arc<Morsels>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanExec")
            .field("table", &self.table)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl ScanExec {
    /// A scan of columns, which the schema names; all of them are in the projection.
    pub(super) fn new(
        table: &TableState,
        projection: Projection,
        columns: Vec<ColumnId>,
        schema: SchemaRef,
        partitions: usize,
    ) -> Self {
        let mut equivalences = EquivalenceProperties::new(Arc::clone(&schema));
        equivalences.add_ordering(ordering(&projection, &columns, &schema));
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Self {
            table: table.definition().name.clone(),
            morsels: Arc::new(Morsels::new(projection.positions())),
            projection,
            columns,
            schema,
            limit: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same, and so many rows suffice.
    pub(super) fn with_limit(self, limit: Option<usize>) -> Self {
        Self { limit, ..self }
    }
}

/// How the rows of each partition ascend: by the first columns of the key, as far as they are given.
fn ordering(
    projection: &Projection,
    columns: &[ColumnId],
    schema: &SchemaRef,
) -> Vec<PhysicalSortExpr> {
    let key = projection.layout().key().iter();
    let given = key.map_while(|column| columns.iter().position(|id| *id == column.id));
    given
        .map(|place| {
            let column = Column::new(schema.field(place).name(), place);
            PhysicalSortExpr::new(
                Arc::new(column),
                SortOptions {
                    descending: false,
                    nulls_first: false,
                },
            )
        })
        .collect()
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "ScanExec: table={}", self.table)?;
                let names = self.schema.fields().iter().map(|field| field.name());
                let names: Vec<&str> = names.map(String::as_str).collect();
                write!(f, ", columns=[{}]", names.join(", "))?;
                match self.limit {
                    Some(limit) => write!(f, ", limit={limit}"),
                    None => Ok(()),
                }
            }
            DisplayFormatType::TreeRender => writeln!(f, "table={}", self.table),
        }
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
    ) -> Result<TreeNodeRecursion, DataFusionError> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    /// The same with all morsels to be taken again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        Ok(Arc::new(Self {
            morsels: Arc::new(Morsels::new(self.projection.positions())),
            metrics: ExecutionPlanMetricsSet::new(),
            ..(*self).clone()
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let stream = ScanStream::new(
            self.projection.clone(),
            &self.columns,
            Arc::clone(&self.schema),
            Arc::clone(&self.morsels),
            context.session_config().batch_size(),
            self.limit,
            BaselineMetrics::new(&self.metrics, partition),
        );
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>, DataFusionError> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            let rows = usize::try_from(self.projection.rows()).unwrap_or(usize::MAX);
            statistics.num_rows = match self.limit {
                Some(limit) => Precision::Inexact(rows.min(limit)),
                None => Precision::Exact(rows),
            };
        }
        Ok(Arc::new(statistics))
    }
}
