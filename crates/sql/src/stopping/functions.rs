//! Functions that end when nobody waits for their rows any more.
//!
//! A function is called with a batch of rows and gives one back; it cannot pause in between. What it is given beside its arguments are the settings that its plan was made with, so that the Stop
//! comes there: a physical plan is made with a place for it, and each execution puts its own in. The threads on which parts of a plan run do not matter then.
//!
//! Without a pause nobody who waits on the same task sees that time is up. So plans with such functions are executed on a task of their own ([`OwnTaskRows`]).

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, config_err};
use datafusion::execution::{
    RecordBatchStream, SendableRecordBatchStream, SessionState, TaskContext,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::stop::{Stop, require_somebody_here};

/// Batches that a task of its own makes before they are asked for.
const BATCHES_WAITING: usize = 1;

/// Where the functions of one plan find the Stop of its execution. A copy is the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopPlace(Arc<Mutex<Option<Arc<Stop>>>>);

impl StopPlace {
    fn of(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get()
    }

    /// Settings and functions as they are, with a place of their own, to make one physical plan with.
    pub(crate) fn within(state: &SessionState) -> SessionState {
        let mut state = state.clone();
        let config = state.config_mut();
        config.options_mut().extensions.insert(Self::default());
        let options = Arc::clone(config.options());
        // Physical plans are made with these.
        state.execution_props_mut().config_options = Some(options);
        state
    }

    /// That of the functions of a plan, which are to end with the execution of this task, too.
    pub(crate) fn follow(plan: &Arc<dyn ExecutionPlan>, task: &TaskContext) {
        if let Some(stop) = task.session_config().get_extension::<Stop>()
            && let Some(place) = place_in(plan)
        {
            place.put(&stop);
        }
    }

    pub(super) fn put(&self, stop: &Arc<Stop>) {
        *self.0.lock() = Some(Arc::clone(stop));
    }
}

/// Whether somebody waits for what a function with these settings gives.
///
/// # Errors
/// When nobody does any more.
pub(crate) fn require_somebody(options: &ConfigOptions) -> Result<()> {
    let stop = StopPlace::of(options).and_then(|place| place.0.lock().clone());
    match stop {
        Some(stop) => stop.require_not_set(),
        None => require_somebody_here(),
    }
}

impl ConfigExtension for StopPlace {
    const PREFIX: &'static str = "stop";
}

/// It is no setting that anybody sees.
impl ExtensionOptions for StopPlace {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        config_err!("there is no setting stop.{key}")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// The place that the functions of a plan have. All of a plan have the same.
pub(super) fn place_in(plan: &Arc<dyn ExecutionPlan>) -> Option<StopPlace> {
    let mut found = None;
    let looked = plan.apply_expressions(&mut |expr| {
        if found.is_none() {
            found = place_of(expr);
        }
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    debug_assert!(looked.is_ok());
    found.or_else(|| plan.children().into_iter().find_map(place_in))
}

fn place_of(expr: &Arc<dyn PhysicalExpr>) -> Option<StopPlace> {
    let function = expr.downcast_ref::<ScalarFunctionExpr>();
    let place = function.and_then(|it| StopPlace::of(it.config_options()).cloned());
    place.or_else(|| expr.children().into_iter().find_map(place_of))
}

/// The rows of a plan that runs on a task of its own from when they are first asked for. It ends where it pauses next when they are dropped.
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
