//! Servers and the clients of others.

pub(crate) mod flight;
pub(crate) mod oidc;
pub(crate) mod port_users;
pub(crate) mod postgres;
pub(crate) mod tls;
