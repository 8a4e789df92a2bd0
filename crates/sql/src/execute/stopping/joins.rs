//! Joins that stop when their statement is canceled.
//!
//! A join of DataFusion puts rows of one side beside all that match of the other without a pause
//! until it has a batch to give; and with one that is given at once, whoever counts them asks for
//! the next without a pause, too. A task that is aborted ends where it pauses only: of millions of
//! pairs of which a condition leaves few, that was hours behind the answer that time is up.
//!
//! ```text
//! plan   joins_that_stop:  join -> StoppableExec(join), its condition -> Checked(condition)
//! run    stoppable:        a Stop goes with the task
//!        StoppableExec     pauses every so often (tokio's budget), and names the Stop to the thread while it asks the join
//!        Checked           looks at what is named for each batch of pairs, and fails where the Stop is set
//! ```
//!
//! A join without a condition whose rows are those of one side (EXISTS, IN, DISTINCT above a join)
//! ends with the batch that it probes with: what it is probed with is a StoppableExec, too. With
//! 8,192 rows that have 300,000 matches each that is a quarter of a minute.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

use super::patterns::sliced;
use super::stop::{Named, Stop, require_somebody_here};

use orrery_plan_node::{Passing, passing_methods};

/// A join as one that stops; any other node as it is.
pub(crate) fn joins_that_stop(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let join: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        match join.filter() {
            Some(filter) => {
                let filter = checked(filter)?;
                Arc::new(join.builder().with_filter(Some(filter)).build()?)
            }
            None if gives_rows_of_one_side(join.join_type()) => {
                // It has nothing to ask, nor rows to give: between the batches that it probes with.
                let probed = StoppableExec::new(Arc::clone(join.right()));
                let inputs: Vec<Arc<dyn ExecutionPlan>> =
                    vec![Arc::clone(join.left()), Arc::new(probed)];
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
                node.replace_children(inputs, options)?
            }
            None => node,
        }
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        match join.filter() {
            Some(filter) => {
                let builder = NestedLoopJoinExecBuilder::from(join);
                Arc::new(builder.with_filter(Some(checked(filter)?)).build()?)
            }
            None => node,
        }
    } else if node.is::<CrossJoinExec>() || node.is::<SortMergeJoinExec>() {
        node
    } else {
        return Ok(Transformed::no(node));
    };
    Ok(Transformed::yes(Arc::new(StoppableExec::new(join))))
}

/// Whether matches are looked at, and are no rows.
fn gives_rows_of_one_side(join: &JoinType) -> bool {
    match join {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => false,
        JoinType::LeftSemi
        | JoinType::RightSemi
        | JoinType::LeftAnti
        | JoinType::RightAnti
        | JoinType::LeftMark
        | JoinType::RightMark => true,
    }
}

fn checked(filter: &JoinFilter) -> Result<JoinFilter> {
    let condition = sliced(Arc::clone(filter.expression()))?.data;
    Ok(JoinFilter::new(
        Arc::new(Checked { condition }),
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    ))
}

/// A join's condition, which fails when the execution is over.
#[derive(Debug)]
struct Checked {
    condition: Arc<dyn PhysicalExpr>,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl Display for Checked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.condition, f)
    }
}

impl PhysicalExpr for Checked {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, pairs: &RecordBatch) -> Result<ColumnarValue> {
        require_somebody_here()?;
        self.condition.evaluate(pairs)
    }

    fn evaluate_selection(
        &self,
        pairs: &RecordBatch,
        selection: &BooleanArray,
    ) -> Result<ColumnarValue> {
        require_somebody_here()?;
        self.condition.evaluate_selection(pairs, selection)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(condition), true) => Ok(Arc::new(Self { condition })),
            _ => internal_err!("a condition is one"),
        }
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

/// A join that stops, or what one is probed with; see the module.
#[derive(Debug, Clone)]
pub(super) struct StoppableExec {
    join: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl StoppableExec {
    fn new(join: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::clone(join.properties());
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        Self {
            join,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for StoppableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("StoppableExec")
    }
}

impl Passing for StoppableExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.join
    }

    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self> {
        Ok(match properties {
            ChildrenPropertiesMode::Keep => Self {
                join: input,
                properties: Arc::clone(&self.properties),
            },
            ChildrenPropertiesMode::Recompute => Self::new(input),
        })
    }
}

impl ExecutionPlan for StoppableExec {
    passing_methods!(|_| "StoppableExec");

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stop = task.session_config().get_extension::<Stop>();
        let rows = make_cooperative(self.join.execute(partition, task)?);
        Ok(match stop {
            Some(stop) => Box::pin(StoppableRows { rows, stop }),
            None => rows,
        })
    }
}

/// The rows of a join that stops.
struct StoppableRows {
    rows: SendableRecordBatchStream,
    stop: Arc<Stop>,
}

impl Stream for StoppableRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(over) = self.stop.require_not_set() {
            return Poll::Ready(Some(Err(over)));
        }
        let _named = Named::new(&self.stop);
        self.rows.poll_next_unpin(context)
    }
}

impl RecordBatchStream for StoppableRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
