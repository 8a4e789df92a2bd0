//! One file a command: from its arguments to one call of a room, and its report.
//!
//! Commands are in rooms by what they are for. They share `http`, which asks a server, `output`,
//! which writes what comes back, and `query_text`, which reads a statement.

pub(crate) mod bench;
pub(crate) mod data;
pub(crate) mod maintenance;
pub(crate) mod serving;
pub(crate) mod sql;
pub(crate) mod statements;

mod foreign;
mod http;
mod output;
mod query_text;
