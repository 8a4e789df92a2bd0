//! The listener: from a connection to the calls of the protocol.
//!
//! `listen` accepts connections, `socket` is one of them, and `service` passes each call to the
//! module that executes it.

pub(crate) mod listen;
pub(crate) mod service;
pub(crate) mod socket;
