//! Nodes ask each other over HTTP: a client, a server, and the signatures by which they know each other.

pub(crate) mod body;
pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod signature;
