//! Execution: plan nodes and streams beside DataFusion's.
//!
//! Batches pass through these nodes while a physical plan runs. They bound memory, and end when
//! nobody waits for rows.

pub(crate) mod blocking;
pub(crate) mod counted_windows;
pub(crate) mod grouping_rows;
pub(crate) mod own_bytes;
pub(crate) mod rows_at_once;
pub(crate) mod second_run;
pub(crate) mod sort_keys;
pub(crate) mod stopping;
pub(crate) mod task_settings;
pub(crate) mod threads;
