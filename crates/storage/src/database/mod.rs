//! Operations on a whole database: creation, opening, bulk filling, backup and warming.
//!
//! `directory` opens the newest snapshot and follows later ones. `segment` writes a new base and
//! publishes it.

pub mod backup;
pub(crate) mod create;
pub(crate) mod directory;
pub(crate) mod dump;
pub(crate) mod reopened;
pub(crate) mod segment;
pub(crate) mod small;
pub(crate) mod warm;
