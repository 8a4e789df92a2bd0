//! The plan node that scans a projection of a stored table.
//!
//! Filters come in three ways: with the plan of the table (all that hold for each row by
//! themselves), from a filter above the node, and as hints that operators above make while they run
//! (the bound of a TopK, the keys of a hash join). The first two are evaluated here, and nowhere
//! else; hints only spare work. Each of them changes what is read, so a node with other filters is
//! made anew.

use orrery_plan_node::node_methods;
use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, stats::Precision};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, RangePartitioning, SplitPoint,
};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use orrery_storage::table::file::GROUP_ROWS;
use orrery_storage::table::{ColumnId, Projection, TableState, Tables};

use super::access::{Access, choose};
use super::divided::Divided;
use super::failed;
use super::hint::{Dynamic, OwnRange};
use super::key_bits::SharedKeys;
use super::look_up::LookUpStream;
use super::morsels::{Morsels, Queues};
use super::plan::{Counts, Plan, ScannedRows};
use super::stream::ScanStream;
use super::told;

/// What a scan counts of rows, by the names of metrics.
const LOOKED_AT: &str = "rows_looked_at";
const SPARED: &str = "rows_spared";

/// Of fewer rows, whoever is first takes the next ones.
const DIVIDED_ROWS_MIN: u64 = 4 * GROUP_ROWS as u64;

/// What a scan is to do.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) table: TableState,
    /// All tables of the snapshot, if they are known.
    pub(super) tables: Option<Arc<Tables>>,
    /// The columns that are given.
    pub(super) columns: Vec<ColumnId>,
    /// All columns that filters can name, by their index.
    pub(super) ids: Arc<[ColumnId]>,
    /// The names and types of those that are given.
    pub(super) schema: SchemaRef,
    /// What holds for each row that is given. Columns are named by their index in `ids`.
    pub(super) filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) dynamic: Vec<Dynamic>,
    /// The keys of joins that say these hints, too.
    pub(super) keys: Vec<SharedKeys>,
    pub(super) limit: Option<usize>,
    /// At most so many partitions.
    pub(super) partitions: usize,
    /// Whether plans are told in which order rows come.
    pub(super) tells_order: bool,
    /// Whether each partition has a share of the rows that follows from its number alone.
    pub(super) in_shares: bool,
}

impl Wanted {
    /// The columns that are given or that filters name.
    fn needed(&self) -> Vec<ColumnId> {
        let hints = self.dynamic.iter().map(|dynamic| &dynamic.0);
        let named = self.filters.iter().chain(hints).flat_map(collect_columns);
        let named = named.filter_map(|column| self.ids.get(column.index()).copied());
        self.columns.iter().copied().chain(named).collect()
    }
}

/// Reads a projection of a table, in as many partitions as there are threads and morsels.
#[derive(Clone)]
pub(super) struct ScanExec {
    wanted: Wanted,
    access: Arc<Access>,
    morsels: Queues,
    rows: ScannedRows,
    /// Asked for more than once while joins are planned.
    told: OnceLock<Arc<Statistics>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// A scan that says nothing of the order in which its rows come, for one that does. `None` where a
/// node is no scan of a stored table.
pub fn scan_without_order(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<ScanExec>()?;
    Some(Arc::new(scan.without_order()))
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanExec")
            .field("table", &self.wanted.table.definition().name)
            .field("columns", &self.wanted.columns)
            .field("filters", &self.wanted.filters)
            .finish_non_exhaustive()
    }
}

impl ScanExec {
    /// Chooses how to read what is wanted.
    pub(super) fn new(wanted: Wanted) -> Result<Self> {
        let mut access = choose(
            &wanted.table,
            &wanted.needed(),
            &wanted.filters,
            &wanted.ids,
        )?;
        let is_primary = access.index.is_none() && access.look_up.is_none();
        if is_primary && wanted.partitions > 1 && access.ranges.rows >= DIVIDED_ROWS_MIN {
            let tables = wanted.tables.as_deref();
            let divided = Divided::new(tables, &wanted.table, wanted.partitions);
            let divided = divided.map_err(failed)?;
            access.divided = divided.filter(|divided| divided.is_even(&access.ranges.positions));
        }
        Ok(Self::over(wanted, Arc::new(access)))
    }

