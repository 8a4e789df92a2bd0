//! Older states of the database, for statements that name one.

use std::sync::Arc;

use orrery_storage::{At, Database, Snapshot};

use crate::execute::threads::on_own_thread;
use crate::{Error, Result, SqlState};

/// Where old states come from.
#[derive(Debug, Clone)]
pub(crate) struct OldStates {
    database: Arc<Database>,
    /// Another process writes, and this one follows it.
    follows: bool,
}

impl OldStates {
    pub(crate) fn new(database: &Arc<Database>, follows: bool) -> Self {
        Self {
            database: Arc::clone(database),
            follows,
        }
    }

    /// The state that a text names: by the number of a commit, or by a time.
    pub(crate) async fn state(&self, text: &str) -> Result<Arc<Snapshot>> {
        let at: At = text.parse().map_err(|_| {
            Error::new(
                SqlState::InvalidParameterValue,
                format!("invalid snapshot identifier: \"{text}\""),
            )
            .with_hint("It is the number of a commit, '17', or a time, '2026-11-21T10:00:00Z'.")
        })?;
        let Self { database, follows } = self.clone();
        on_own_thread(move || {
            if follows {
                database.refresh()?;
            }
            Ok(database.snapshot_at(at)?)
        })
        .await
    }
}
