//! Work that the nodes of a cluster do for each other: shares of loads, forwarded statements,
//! standing by for the writer role.

pub mod load_help;
pub mod nodes;
pub mod port_writer;
pub mod readiness;
pub mod standby;