    /// The same with other columns or filters, read as before if the filters are those that were.
    fn with(&self, wanted: Wanted) -> Result<Self> {
        let layout = self.access.projection.layout();
        let has = |id: &ColumnId| layout.position(*id).is_some();
        let is_as_before = wanted.filters.len() == self.wanted.filters.len();
        match is_as_before && wanted.needed().iter().all(has) {
            true => Ok(Self::over(wanted, Arc::clone(&self.access))),
            false => Self::new(wanted),
        }
    }

    /// The same that says nothing of the order in which its rows come.
    pub(super) fn without_order(&self) -> Self {
        let mut wanted = self.wanted.clone();
        wanted.tells_order = false;
        Self::over(wanted, Arc::clone(&self.access))
    }

    /// The same that asks for keys.
    pub(super) fn with_keys(&self, keys: Vec<SharedKeys>) -> Self {
        let mut scan = self.clone();
        scan.wanted.keys = keys;
        scan
    }

    /// The same of the rows that are not in the file.
    pub(super) fn of_new_rows(&self) -> Self {
        Self {
            morsels: self.morsels.untouched(),
            rows: ScannedRows::New,
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        }
    }

    /// The same of the rows that are in the file; its partitions and those of this one take morsels
    /// from one another.
    pub(super) fn of_file_rows(&self) -> Self {
        Self {
            rows: ScannedRows::File,
            ..self.clone()
        }
    }

    /// Whether it gives all rows that pass, as they stand in a projection.
    pub(super) fn is_of_all_rows(&self) -> bool {
        self.rows == ScannedRows::All
            && self.wanted.limit.is_none()
            && self.access.look_up.is_none()
    }

    /// The columns that are given, and their names and types.
    pub(super) fn given(&self) -> (&[ColumnId], &Schema) {
        (&self.wanted.columns, &self.wanted.schema)
    }

    /// Whether each partition has a share of the rows, whoever runs the others.
    pub(super) fn is_in_shares(&self) -> bool {
        matches!(self.morsels, Queues::OfEach(_))
    }

    /// About how many rows come.
    pub(super) fn row_count(&self) -> u64 {
        self.access.rows
    }

    /// What finds the rows of the file that a partition has.
    pub(super) fn stream_of_file(&self, partition: usize, context: &TaskContext) -> ScanStream {
        let (plan, counts) = self.plan_of(partition);
        let batch_rows = context.session_config().batch_size();
        let morsels = self.morsels.of(partition);
        ScanStream::new(Arc::new(plan), morsels, batch_rows, None, counts).of(ScannedRows::File)
    }

    /// What a partition reads, and where it counts.
    fn plan_of(&self, partition: usize) -> (Plan, Counts) {
        let mut plan = Plan::new(
            self.access.projection.clone(),
            &self.wanted.columns,
            Arc::clone(&self.wanted.schema),
            Arc::clone(&self.wanted.ids),
            Arc::clone(&self.access.conditions),
            self.wanted.dynamic.clone(),
            Arc::clone(&self.access.ranges),
        );
        plan.own_range = self.own_range(partition);
        plan.keys = self.wanted.keys.clone();
        let counter = |name| MetricBuilder::new(&self.metrics).counter(name, partition);
        let counts = Counts {
            baseline: BaselineMetrics::new(&self.metrics, partition),
            vectors_skipped: counter("vectors_skipped"),
            rows_looked_at: counter(LOOKED_AT),
            rows_spared: counter(SPARED),
        };
        (plan, counts)
    }

    /// Rows that its own conditions left to be looked at, whether or not a hint spared some of
    /// them: hints come sooner or later.
    pub(super) fn touches(&self) -> u64 {
        let counted = self.metrics.clone_inner();
        let sum = |name| counted.sum_by_name(name).map_or(0, |sum| sum.as_usize());
        (sum(LOOKED_AT) + sum(SPARED)) as u64
    }

