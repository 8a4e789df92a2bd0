//! The settings of an object store database.

use crate::cache::CacheOptions;

/// Settings of a database in an object store.
#[derive(Debug, Clone)]
pub struct ObjectOptions {
    /// Where pieces of files are kept that were read, and how much of them.
    pub cache: CacheOptions,
}
