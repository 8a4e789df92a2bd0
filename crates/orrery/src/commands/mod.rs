//! The commands, one file each: from the arguments to one call of a crate, and its report.
//!
//! Commands are grouped by purpose. They share `http`, which sends requests to a server, `output`,
//! which writes results, and `query_text`, which reads a statement.

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