    /// What operators above say while they run.
    pub(super) fn hints(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.wanted.dynamic.iter().map(|dynamic| &dynamic.0)
    }

    /// All columns that hints name, by their index.
    pub(super) fn ids(&self) -> &[ColumnId] {
        &self.wanted.ids
    }

    /// What is read.
    pub(super) fn projection(&self) -> &Projection {
        &self.access.projection
    }

    fn over(wanted: Wanted, access: Arc<Access>) -> Self {
        let schema = &wanted.schema;
        let mut equivalences = EquivalenceProperties::new(Arc::clone(schema));
        if access.look_up.is_none() && wanted.tells_order {
            equivalences.add_ordering(told::ordering(&access.projection, &wanted.columns, schema));
        }
        let (morsels, partitioning) = partitions(&wanted, &access);
        let properties = PlanProperties::new(
            equivalences,
            partitioning,
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Self {
            wanted,
            access,
            morsels,
            rows: ScannedRows::All,
            told: OnceLock::new(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The range of the key that a partition has, if the scan is divided by it.
    fn own_range(&self, partition: usize) -> Option<OwnRange> {
        let Queues::OfEach(_) = &self.morsels else {
            return None;
        };
        let divided = self.access.divided.as_ref()?;
        Some(OwnRange {
            column: self.access.projection.layout().key().first()?.id,
            values: divided.values.clone(),
            partition,
        })
    }

    /// An expression over the columns that are given, over those of the table.
    fn over_table(&self, expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let moved = expression.transform_down(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            let id = self.wanted.columns.get(column.index());
            let place = id.and_then(|id| self.wanted.ids.iter().position(|of| of == id));
            let place = place.ok_or_else(|| {
                DataFusionError::Internal(format!("{column} is not a column of the scan"))
            })?;
            Ok(Transformed::yes(
                Arc::new(Column::new(column.name(), place)) as _,
            ))
        });
        moved.map(|moved| moved.data)
    }
}

/// How positions are divided among the partitions: by the key where that is given, else by whoever
/// is first.
fn partitions(wanted: &Wanted, access: &Access) -> (Queues, Partitioning) {
    let positions = &access.ranges.positions;
    if let Some(divided) = &access.divided
        && let Some(ordering) = LexOrdering::new(
            told::ordering(&access.projection, &wanted.columns, &wanted.schema)
                .into_iter()
                .take(1),
        )
    {
        let points = divided.values.iter();
        let points = points.map(|value| SplitPoint::new(vec![value.clone()]));
        if let Ok(range) = RangePartitioning::try_new(ordering, points.collect()) {
            let parts = divided.parts(positions).into_iter();
            let each = parts.map(|part| Arc::new(Morsels::new(&part)));
            return (Queues::OfEach(each.collect()), Partitioning::Range(range));
        }
    }
    let morsels = Morsels::new(positions);
    let count = wanted.partitions.min(morsels.len()).max(1);
    if wanted.in_shares && count > 1 {
        let shares = Queues::OfEach(morsels.shares(count));
        return (shares, Partitioning::UnknownPartitioning(count));
    }
    (
        Queues::Shared(Arc::new(morsels)),
        Partitioning::UnknownPartitioning(count),
    )
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, access) = (&self.wanted, &self.access);
        let table = &wanted.table.definition().name;
        if matches!(format, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={table}");
        }
        let names = wanted.schema.fields().iter().map(|field| field.name());
        let names: Vec<&str> = names.map(String::as_str).collect();
        write!(f, "ScanExec: table={table}, columns=[{}]", names.join(", "))?;
        if let Some(index) = &access.index {
            let how = match access.look_up {
                Some(_) => "looked up by",
                None => "index",
            };
            write!(f, ", {how}={index}")?;
        }
        if access.ranges.columns > 0 {
            let (rows, count) = (access.ranges.rows, access.ranges.positions.len());
            write!(f, ", ranges={count} of {rows} rows")?;
        }
        let written = |filters: &mut dyn Iterator<Item = &Arc<dyn PhysicalExpr>>| {
            let filters: Vec<String> = filters.map(ToString::to_string).collect();
            filters.join(" AND ")
        };
        if !wanted.filters.is_empty() {
            write!(f, ", filter={}", written(&mut wanted.filters.iter()))?;
        }
        if !wanted.dynamic.is_empty() {
            let hints = &mut wanted.dynamic.iter().map(|dynamic| &dynamic.0);
            write!(f, ", hints={}", written(hints))?;
        }
        if !wanted.keys.is_empty() {
            write!(f, ", keys of joins")?;
        }
        match wanted.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanExec {
    node_methods!("ScanExec", leaf, own expressions);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let hints = self.wanted.dynamic.iter().map(|dynamic| &dynamic.0);
        for expression in self.wanted.filters.iter().chain(hints) {
            if f(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    /// The same with all morsels to be taken again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            morsels: self.morsels.untouched(),
            metrics: ExecutionPlanMetricsSet::new(),
            ..(*self).clone()
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (plan, counts) = self.plan_of(partition);
        let (plan, limit) = (Arc::new(plan), self.wanted.limit);
        if let Some(index) = &self.access.look_up {
            let morsels = self.morsels.of(partition);
            let stream = LookUpStream::new(plan, index.clone(), morsels, limit, counts)?;
            return Ok(Box::pin(cooperative(stream)));
        }
        let stream = ScanStream::new(
            plan,
            self.morsels.of(partition),
            context.session_config().batch_size(),
            limit,
            counts,
        );
        let stream = stream.of(self.rows);
        Ok(Box::pin(cooperative(stream)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let wanted = &self.wanted;
        if args.partition().is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&wanted.schema)));
        }
        let told = self.told.get_or_init(|| {
            let rows = usize::try_from(self.access.rows).unwrap_or(usize::MAX);
            let rows = match wanted.limit {
                Some(limit) => Precision::Inexact(rows.min(limit)),
                None if self.access.is_exact => Precision::Exact(rows),
                None => Precision::Inexact(rows),
            };
            let projection = &self.access.projection;
            let told = told::statistics(projection, &wanted.columns, &wanted.schema, rows);
            Arc::new(told)
        });
        Ok(Arc::clone(told))
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let mut columns = Vec::new();
        let mut fields = Vec::new();
        for expression in projection.expr() {
            let Some(column) = expression.expr.downcast_ref::<Column>() else {
                return Ok(None);
            };
            let id = self.wanted.columns[column.index()];
            // A projection knows that two of its columns are equal, which a scan does not tell.
            if columns.contains(&id) {
                return Ok(None);
            }
            columns.push(id);
            let field: &Field = self.wanted.schema.field(column.index());
            fields.push(field.clone().with_name(&expression.alias));
        }
        Ok(Some(Arc::new(self.with(Wanted {
            columns,
            schema: Arc::new(Schema::new(fields)),
            ..self.wanted.clone()
        })?)))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // Behind a limit are other rows than before it.
        if self.wanted.limit.is_some() || pushed.parent_filters.is_empty() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let mut wanted = self.wanted.clone();
        let mut answers = Vec::with_capacity(pushed.parent_filters.len());
        for pushed in pushed.parent_filters {
            if is_volatile(&pushed.filter) {
                answers.push(PushedDown::No);
                continue;
            }
            let filter = self.over_table(pushed.filter)?;
            let is_dynamic = DynamicFilterTracking::classify(&filter).contains_dynamic_filter();
            if is_dynamic {
                wanted.dynamic.push(Dynamic(filter));
                answers.push(PushedDown::No);
            } else {
                wanted.filters.push(filter);
                answers.push(PushedDown::Yes);
            }
        }
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        Ok(answer.with_updated_node(Arc::new(self.with(wanted)?)))
    }
}
