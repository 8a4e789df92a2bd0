//! The listener: from a connection to the calls of the protocol.
//!
//! `listen` takes connections, `socket` is one of them, and `service` hands each call to what
//! does it.

pub(crate) mod listen;
pub(crate) mod service;
pub(crate) mod socket;
