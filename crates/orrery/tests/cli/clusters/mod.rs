//! Several servers of one database.

pub(crate) mod cluster;
pub(crate) mod divided;
pub(crate) mod forwarded;
pub(crate) mod rolling;
pub(crate) mod stand_by;
