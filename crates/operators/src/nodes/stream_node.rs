//! A plan node around a running stream.

use std::fmt;
use std::sync::Arc;

use datafusion_common::{Result, assert_or_internal_err, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use parking_lot::Mutex;

use crate::solutions::plan_properties;
use orrery_plan_node::node_methods;

/// A stream as a node, for the nodes that read it; executed once.
pub(crate) struct StreamExec {
    stream: Mutex<Option<SendableRecordBatchStream>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl StreamExec {
    pub(crate) fn new(stream: SendableRecordBatchStream) -> Self {
        Self {
            properties: plan_properties(&stream.schema()),
            stream: Mutex::new(Some(stream)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl fmt::Debug for StreamExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamExec")
    }
}

impl DisplayAs for StreamExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamExec")
    }
}

impl ExecutionPlan for StreamExec {
    node_methods!("StreamExec", leaf);

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        assert_or_internal_err!(partition == 0, "StreamExec has one partition");
        match self.stream.lock().take() {
            Some(stream) => Ok(stream),
            None => internal_err!("a stream is read twice"),
        }
    }
}
