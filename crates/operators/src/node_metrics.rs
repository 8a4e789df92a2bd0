//! The metrics of a node's execution: output rows, and time of its own work.
//!
//! DataFusion's `BaselineMetrics` has four more figures, which nobody reads here; to make and to
//! drop all six was a twentieth of a point query.

use datafusion_physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

/// The figures of one execution.
#[derive(Clone, Debug)]
pub(crate) struct NodeMetrics {
    rows: Count,
    elapsed: Time,
}

impl NodeMetrics {
    /// Figures that are told with those of the node.
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            rows: MetricBuilder::new(metrics).output_rows(partition),
            elapsed: MetricBuilder::new(metrics).elapsed_compute(partition),
        }
    }

    /// Counts rows that were given.
    pub(crate) fn record_output(&self, rows: usize) {
        self.rows.add(rows);
    }

    /// The time of the node's own work.
    pub(crate) fn elapsed_compute(&self) -> &Time {
        &self.elapsed
    }
}
