//! Commands that start a server, or manage a running one.

pub(crate) mod access;
pub(crate) mod cluster;
pub(crate) mod demo;
pub(crate) mod limit;
pub(crate) mod queries;
pub(crate) mod serve;
