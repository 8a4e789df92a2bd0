//! Cancellation: executions that stop soon after nobody waits for their rows.
//!
//! An aborted task ends only where it pauses. Work without a pause, such as a join that puts
//! millions of rows beside each other, or a function over a batch of long texts, checks the
//! [`Stop`] of its execution. That flag is set when the rows are dropped: at the statement's time
//! limit, when its client has gone, or when the statement is canceled.
//!
//! ```text
//! stoppable     a Stop for the execution, which goes with its task (joins) and into the place that its plan has for it (functions)
//! joins         nodes that pause, and conditions that look at the Stop
//! patterns      operators that look at long texts in slices
//! place         where functions, which find it in the settings that they are given, and patterns find the Stop of their execution
//! functions     all such places of a plan; plans that run on tasks of their own, so that whoever waits for them can go
//! planning      rules of analyzers and optimizers that ask first
//! stop          the Stop itself, and `Named`: the Stop of a thread's work, where no plan has a place for it:
//!               joins, and planning or checks on a thread of their own (`crate::execute::threads`)
//! ```

mod functions;
mod joins;
mod patterns;
mod place;
mod planning;
mod stop;

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::StreamingTableExec;

use functions::places_in;
pub(crate) use functions::{OwnTaskRows, follow};
use joins::StoppableExec;
pub(crate) use joins::joins_that_stop;
pub(crate) use patterns::patterns_that_stop;
pub(crate) use place::{StopPlace, require_somebody};
pub(crate) use planning::{ThatAsk, is_written_down};
use stop::Stop;
pub(crate) use stop::{StopOnDrop, ToName, require_somebody_here};

use crate::execute::task_settings::with_config;

/// How a plan is to be executed.
#[derive(Debug)]
pub(crate) struct Stoppable {
    pub(crate) task: Arc<TaskContext>,
    /// Ends the execution when it is dropped; none where the plan has nothing that looks, or who
    /// runs it has seen to that.
    pub(crate) stop: Option<StopOnDrop>,
    /// Whether there are functions that may go on for long without a pause: on the task of who
    /// waits for its rows nobody could stop it.
    pub(crate) wants_own_task: bool,
}

/// Makes an execution of this plan one that ends when its [`StopOnDrop`] is dropped.
pub(crate) fn stoppable(plan: &Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> Stoppable {
    let places = places_in(plan);
    let put = |stop: &Arc<Stop>| places.iter().for_each(|place| place.put(stop));
    if let Some(known) = task.session_config().get_extension::<Stop>() {
        put(&known);
        return Stoppable {
            task,
            stop: None,
            wants_own_task: false,
        };
    }
    let wants_own_task = !places.is_empty() || makes_rows(plan);
    if !wants_own_task && !may_join(plan) {
        return Stoppable {
            task,
            stop: None,
            wants_own_task,
        };
    }
    let stop = StopOnDrop::default();
    put(stop.stop());
    let config = task.session_config().clone();
    let config = config.with_extension(Arc::clone(stop.stop()));
    Stoppable {
        task: with_config(task, config),
        stop: Some(stop),
        wants_own_task,
    }
}

/// A task that ends with the execution of another one, too.
pub(crate) fn ending_with(task: &Arc<TaskContext>, other: &TaskContext) -> Arc<TaskContext> {
    let Some(stop) = other.session_config().get_extension::<Stop>() else {
        return Arc::clone(task);
    };
    let config = task.session_config().clone().with_extension(stop);
    with_config(Arc::clone(task), config)
}

/// Whether there are joins in a plan.
fn may_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<StoppableExec>() || plan.children().into_iter().any(may_join)
}

/// Whether there is what makes rows for a change, which is a plan of its own that is not seen from
/// here.
fn makes_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<StreamingTableExec>() || plan.children().into_iter().any(makes_rows)
}
