//! Tests of clusters of nodes in one process. One program, because each part would take as long to
//! link as all of them.

mod calls;
mod cluster;
mod common;
