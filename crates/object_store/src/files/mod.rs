//! The storage's file system over an object store: catalog, logs, staging.
//!
//! Calls come in at `file_system`, and names are looked up in a `view` of the catalog. Files are
//! written to `staging`, then sent.

pub(crate) mod background;
pub(crate) mod file_system;
pub(crate) mod inner;
pub(crate) mod log;
pub(crate) mod log_object;
pub(crate) mod staging;
pub(crate) mod streams;
pub(crate) mod view;
