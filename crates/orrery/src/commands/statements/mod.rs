//! Commands that run a statement of SPARQL: read its text, run it here or at a server, write its
//! answer.

pub(crate) mod explain;
pub(crate) mod query;
pub(crate) mod update;
