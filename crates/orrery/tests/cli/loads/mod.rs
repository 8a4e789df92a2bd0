//! Loads: what goes in, what comes out, and what a kill leaves.

pub(crate) mod documents;
pub(crate) mod first_contact;
pub(crate) mod killed_load;
pub(crate) mod language_tags;
pub(crate) mod own_address;
pub(crate) mod round_trip;
