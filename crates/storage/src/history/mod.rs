//! History: past commits, their changes, and the states after them.
//!
//! The manifest keeps the files of older commits. `old_states` puts a snapshot together from
//! them.

pub(crate) mod old_states;
pub(crate) mod table_events;
pub(crate) mod time;
