//! Who asks, and which graphs an asker may see.
//!
//! The scope comes from the edge with a request, and goes down to the views that read.

pub(crate) mod by_list;
pub(crate) mod read_scope;
