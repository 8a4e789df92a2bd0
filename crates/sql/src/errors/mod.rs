//! Errors and their codes, for PostgreSQL's clients.
//!
//! An error of the engine goes through `engine_words`, which says it in words of SQL. It becomes
//! an `Error` with a code of `state`.

pub(crate) mod engine_words;
pub(crate) mod error;
pub(crate) mod state;
pub(crate) mod suggested;
