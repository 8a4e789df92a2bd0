//! Snapshots: unchanging states of a database, put together from files and log.
//!
//! `replay` lays the commits of the log over a `flushed` delta, and that over a `base`. The
//! result is a `snapshot`. Queries read it by a `read_view`, which leaves out what its asker may
//! not see.

pub(crate) mod base;
pub(crate) mod changed_quads;
pub(crate) mod counts;
pub(crate) mod derived;
pub(crate) mod flushed;
pub(crate) mod held;
pub(crate) mod read_view;
pub(crate) mod renumbering;
pub(crate) mod replay;
pub(crate) mod scoped_states;
pub(crate) mod shown_files;
pub(crate) mod shown_states;
pub(crate) mod snapshot;
pub(crate) mod stored;
