//! Settings of a session, with their defaults.

use std::time::Duration;

use orrery_postgres_tables::ForeignAccess;

use crate::files::FileAccess;
use crate::names::CATALOG;

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Idle timeout of a transaction that holds the writer lock.
    pub idle_max: Duration,
    /// The author of commits, for the list of commits.
    pub who: String,
    /// The value of `current_user`.
    pub user: String,
    /// Whether statements may use files of this machine and of object stores.
    pub files: FileAccess,
    /// Whether statements may read tables of other servers, and of which.
    pub foreign: ForeignAccess,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle_max: Duration::from_secs(60),
            who: String::new(),
            user: CATALOG.to_owned(),
            files: FileAccess::refused(),
            foreign: ForeignAccess::refused(),
        }
    }
}
