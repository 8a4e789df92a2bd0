//! Object stores, and requests to them.
//!
//! A `location` is an address that names a store. Each request of `store` has a time-out, is
//! counted, and tried again.

pub(crate) mod counts;
pub(crate) mod directory;
pub(crate) mod location;
pub(crate) mod plain_http;
pub(crate) mod runtime;
pub(crate) mod store;
pub(crate) mod upload;
