//! Errors and their codes, for PostgreSQL's clients.
//!
//! An error of the engine goes through `engine_words`, which says it in words of SQL; what is wrong with
//! a value is in `value_words`, names of types in `type_names`. It becomes an `Error` with a code of `state`.

mod engine_words;
pub(crate) mod error;
pub(crate) mod state;
pub(crate) mod suggested;
mod told;
mod type_names;
mod value_words;
