//! Authentication of calls: passwords, tokens and certificates.
//!
//! The `guard` identifies the caller by a call's headers and its connection's `peer`, and leaves a
//! `by` for the rest of the call.

pub(crate) mod by;
pub(crate) mod guard;
pub(crate) mod password;
pub(crate) mod peer;
