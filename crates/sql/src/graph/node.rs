//! The plan node that runs a SPARQL query.
//!
//! Conditions and the limit come with the plan of the table; what a join above learns of its keys
//! (its other side is there first) is looked at when the node is asked for its first row, and goes
//! into the query with the conditions. It only spares work: the join looks again.

use orrery_plan_node::node_methods;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, DynamicFilterTracking, InListExpr, Literal,
};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use super::condition::Seen;
use super::{GraphCondition, GraphQuery, GraphRows, GraphSource};
use crate::values::data_types::assign;

/// Runs a query, in one partition: it is spread over threads within.
#[derive(Clone)]
pub(super) struct GraphExec {
    source: Arc<dyn GraphSource>,
    query: Arc<GraphQuery>,
    columns: Arc<[Seen]>,
    schema: SchemaRef,
    /// Filters over the schema that operators above change while they run.
    hints: Vec<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Whether a node runs a query of SPARQL.
pub(crate) fn is_of_graphs(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<GraphExec>()
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphExec")
            .field("query", &self.query)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl GraphExec {
    pub(super) fn new(
        source: Arc<dyn GraphSource>,
        query: GraphQuery,
        columns: Vec<Seen>,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            source,
            query: Arc::new(query),
            columns: columns.into(),
            schema,
            hints: Vec::new(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// The query with what is known of join keys now.
fn with_hints(
    query: &Arc<GraphQuery>,
    hints: &[Arc<dyn PhysicalExpr>],
    columns: &[Seen],
) -> Result<Arc<GraphQuery>> {
    let mut known: Vec<GraphCondition> = Vec::new();
    for hint in hints {
        let now = match hint.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(dynamic) => dynamic.current()?,
            None => Arc::clone(hint),
        };
        for part in split_conjunction(&now) {
            known.extend(condition(part, columns).into_iter().flatten());
        }
    }
    if known.is_empty() {
        return Ok(Arc::clone(query));
    }
    let mut query = GraphQuery::clone(query);
    query.conditions.extend(known);
    Ok(Arc::new(query))
}

/// That a column is one of some values, if that is what an expression says.
fn condition(part: &Arc<dyn PhysicalExpr>, columns: &[Seen]) -> Option<Vec<GraphCondition>> {
    let (operand, values) = if let Some(list) = part.downcast_ref::<InListExpr>() {
        if list.negated() {
            return None;
        }
        let values = list.list().iter().map(constant);
        (list.expr(), values.collect::<Option<Vec<_>>>()?)
    } else {
        let equal = part.downcast_ref::<BinaryExpr>()?;
        if *equal.op() != Operator::Eq {
            return None;
        }
        (equal.left(), vec![constant(equal.right())?])
    };
    let column = operand.downcast_ref::<Column>()?;
    // A NULL among the keys of a join finds nothing.
    let values: Vec<ScalarValue> = values
        .into_iter()
        .filter(|value| !value.is_null())
        .collect();
    let taken = columns.get(column.index())?.one_of(&values)?;
    Some(taken.conditions)
}

fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    Some(expr.downcast_ref::<Literal>()?.value().clone())
}

/// Texts as values of the columns' types.
fn batch(rows: GraphRows, columns: &[Seen], schema: &SchemaRef) -> Result<RecordBatch> {
    let values = rows.columns.iter().zip(columns);
    let values = values.map(|(texts, seen)| assign(texts, &seen.name, seen.column_type));
    let values = values.collect::<crate::Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), values, &options);
    Ok(batch?)
}

impl DisplayAs for GraphExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = &self.query;
        let text = query.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if matches!(format, DisplayFormatType::TreeRender) {
            return writeln!(f, "query={text}");
        }
        let names: Vec<&str> = query
            .columns
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        write!(
            f,
            "GraphExec: query={text:?}, variables=[{}]",
            names.join(", ")
        )?;
        if !query.conditions.is_empty() {
            let conditions = query.conditions.iter().map(ToString::to_string);
            write!(
                f,
                ", conditions={}",
                conditions.collect::<Vec<_>>().join(" AND ")
            )?;
        }
        if !self.hints.is_empty() {
            let hints = self.hints.iter().map(ToString::to_string);
            write!(f, ", hints={}", hints.collect::<Vec<_>>().join(" AND "))?;
        }
        match query.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for GraphExec {
    node_methods!("GraphExec", leaf, own expressions);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for hint in &self.hints {
            if f(hint)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (source, columns) = (Arc::clone(&self.source), Arc::clone(&self.columns));
        let (query, hints) = (Arc::clone(&self.query), self.hints.clone());
        let counts = BaselineMetrics::new(&self.metrics, partition);
        let (schema, of_batches) = (Arc::clone(&self.schema), Arc::clone(&self.schema));
        // Begun at the first poll, when the other side of a join is there.
        let batches = futures::stream::once(async move {
            let query = with_hints(&query, &hints, &columns)?;
            let solutions = source.solutions(query);
            Ok::<_, DataFusionError>(
                solutions
                    .map(move |rows| batch(rows?, &columns, &of_batches).record_output(&counts)),
            )
        });
        let batches = batches.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // Behind a limit are other rows than before it.
        if self.query.limit.is_some() || pushed.parent_filters.is_empty() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let mut node = self.clone();
        let mut answers = Vec::with_capacity(pushed.parent_filters.len());
        for pushed in pushed.parent_filters {
            let filter = pushed.filter;
            if DynamicFilterTracking::classify(&filter).contains_dynamic_filter() {
                node.hints.push(filter);
            }
            answers.push(PushedDown::No);
        }
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        Ok(answer.with_updated_node(Arc::new(node)))
    }
}
