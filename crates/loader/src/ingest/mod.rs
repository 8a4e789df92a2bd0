//! Stage one of a load: from sources to batches of sorted terms and numbered quads.
//!
//! Threads parse blocks (`parsing`) and whole documents (`documents`), and number their terms
//! (`interner`). A full batch is sorted, and staged on disk.

pub(crate) mod arena;
pub(crate) mod batch;
pub(crate) mod documents;
pub(crate) mod interner;
pub(crate) mod key_sort;
pub(crate) mod large_literals;
pub(crate) mod long_line;
pub(crate) mod order_label;
pub(crate) mod parsing;
pub(crate) mod sort_keys;
pub(crate) mod stage;
pub(crate) mod stage_dir;
pub(crate) mod staged_sink;
pub(crate) mod triple_keys;
