//! The asker's constraints on a session: rights, state, account.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use orrery_runtime::{Paused, Spending};
use orrery_storage::Snapshot;

use super::Session;
use crate::answers::answer_max::AnswerMax;
use crate::catalog::scope::{Sight, SqlScope};
use crate::files::FileAccess;
use crate::session::place::{Held, Place, Turn};
use crate::session::ruled::RuledScope;
use crate::{Error, Result, SqlState};

/// Values up to this are not counted.
const HELD_BYTES_MIN: usize = 4 << 10;

/// Memory that is counted until this is dropped.
#[derive(Debug)]
pub struct HeldValues {
    _memory: MemoryReservation,
}

impl Session {
    /// Reads and changes from now on what a scope has; everything if none. Statements that begin
    /// later are held to it, also those that were prepared before; to look at rules again before
    /// each statement costs little while the scope is the same.
    pub fn set_scope(&mut self, scope: Option<Arc<SqlScope>>) {
        if self.has_scope(scope.as_ref()) {
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

    fn has_scope(&self, scope: Option<&Arc<SqlScope>>) -> bool {
        match (&self.sight, scope) {
            (Some(sight), Some(scope)) => Arc::ptr_eq(&sight.scope, scope),
            (None, None) => true,
            _ => false,
        }
    }

    /// The scope of the session, where it is restricted.
    pub fn scope(&self) -> Option<&Arc<SqlScope>> {
        self.sight.as_ref().map(|sight| &sight.scope)
    }

    /// Fails where what began under a scope might come to something else now: for rows that are
    /// asked for later, and for what a client goes on to send.
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

    /// Sets the state in which rules by query found this session's scope; the newest if `None`.
    /// Statements that only read, read that state; changes go by the rules in the state that they
    /// change.
    pub fn set_ruled(&mut self, ruled: Option<Arc<RuledScope>>) {
        self.ruled = ruled;
    }

    /// Goes by what rules by query find in this state, which a transaction begins on: its scope may
    /// be that of an earlier one.
    pub async fn go_by(&mut self, state: &Arc<Snapshot>) {
        let sight = self.sight_in(state).await;
        self.set_scope(sight.map(|sight| Arc::clone(&sight.scope)));
    }

    /// The same for the open transaction, which its statements read, if it has begun.
    pub async fn go_by_transaction(&mut self) {
        if self.ruled.is_some() {
            let start = self.block.lock().start();
            if let Some(start) = start {
                self.go_by(&start).await;
            }
        }
    }

    /// What may be read and changed in a state that a transaction begins on.
    pub(super) async fn sight_in(&self, state: &Arc<Snapshot>) -> Option<Arc<Sight>> {
        let ruled = self.ruled.as_ref();
        // Not by its number, which a state that was lost with a change of leader has, too.
        let ruled = ruled.filter(|ruled| !Arc::ptr_eq(&ruled.state, state));
        let Some(ruled) = ruled else {
            return self.sight.clone();
        };
        let scope = (ruled.scope_in)(Arc::clone(state)).await;
        match self.has_scope(scope.as_ref()) {
            true => self.sight.clone(),
            false => scope.map(|scope| Arc::new(Sight::new(scope))),
        }
    }

    /// Counts from now on what statements cost, and takes their memory from where this says; counts
    /// for nobody if none.
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

    /// Holds the memory of values that wait for their statement; none where they are few.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn hold_values(&self, values: &[ScalarValue]) -> Result<Option<HeldValues>> {
        let bytes: usize = values.iter().map(ScalarValue::size).sum();
        if bytes < HELD_BYTES_MIN {
            return Ok(None);
        }
        let memory = MemoryConsumer::new("values of a statement").register(self.pool());
        let grown = memory.try_grow(bytes);
        grown.map_err(|error| Error::of_run(&error))?;
        Ok(Some(HeldValues { _memory: memory }))
    }

    /// Sets the length limit of later answers to queries; none if `None`. All rows of a cursor
    /// together are one answer. Rows that changes return, and rows written into files, are no
    /// answers.
    pub fn set_answer_max(&mut self, max: Option<AnswerMax>) {
        self.answer_max = max;
    }

    /// Holds the answers of all queries that are run from now on to that length together.
    pub fn share_answer_max(&mut self) {
        self.answer_max = self.answer_max.take().map(AnswerMax::of_several);
    }

    /// What counts the costs of statements, if anything does.
    pub(crate) fn spending(&self) -> Option<Arc<Spending>> {
        self.state.config().get_extension::<Spending>()
    }

    /// Has the statement that begins compute in a place behind the door, until what is returned is
    /// dropped, or it begins to wait for the writers' turn, another process or the disk: then it
    /// gives the place up for good. Who has the writers' turn goes on without one, and nobody but
    /// that one does.
    #[must_use]
    pub fn hold(&self, turn: Turn) -> Turn {
        let place = Place::of(turn);
        *self.place.lock() = place.clone();
        Box::new(Held(place))
    }

    /// Gives the place up, for the statement waits from now on.
    pub fn leave_place(&self) {
        let place = std::mem::take(&mut *self.place.lock());
        place.leave();
    }

    /// Whether others wait for the end of this session's transaction, as it has the writers' turn,
    /// here or in another process. Its statements are admitted before others.
    pub fn is_waited_for(&self) -> bool {
        let block = self.block.lock();
        block.holds_turn() || block.has_remote()
    }

    /// Notes how far the statement is whose rows are taken later, if anybody pays for it.
    pub fn pause(&self) -> Option<Paused> {
        self.spending().map(|spending| spending.pause())
    }

    /// Has who pays now pay for what goes on of an earlier statement, until what is returned is
    /// dropped.
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
