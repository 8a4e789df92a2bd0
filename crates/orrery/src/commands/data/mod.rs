//! Commands that bring data in and out, and what goes with it: prefixes, mappings, the index of
//! texts.

pub(crate) mod dump;
pub(crate) mod files_below;
pub(crate) mod http_files;
pub(crate) mod load;
pub(crate) mod mapping;
pub(crate) mod prefix;
pub(crate) mod text;
