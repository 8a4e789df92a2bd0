//! Commands that maintain a database: backup, compaction, verification, statistics and reports.

pub(crate) mod backup;
pub(crate) mod compact;
pub(crate) mod log;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod warm;
