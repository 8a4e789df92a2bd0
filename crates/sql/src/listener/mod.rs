//! What sessions need from listeners: users, turns, and who watches.
//!
//! A protocol makes a `host` once. Each client is one of its `connections`; `users` says what a
//! client may do.

pub(crate) mod connections;
pub(crate) mod host;
pub(crate) mod turns;
pub(crate) mod users;
pub(crate) mod watch;
