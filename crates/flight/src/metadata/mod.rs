//! What there is, for clients that ask: catalogs, schemas, tables, keys, and what the server can
//! do.

pub(crate) mod capabilities;
pub(crate) mod definitions;
pub(crate) mod keys;
