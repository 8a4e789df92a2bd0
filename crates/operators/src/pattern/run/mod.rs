//! The execution of a pattern: input batches in, output batches out.
//!
//! A `stream` takes batches and `morsel`s, and drives them through the levels of a `pipeline`,
//! one per step.

pub(crate) mod compiled;
pub(crate) mod distinct_rows;
pub(crate) mod morsel;
pub(crate) mod optional;
pub(crate) mod pipeline;
pub(crate) mod stream;
