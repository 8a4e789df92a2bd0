//! The check of a whole database: every byte, and that its parts agree.
//!
//! `verify` walks the base, `verify_changes` what came after it, and `verify_tables` the tables.

pub(crate) mod verify;
pub(crate) mod verify_changes;
pub(crate) mod verify_tables;
