//! HTTP itself: bodies, headers, codings, origins, TLS, and the end of a server.

pub(crate) mod bodies;
pub(crate) mod browser;
pub(crate) mod conditions;
pub(crate) mod edge;
pub(crate) mod forwarding;
pub(crate) mod other_clients;
pub(crate) mod stop;
pub(crate) mod streaming;
pub(crate) mod tls;
