//! What stands around every request: the access log, who asks, from where, and the server that a change is for.

pub(crate) mod access_log;
pub(crate) mod around;
pub(crate) mod doorway;
pub(crate) mod forward;
pub(crate) mod guard;
pub(crate) mod proxies;
