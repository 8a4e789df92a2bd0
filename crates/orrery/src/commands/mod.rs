//! One file a command: from its arguments to one call of a room, and its report.

pub(crate) mod access;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod cluster;
pub(crate) mod compact;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod explain;
pub(crate) mod limit;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod mapping;
pub(crate) mod prefix;
pub(crate) mod queries;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod text;
pub(crate) mod update;
pub(crate) mod verify;
pub(crate) mod warm;

mod files_below;
mod foreign;
mod http;
mod http_files;
mod output;
mod query_text;
