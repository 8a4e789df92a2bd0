//! Window functions whose held rows are counted against memory.
//!
//! DataFusion's `WindowAggExec` keeps what it reads until there is no more, puts it together, and
//! gives one batch; nobody asks for the memory.
//!
//! ```text
//! WindowAggExec(input)   ->   WindowRowsExec            has the memory of an execution, until its rows are gone
//!                               WindowAggExec
//!                                 WindowInputExec       asks it for each batch; at the end again for all, which are put together then
//!                                   input
//! ```
//!
//! What aggregates over windows give for each row is counted by them (`crate::functions::offered`).
//! Windows that go along with their rows (`BoundedWindowAggExec`) keep what their frames reach.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use crate::execute::task_settings::with_config;

use orrery_plan_node::{Passing, passing_methods};

/// A window that holds its rows as one that counts them; any other node as it is.
pub(crate) fn counted_windows(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(window) = node.downcast_ref::<WindowAggExec>() else {
        return Ok(Transformed::no(node));
    };
    let input = WindowMemoryExec::new(Place::Input, Arc::clone(window.input()));
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let window = Arc::clone(&node).replace_children(vec![Arc::new(input)], options)?;
    Ok(Transformed::yes(Arc::new(WindowMemoryExec::new(
        Place::Rows,
        window,
    ))))
}

/// Whether a node has for each partition of its input one of its own.
pub(crate) fn is_of_windows(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<WindowMemoryExec>()
}

/// The memory of one execution of a window.
#[derive(Debug)]
struct HeldRows(MemoryReservation);

#[derive(Debug, Clone, Copy)]
enum Place {
    /// Above the window.
    Rows,
    /// Below it.
    Input,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "WindowRowsExec",
            Self::Input => "WindowInputExec",
        }
    }
}

/// What stands above or below a window; rows pass as they are.
#[derive(Debug, Clone)]
struct WindowMemoryExec {
    place: Place,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl WindowMemoryExec {
    fn new(place: Place, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            place,
            properties: Arc::clone(input.properties()),
            input,
        }
    }
}

impl DisplayAs for WindowMemoryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.name())
    }
}

impl Passing for WindowMemoryExec {
    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn over(
        &self,
        input: Arc<dyn ExecutionPlan>,
        properties: ChildrenPropertiesMode,
    ) -> Result<Self> {
        Ok(match properties {
            ChildrenPropertiesMode::Keep => Self {
                place: self.place,
                input,
                properties: Arc::clone(&self.properties),
            },
            ChildrenPropertiesMode::Recompute => Self::new(self.place, input),
        })
    }
}

impl ExecutionPlan for WindowMemoryExec {
    passing_methods!(|node| node.place.name());

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match self.place {
            Place::Rows => {
                let memory = MemoryConsumer::new("the rows of a window");
                let held = Arc::new(HeldRows(memory.register(task.memory_pool())));
                let config = task.session_config().clone();
                let config = config.with_extension(Arc::clone(&held));
                let rows = self.input.execute(partition, with_config(task, config))?;
                let rows = rows.inspect(move |_| _ = &held);
                Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
            }
            Place::Input => {
                let held = task.session_config().get_extension::<HeldRows>();
                let rows = self.input.execute(partition, task)?;
                match held {
                    Some(held) => Ok(counted(rows, held)),
                    None => Ok(rows),
                }
            }
        }
    }
}

/// Rows whose memory is asked for as they come, and once more at their end.
fn counted(rows: SendableRecordBatchStream, held: Arc<HeldRows>) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let at_end = Arc::clone(&held);
    let counted = rows.map(move |batch| {
        let batch = batch?;
        held.0.try_grow(get_record_batch_memory_size(&batch))?;
        Ok(batch)
    });
    let end = stream::once(async move { at_end.0.try_grow(at_end.0.size()) });
    let end = end.filter_map(|end| async { end.err().map(Err) });
    Box::pin(RecordBatchStreamAdapter::new(schema, counted.chain(end)))
}
