//! Coordination through the store: the catalog, the writer's lease, and readers' leases.
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
