//! Errors and their codes, for PostgreSQL's clients.
//!
//! An error of the engine goes through `engine_words`, which rewrites it in words of SQL.
//! `value_words` has the errors about values, `type_names` the names of types. The result is an
//! `Error` with a code of `state`.

mod engine_words;
pub(crate) mod error;
pub(crate) mod state;
pub(crate) mod suggested;
mod told;
mod type_names;
mod value_words;
