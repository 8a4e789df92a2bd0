//! Functions that stop when their statement is canceled.
//!
//! A function is called with a batch of rows and gives one back; it cannot pause in between. What
//! it is given beside its arguments are the settings that its plan was made with, so that the Stop
//! comes there: a physical plan is made with a place for it, and each execution puts its own in.
//! The threads on which parts of a plan run do not matter then.
//!
//! Without a pause nobody who waits on the same task sees that time is up. So plans with such
//! functions are executed on a task of their own ([`OwnTaskRows`]).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::{Stream, StreamExt};

use super::patterns::Sliced;
use super::place::StopPlace;
use super::stop::Stop;

/// Batches that a task of its own makes before they are asked for.
const BATCHES_WAITING: usize = 1;

/// Lets what looks at a Stop in a plan end with the execution of this task, too.
pub(crate) fn follow(plan: &Arc<dyn ExecutionPlan>, task: &TaskContext) {
    if let Some(stop) = task.session_config().get_extension::<Stop>() {
        for place in places_in(plan) {
            place.put(&stop);
        }
    }
}

/// The places of a plan: all its functions have one together, each of its patterns has one.
pub(super) fn places_in(plan: &Arc<dyn ExecutionPlan>) -> Vec<StopPlace> {
    let mut places = Vec::new();
    add_places_of_node(plan, &mut places);
    places
}

fn add_places_of_node(plan: &Arc<dyn ExecutionPlan>, places: &mut Vec<StopPlace>) {
    let looked = plan.apply_expressions(&mut |expr| {
        add_places(expr, places);
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(looked.is_ok());
    for input in plan.children() {
        add_places_of_node(input, places);
    }
}

fn add_places(expr: &Arc<dyn PhysicalExpr>, places: &mut Vec<StopPlace>) {
    if let Some(pattern) = expr.downcast_ref::<Sliced>() {
        places.push(pattern.place.clone());
    } else if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        places.extend(StopPlace::of(function.config_options()).cloned());
    }
    for part in expr.children() {
        add_places(part, places);
    }
}

/// The rows of a plan that runs on a task of its own from when they are first asked for. It ends
/// where it pauses next when they are dropped.
pub(crate) struct OwnTaskRows {
    schema: SchemaRef,
    rows: SendableRecordBatchStream,
    is_begun: bool,
}

impl OwnTaskRows {
    pub(crate) fn new(rows: SendableRecordBatchStream) -> Self {
        Self {
            schema: rows.schema(),
            rows,
            is_begun: false,
        }
    }

    fn begin(&mut self) {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), BATCHES_WAITING);
        let batches = builder.tx();
        let none = datafusion::physical_plan::EmptyRecordBatchStream::new(self.schema());
        let mut rows = std::mem::replace(&mut self.rows, Box::pin(none));
        builder.spawn(async move {
            while let Some(batch) = rows.next().await {
                let is_over = batch.is_err();
                if batches.send(batch).await.is_err() || is_over {
                    break;
                }
            }
            Ok(())
        });
        self.rows = builder.build();
        self.is_begun = true;
    }
}

impl Stream for OwnTaskRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.is_begun {
            self.begin();
        }
        self.rows.poll_next_unpin(context)
    }
}

impl RecordBatchStream for OwnTaskRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
