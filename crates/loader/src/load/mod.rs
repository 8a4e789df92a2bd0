//! Bulk loads, compactions and bulk updates, each of which writes a new base.
//!
//! Each but `document`, which reads into memory, makes batches, has them merged, and publishes
//! the new segment by one rename.

pub(crate) mod bulk;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod delta_batch;
pub(crate) mod document;
pub(crate) mod publish;
pub(crate) mod run;
