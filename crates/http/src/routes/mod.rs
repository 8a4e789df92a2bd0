//! The handlers of the paths, one file or room for each.

pub(crate) mod changes;
pub(crate) mod cluster;
pub(crate) mod console;
pub(crate) mod description;
pub(crate) mod graphs;
pub(crate) mod health;
pub(crate) mod maintenance;
pub(crate) mod metrics_page;
pub(crate) mod prefixes;
pub(crate) mod sql;
pub(crate) mod texts;
pub(crate) mod updates;
