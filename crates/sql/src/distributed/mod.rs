//! Statements over several processes: distributed queries, and forwarded changes.
//!
//! A query is divided among workers (`divided`). A change goes to the process that writes
//! (`forward`), which `writer_source` names.

pub(crate) mod asked;
pub(crate) mod divided;
pub(crate) mod forward;
pub(crate) mod writer_source;
