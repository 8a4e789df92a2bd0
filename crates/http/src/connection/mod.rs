//! One connection of HTTP: TLS, limits by address, stalled clients, unread bodies.

pub(crate) mod connections;
pub(crate) mod conversation;
pub(crate) mod refusals;
pub(crate) mod stalls;
pub(crate) mod tls;
pub(crate) mod unread_body;
