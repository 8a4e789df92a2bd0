//! The identity of the database whose backups a target has.

use orrery_storage::DatabaseIdentity;
use serde::{Deserialize, Serialize};

/// The database that a backup was taken of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDatabase {
    /// Who it is.
    pub identity: DatabaseIdentity,
    /// Where it stood then, for people.
    pub directory: String,
}
