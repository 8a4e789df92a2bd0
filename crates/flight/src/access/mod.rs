//! Who makes a call: passwords, tokens and certificates.
//!
//! The `guard` finds out by a call's headers and its connection's `peer`, and leaves a `by` for
//! the rest of the call.

pub(crate) mod by;
pub(crate) mod guard;
pub(crate) mod password;
pub(crate) mod peer;
