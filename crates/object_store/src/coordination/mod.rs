//! Which objects make up a database, who writes it, and who reads it.
//!
//! The writer holds a `lease` and puts a new `catalog` in its `turn`. `garbage` deletes what no
//! catalog and no reader names.

pub(crate) mod catalog;
pub(crate) mod checksummed;
pub(crate) mod garbage;
pub(crate) mod lease;
pub(crate) mod machine;
pub(crate) mod readers;
pub(crate) mod turn;
