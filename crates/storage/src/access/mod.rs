//! Read scopes: which graphs an asker may read.
//!
//! The scope comes from the edge with a request, and goes down to the views that read.

pub(crate) mod by_list;
pub(crate) mod read_scope;
