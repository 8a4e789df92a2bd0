//! Commands that move data in and out of a database, and manage prefixes, mappings and the
//! full-text index.

pub(crate) mod dump;
pub(crate) mod files_below;
pub(crate) mod http_files;
pub(crate) mod load;
pub(crate) mod mapping;
pub(crate) mod prefix;
pub(crate) mod text;
