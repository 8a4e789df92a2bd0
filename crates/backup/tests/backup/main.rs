//! Backups and restores. One program: each part would take as long to link as all of them.

mod backup;
mod s3;
