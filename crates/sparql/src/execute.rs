//! The execution of a plan: a stream of batches with a deadline and translated errors.
//!
//! Our leaf operators and DataFusion's yield to the runtime every so many batches, so the
//! deadline's timer and a dropped stream are noticed also inside of a long sort or aggregation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion_common::Result as EngineResult;
use datafusion_execution::TaskContext;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use orrery_expressions::ExpressionContext;
use orrery_runtime::{Runtime, Workers};

use crate::error::QueryError;
use crate::results::IdStream;

/// What comes of a run, or is made of that.
type Batches<B> = BoxStream<'static, Result<B, QueryError>>;

/// What a run may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) memory_bytes: u64,
}

/// A plan that is to run, and what it runs with.
pub(crate) struct Run<'r> {
    pub(crate) plan: &'r Arc<dyn ExecutionPlan>,
    /// Whether parts of it, partitions and readers of shared rows, know by the task's context which
    /// execution they belong to.
    pub(crate) has_own_task: bool,
    pub(crate) task: &'r Arc<TaskContext>,
    /// What its expressions share.
    pub(crate) expressions: &'r ExpressionContext,
    pub(crate) runtime: &'r Runtime,
    pub(crate) limits: Limits,
    /// How long it waits for room at most.
    pub(crate) wait_max: Duration,
}

impl Run<'_> {
    /// Starts the plan once there is room for what it will have on its way.
    pub(crate) async fn start(self) -> Result<IdStream, QueryError> {
        let batch_rows = self.task.session_config().batch_size();
        let working_set = self
            .runtime
            .memory()
            .working_set(self.plan, batch_rows, self.wait_max)
            .await?;
        let (limits, workers) = (self.limits, self.runtime.workers());
        let ids = match self.has_own_task {
            false => start(self.plan, self.task, workers, limits)?,
            true => {
                let task = Runtime::task_of_its_own(self.task);
                start(self.plan, &task, workers, limits)?
            }
        };
        let waited_for = self.expressions.begin_run(limits.timeout);
        // Held as long as the stream.
        let held = (working_set, waited_for);
        Ok(ids.inspect(move |_| _ = &held).boxed())
    }
}

/// A plan that ran, with hash joins that have built nothing yet: DataFusion's keep what they built
/// for all who run them. Other nodes stay the same, so that what is shared stays shared.
pub(crate) fn without_tables(
    plan: &Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    without_tables_below(plan, &mut HashMap::new())
}

fn without_tables_below(
    plan: &Arc<dyn ExecutionPlan>,
    renewed: &mut HashMap<*const (), Arc<dyn ExecutionPlan>>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let place = Arc::as_ptr(plan).cast::<()>();
    if let Some(known) = renewed.get(&place) {
        return Ok(Arc::clone(known));
    }
    let old = plan.children();
    let inputs: Vec<_> = old
        .iter()
        .map(|input| without_tables_below(input, renewed))
        .collect::<EngineResult<_>>()?;
    let is_join = plan.is::<HashJoinExec>();
    let is_same = old.into_iter().zip(&inputs).all(|(a, b)| Arc::ptr_eq(a, b));
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let new = match (is_join, is_same) {
        (true, _) => Arc::clone(plan)
            .replace_children(inputs, options)?
            .reset_state()?,
        (false, true) => Arc::clone(plan),
        (false, false) => Arc::clone(plan).replace_children(inputs, options)?,
    };
    renewed.insert(place, Arc::clone(&new));
    Ok(new)
}

fn start(
    plan: &Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
    workers: &Arc<Workers>,
    limits: Limits,
) -> Result<IdStream, QueryError> {
    let memory_bytes = limits.memory_bytes;
    let busy = workers.begin_query();
    let batches = plan
        .execute(0, Arc::clone(task))
        .map_err(|error| QueryError::from_datafusion(error, memory_bytes))?;
    let batches = batches
        .map(move |batch| {
            // Until the stream is dropped, the query counts.
            let _ = &busy;
            batch.map_err(|error| QueryError::from_datafusion(error, memory_bytes))
        })
        .boxed();
    Ok(within(batches, limits))
}

/// Ends a stream with its first error, or when the time is over.
pub(crate) fn within<B: Send + 'static>(batches: Batches<B>, limits: Limits) -> Batches<B> {
    match limits.timeout {
        Some(limit) => until(batches, limit),
        None => fused(batches),
    }
}

/// Ends a stream after its first error.
fn fused<B: Send + 'static>(batches: Batches<B>) -> Batches<B> {
    stream::unfold(Some(batches), |batches| async move {
        let mut batches = batches?;
        let batch = batches.next().await?;
        let rest = batch.is_ok().then_some(batches);
        Some((batch, rest))
    })
    .boxed()
}

/// Ends a stream when the time is over.
fn until<B: Send + 'static>(batches: Batches<B>, limit: Duration) -> Batches<B> {
    let deadline = Instant::now() + limit;
    stream::unfold(Some(batches), move |batches| async move {
        let mut batches = batches?;
        let wait = tokio::time::timeout_at(deadline.into(), batches.next());
        match wait.await {
            Ok(None) => None,
            Ok(Some(Ok(batch))) if Instant::now() < deadline => Some((Ok(batch), Some(batches))),
            Ok(Some(Err(error))) => Some((Err(error), None)),
            Ok(Some(Ok(_))) | Err(_) => Some((Err(QueryError::Timeout { limit }), None)),
        }
    })
    .boxed()
}
