//! HTTP between nodes: client, server, and signatures.

pub(crate) mod body;
pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod signature;
