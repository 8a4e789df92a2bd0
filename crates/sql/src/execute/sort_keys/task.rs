//! The task settings of text sorts, with short batches.

use std::sync::Arc;

use datafusion::execution::TaskContext;

use crate::execute::task_settings::with_config;

/// Rows of one batch of a sort of texts: of so many the keys are there at once where sorted runs
/// are merged.
const SORTED_ROWS_MAX: usize = 1_024;

/// The batches that the input of a sort is asked for, which its own are not.
#[derive(Debug)]
struct RowsOfInput(usize);

/// A task whose batches have no more rows than a sort of texts holds at once.
pub(super) fn with_short_batches(task: Arc<TaskContext>) -> Arc<TaskContext> {
    let config = task.session_config();
    let rows = config.batch_size();
    let of_input = match config.get_extension::<RowsOfInput>() {
        // The sort of this input is within another's.
        Some(before) => before.0,
        None => rows,
    };
    let config = config
        .clone()
        .with_batch_size(rows.min(SORTED_ROWS_MAX))
        .with_extension(Arc::new(RowsOfInput(of_input)));
    with_config(task, config)
}

/// The task as it was above the sort.
pub(super) fn with_batches_of_input(task: Arc<TaskContext>) -> Arc<TaskContext> {
    let Some(rows) = task.session_config().get_extension::<RowsOfInput>() else {
        return task;
    };
    let config = task.session_config().clone().with_batch_size(rows.0);
    with_config(task, config)
}
