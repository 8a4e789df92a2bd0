//! Sideways information of a join: the keys of its build side, by which the probe side's pattern
//! drops rows ([`FoundIds`]).
//!
//! Rows pass as they are. Their keys are collected aside, and published once the last row has
//! passed; beyond a number of keys that the planner gives nothing is. It costs a copy of the keys,
//! and to sort them where they do not ascend.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_common::{Result, assert_or_internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::Error;
use crate::node_metrics::NodeMetrics;
use crate::pattern::{FoundIds, Published};
use crate::solutions::plan_properties;
use orrery_plan_node::{Inputs, node_methods};

/// The most different keys that are published: half a megabyte of them, and as much for the set
/// that they become.
pub const KEYS_MAX: usize = 1 << 16;

/// The plan node that passes its input on, and publishes the values of one variable.
#[derive(Debug)]
pub struct KeysExec {
    input: Arc<dyn ExecutionPlan>,
    column: usize,
    found: FoundIds,
    keys_max: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl KeysExec {
    /// The rows of an input that has the variable of the place. Nothing is published if there are
    /// more than `keys_max` different keys, or more than [`KEYS_MAX`].
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        found: FoundIds,
        keys_max: usize,
    ) -> Result<Arc<dyn ExecutionPlan>, Error> {
        let schema = input.schema();
        let column = schema.index_of(found.variable()).map_err(|_| {
            Error::Unsupported(format!("keys of ?{}, which is no column", found.variable()))
        })?;
        Ok(Arc::new(Self {
            properties: plan_properties(&schema),
            input,
            column,
            found,
            keys_max: keys_max.min(KEYS_MAX),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// Where the keys are published.
    pub(crate) fn found(&self) -> &FoundIds {
        &self.found
    }

    /// How many keys are published at most.
    pub(crate) fn keys_max(&self) -> usize {
        self.keys_max
    }
}

/// The keys of the rows that have passed.
struct Keys {
    ids: Vec<u64>,
    /// Whether there are too many.
    is_given_up: bool,
    max: usize,
}

impl Keys {
    fn add(&mut self, batch: &RecordBatch, column: usize) {
        if self.is_given_up {
            return;
        }
        let Some(ids) = batch.column(column).as_primitive_opt::<UInt64Type>() else {
            self.give_up();
            return;
        };
        match ids.null_count() {
            0 => self.ids.extend_from_slice(ids.values()),
            // What is unbound equals nothing in a hash join.
            _ => self.ids.extend(ids.iter().flatten()),
        }
        if self.ids.len() > 2 * self.max {
            self.put_in_order();
            if self.ids.len() > self.max {
                self.give_up();
            }
        }
    }

    fn give_up(&mut self) {
        self.is_given_up = true;
        self.ids = Vec::new();
    }

    /// Each once, ascending.
    fn put_in_order(&mut self) {
        if !self.ids.is_sorted() {
            self.ids.sort_unstable();
        }
        self.ids.dedup();
    }

    fn publish(mut self, published: &Published) {
        self.put_in_order();
        if !self.is_given_up && self.ids.len() <= self.max {
            // 0 is no id.
            let first = self.ids.partition_point(|id| *id == 0);
            published.publish(&self.ids[first..]);
        }
    }
}

impl DisplayAs for KeysExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeysExec: ?{}", self.found.variable())
    }
}

impl Inputs for KeysExec {
    fn takes_any_order(&self) -> bool {
        true
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_inputs(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        Ok(Self::try_new(input, self.found.clone(), self.keys_max)?)
    }
}

impl ExecutionPlan for KeysExec {
    node_methods!("KeysExec");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "KeysExec has one partition");
        let published = self.found.begin(&context);
        let input = self.input.execute(0, context)?;
        let baseline = NodeMetrics::new(&self.metrics, partition);
        let (schema, column) = (input.schema(), self.column);
        let keys = Keys {
            ids: Vec::new(),
            is_given_up: false,
            max: self.keys_max,
        };
        let rows = futures::stream::unfold((input, keys), move |(mut input, mut keys)| {
            let (published, baseline) = (published.clone(), baseline.clone());
            async move {
                match input.next().await {
                    Some(Ok(batch)) => {
                        let _timer = baseline.elapsed_compute().timer();
                        baseline.record_output(batch.num_rows());
                        keys.add(&batch, column);
                        Some((Ok(batch), (input, keys)))
                    }
                    Some(Err(error)) => {
                        keys.give_up();
                        Some((Err(error), (input, keys)))
                    }
                    None => {
                        keys.publish(&published);
                        None
                    }
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
