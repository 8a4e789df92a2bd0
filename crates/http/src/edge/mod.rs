//! The layers around every request: access log, user, client address, host, forwarding of changes.

pub(crate) mod access_log;
pub(crate) mod around;
pub(crate) mod doorway;
pub(crate) mod forward;
pub(crate) mod guard;
pub(crate) mod proxies;
