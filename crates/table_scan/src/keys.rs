//! The plan node that collects passing keys into a bit set (`key_bits`).

use orrery_plan_node::{Passing, passing_methods};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

use super::key_bits::KeyBits;

/// The rows of its input as they are, their keys noted.
#[derive(Debug)]
pub(super) struct KeysExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Key>,
}

/// A key of each row, and where it is noted.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// Over the columns of the input.
    pub(super) expression: Arc<dyn PhysicalExpr>,
    pub(super) bits: Arc<KeyBits>,
}

impl KeysExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, keys: Vec<Key>) -> Self {
        Self { input, keys }
    }
}

impl DisplayAs for KeysExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(|key| key.expression.to_string());
        let keys: Vec<String> = keys.collect();
        write!(f, "KeysExec: keys=[{}]", keys.join(", "))
    }
}

impl Passing for KeysExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>, _: ChildrenPropertiesMode) -> Result<Self> {
        Ok(Self::new(input, self.keys.clone()))
    }
}

impl ExecutionPlan for KeysExec {
    passing_methods!(|_| "KeysExec", own rows);

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for key in &self.keys {
            if f(&key.expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        for key in &self.keys {
            key.bits.begin(partition, || {
                MemoryConsumer::new("keys of a join").register(context.memory_pool())
            });
        }
        Ok(Box::pin(KeysStream {
            input: self.input.execute(partition, context)?,
            keys: self.keys.clone(),
            is_done: false,
        }))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }
}

struct KeysStream {
    input: SendableRecordBatchStream,
    keys: Vec<Key>,
    is_done: bool,
}

impl Stream for KeysStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        match &next {
            Some(Ok(batch)) => {
                for key in &self.keys {
                    let values = key.expression.evaluate(batch);
                    let values = values.and_then(|values| values.into_array(batch.num_rows()));
                    match values {
                        Ok(values) => key.bits.insert(&values),
                        Err(error) => {
                            self.is_done = true;
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
            }
            None if !self.is_done => {
                self.is_done = true;
                self.keys.iter().for_each(|key| key.bits.end());
            }
            Some(Err(_)) => self.is_done = true,
            None => {}
        }
        Poll::Ready(next)
    }
}

impl RecordBatchStream for KeysStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
