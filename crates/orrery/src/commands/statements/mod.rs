//! Commands that run a SPARQL statement: read its text, run it locally or at a server, write the
//! answer.

pub(crate) mod explain;
pub(crate) mod query;
pub(crate) mod update;
