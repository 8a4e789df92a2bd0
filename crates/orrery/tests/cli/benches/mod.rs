//! The commands of `orrery bench`.

pub(crate) mod snb;
pub(crate) mod soak;
pub(crate) mod spb;
pub(crate) mod tpch;
pub(crate) mod vectors;
