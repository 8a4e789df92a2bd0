//! One connection of HTTP: TLS, bounds by address, stalled clients, bodies that nobody has read.

pub(crate) mod connections;
pub(crate) mod conversation;
pub(crate) mod refusals;
pub(crate) mod stalls;
pub(crate) mod tls;
pub(crate) mod unread_body;
