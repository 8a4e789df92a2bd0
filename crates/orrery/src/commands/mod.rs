//! One file a command: from its arguments to one call of a room, and its report.
//!
//! Commands are in rooms by what they are for. `http` asks a server, `output` writes what comes back, and `query_text` reads a
//! statement; the commands share them.

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
