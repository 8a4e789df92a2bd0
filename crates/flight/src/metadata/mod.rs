//! Metadata for clients: catalogs, schemas, tables, keys, and the server's capabilities.

pub(crate) mod capabilities;
pub(crate) mod definitions;
pub(crate) mod keys;
