//! Execution of calls: statements, ingestion, transactions.
//!
//! Each is `work` of a session, with its admission and its time. Its rows go to an answer, as
//! `columns` that travel alone.

pub(crate) mod columns;
pub(crate) mod ingest;
pub(crate) mod savepoints;
pub(crate) mod statements;
pub(crate) mod transactions;
pub(crate) mod work;
