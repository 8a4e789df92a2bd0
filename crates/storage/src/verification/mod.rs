//! The verification of a whole database: checksums, and agreement of its parts.
//!
//! `verify` walks the base, `verify_changes` what came after it, and `verify_tables` the tables.

pub(crate) mod verify;
pub(crate) mod verify_changes;
pub(crate) mod verify_tables;
