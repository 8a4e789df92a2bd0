//! Sessions: the state of one client, and the way from a text to an outcome.
//!
//! `client` parses a text and runs its statements in a transaction. `control` answers statements
//! about the session itself. Rows leave by `run_query`, `cursors` or `copying`.

pub(crate) mod client;
pub(crate) mod control;
pub(crate) mod copying;
pub(crate) mod cursors;
pub(crate) mod kept;
pub(crate) mod kind;
pub(crate) mod options;
pub(crate) mod place;
pub(crate) mod ruled;
pub(crate) mod run_query;
pub(crate) mod table_reader;
pub(crate) mod unit;
