//! A task context with changed settings.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::config::SessionConfig;

/// The task with these settings; functions and memory are as they were.
pub(crate) fn with_config(task: Arc<TaskContext>, config: SessionConfig) -> Arc<TaskContext> {
    Arc::new(match Arc::try_unwrap(task) {
        Ok(task) => task.with_session_config(config),
        Err(task) => TaskContext::new(
            task.task_id(),
            task.session_id(),
            config,
            task.scalar_functions().clone(),
            task.higher_order_functions().clone(),
            task.aggregate_functions().clone(),
            task.window_functions().clone(),
            task.runtime_env(),
        ),
    })
}
