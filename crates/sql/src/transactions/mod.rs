//! Transactions of a session: blocks, cursors, and their memory.
//!
//! A `block` begins at a state of the database, holds changes and cursors, and commits or rolls
//! back. `old_states` opens the states that statements name.

pub(crate) mod block;
pub(crate) mod committing;
pub(crate) mod cursor;
pub(crate) mod old_states;
pub(crate) mod waiting_rows;
