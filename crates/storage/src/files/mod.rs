//! The files of a database: file system, block files, manifest, lock and log.
//!
//! `io` is the seam to disks and stores. Above it are block files with their checksums, and the
//! `log` of commits. The `manifest` names the files that count; `components` says what each of
//! its directories holds.

pub mod block_file;
pub(crate) mod components;
pub(crate) mod damage;
pub(crate) mod identity;
pub mod io;
pub(crate) mod listed_files;
pub(crate) mod lock;
pub mod log;
pub(crate) mod manifest;
pub(crate) mod unlisted;
pub(crate) mod varint;
