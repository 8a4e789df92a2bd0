//! What a session is held to by who asks: what it may read and change, the state that it reads, who pays for it.

use std::sync::Arc;

use orrery_runtime::{Paused, Spending};
use orrery_storage::Snapshot;

use super::Session;
use crate::files::FileAccess;
use crate::scope::{Sight, SqlScope};
use crate::{Error, Result, SqlState};

impl Session {
    /// Reads and changes from now on what a scope has; everything if none. Statements that begin later are held to it, also those that were prepared before; to
    /// look at rules again before each statement costs little while the scope is the same.
    pub fn set_scope(&mut self, scope: Option<Arc<SqlScope>>) {
        let is_same = match (&self.sight, &scope) {
            (Some(sight), Some(scope)) => Arc::ptr_eq(&sight.scope, scope),
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return;
        }
        if scope.is_some() {
            // What reaches the files of this machine is for who may change everything.
            self.options.files = FileAccess::refused();
            let refused = Arc::new(FileAccess::refused());
            self.state.config_mut().set_extension(refused);
        }
        self.sight = scope.map(|scope| Arc::new(Sight::new(scope)));
    }

    /// What it is held to, where that is not everything.
    pub fn scope(&self) -> Option<&Arc<SqlScope>> {
        self.sight.as_ref().map(|sight| &sight.scope)
    }

    /// Fails where what began under a scope might come to something else now: for rows that are asked for later, and for what a client goes on to send.
    ///
    /// # Errors
    /// When rights have changed since.
    pub fn require_scope(&self, began: Option<&Arc<SqlScope>>) -> Result<()> {
        match SqlScope::lets_go_on(began, self.scope()) {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::InsufficientPrivilege,
                "rights have changed since the statement began; begin it again",
            )),
        }
    }

    /// Reads this state from now on in place of the newest, where it does not change anything: the one that its scope was made for; the newest if none.
    pub fn read_at(&mut self, state: Option<Arc<Snapshot>>) {
        self.state_read = state;
    }

    /// Counts from now on what statements cost, and takes their memory from where this says; counts for nobody if none.
    pub fn set_spending(&mut self, spending: Option<Arc<Spending>>) {
        if spending.is_none() && self.spending().is_none() {
            return;
        }
        let spending = spending.unwrap_or_else(|| Spending::new(None));
        let pool = spending
            .memory()
            .unwrap_or(&self.state.runtime_env().memory_pool);
        self.pool = Arc::clone(pool);
        self.state.config_mut().set_extension(spending);
    }

    /// What counts the costs of statements, if anything does.
    pub(super) fn spending(&self) -> Option<Arc<Spending>> {
        self.state.config().get_extension::<Spending>()
    }

    /// Notes how far the statement is whose rows are taken later, if anybody pays for it.
    pub fn pause(&self) -> Option<Paused> {
        self.spending().map(|spending| spending.pause())
    }

    /// Has who pays now pay for what goes on of an earlier statement, until what is returned is dropped.
    #[must_use]
    pub fn resume(&self, paused: Option<&Paused>) -> Option<orrery_runtime::Watched> {
        self.spending()?.resume(paused?)
    }

    /// Counts what no plan does.
    pub(crate) fn note_touches(&self, touches: impl FnOnce() -> u64) {
        if let Some(spending) = self.spending() {
            spending.add(touches());
        }
    }
}
