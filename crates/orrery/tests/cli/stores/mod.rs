//! Backups, and databases in object stores.

pub(crate) mod backup;
pub(crate) mod object_store;
pub(crate) mod s3_faults;
pub(crate) mod s3_server;
