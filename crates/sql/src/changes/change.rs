//! The context of a changing statement: the transaction, and plans over its state.

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use orrery_runtime::Spending;
use orrery_storage::table::{TableDefinition, Tables};
use orrery_storage::{ChangeMemory, TableSavepoint, Transaction};
use parking_lot::Mutex;

use crate::catalog::scope::{RowsChange, Sight, seen_by};
use crate::execute::threads::on_own_thread;
use crate::graph::SeenGraphs;
use crate::plan::planner::Planner;
use crate::transactions::block::BlockNumber;
use crate::transactions::old_states::OldStates;
use crate::{Error, Result, SqlState};

/// A transaction in the hands of one statement.
pub(crate) struct Change {
    /// Missing while another thread works with it, and after that thread has panicked. Nobody waits
    /// for the lock: it lets a statement be looked at from whichever thread goes on with it, which
    /// a transaction alone does not.
    transaction: Mutex<Option<Transaction>>,
    block: Option<BlockNumber>,
    limit_bytes: u64,
    state: SessionState,
    pool: Arc<dyn MemoryPool>,
    graphs: Option<SeenGraphs>,
    old_states: Option<OldStates>,
    sight: Option<Arc<Sight>>,
}

/// The memory of a transaction's changes: a part of the engine's.
#[derive(Debug)]
struct EngineMemory {
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl ChangeMemory for EngineMemory {
    fn try_grow(&mut self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.reservation.try_grow(bytes).is_ok())
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }
}

impl Change {
    pub(crate) fn new(
        mut transaction: Transaction,
        block: Option<BlockNumber>,
        state: SessionState,
        pool: Arc<dyn MemoryPool>,
        limit_bytes: u64,
    ) -> Self {
        transaction.count_memory(|| {
            Box::new(EngineMemory {
                reservation: MemoryConsumer::new("changes of tables").register(&pool),
                limit_bytes,
            })
        });
        Self {
            transaction: Mutex::new(Some(transaction)),
            block,
            limit_bytes,
            state,
            pool,
            graphs: None,
            old_states: None,
            sight: None,
        }
    }

    /// The same that reads these graphs.
    pub(crate) fn with_graphs(mut self, graphs: Option<SeenGraphs>) -> Self {
        self.graphs = graphs;
        self
    }

    /// The same that knows old states.
    pub(crate) fn with_old_states(mut self, old_states: OldStates) -> Self {
        self.old_states = Some(old_states);
        self
    }

    /// The same for somebody who may not read and change everything.
    pub(crate) fn with_sight(mut self, sight: Option<Arc<Sight>>) -> Self {
        self.sight = sight;
        self
    }

    /// What whoever asks may read and change; everything where there is none.
    pub(crate) fn sight(&self) -> Option<&Arc<Sight>> {
        self.sight.as_ref()
    }

    /// The block that it is to be given back to; without one it is committed when the statement is
    /// done.
    pub(crate) fn block(&self) -> Option<BlockNumber> {
        self.block
    }

    pub(crate) fn into_transaction(self) -> Option<Transaction> {
        self.transaction.into_inner()
    }

    /// Gives the transaction away; [`Self::take_back`] brings it again, and without that it is
    /// lost.
    pub(crate) fn lend(&mut self) -> Result<Transaction> {
        self.transaction.get_mut().take().ok_or_else(lost)
    }

    /// Takes it again.
    pub(crate) fn take_back(&mut self, transaction: Transaction) {
        *self.transaction.get_mut() = Some(transaction);
    }

    fn look<R>(&self, at: impl FnOnce(&Transaction) -> R) -> Result<R> {
        self.transaction.lock().as_ref().map(at).ok_or_else(lost)
    }

    /// The transaction, for what does not hold up other tasks for long.
    pub(crate) fn transaction_mut(&mut self) -> Result<&mut Transaction> {
        self.transaction.get_mut().as_mut().ok_or_else(lost)
    }

    /// What the statement can be undone to.
    pub(crate) fn savepoint(&self) -> Result<TableSavepoint> {
        self.look(Transaction::table_savepoint)
    }

    /// All tables with what the transaction has changed so far: for what is known by its number.
    /// Names of a statement are looked up in [`Self::seen`].
    pub(crate) fn tables(&self) -> Result<Arc<Tables>> {
        self.look(|transaction| Arc::clone(transaction.tables()))
    }

    /// The same as far as whoever asks may read them.
    pub(crate) fn seen(&self) -> Result<Arc<Tables>> {
        Ok(seen_by(self.sight.as_ref(), &self.tables()?))
    }

    /// Fails unless rows of a table, which is seen, may be changed.
    pub(crate) fn require_rows(&self, table: &TableDefinition, rows: RowsChange) -> Result<()> {
        match &self.sight {
            Some(sight) => sight.require_rows(&self.tables()?, table, rows),
            None => Ok(()),
        }
    }

    /// Plans over what is seen.
    pub(crate) fn planner(&self) -> Result<Planner> {
        let planner = Planner::new(self.state.clone(), &self.seen()?, self.graphs.clone());
        Ok(planner.with_old_states(self.old_states.clone(), self.sight.clone()))
    }

    /// Plans over all tables: to look whether a change would break what others have.
    pub(crate) fn planner_over_all(&self) -> Result<Planner> {
        Ok(Planner::new(
            self.state.clone(),
            &self.tables()?,
            self.graphs.clone(),
        ))
    }

    /// The graphs of that state, where there are any.
    pub(crate) fn graphs(&self) -> Option<&SeenGraphs> {
        self.graphs.as_ref()
    }

    /// Settings and functions, for expressions.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// Changes something, on a thread that may wait and compute.
    pub(crate) async fn apply<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let mut transaction = self.transaction.get_mut().take().ok_or_else(lost)?;
        let (transaction, done) = on_own_thread(move || {
            let done = work(&mut transaction);
            Ok((transaction, done))
        })
        .await?;
        *self.transaction.get_mut() = Some(transaction);
        done
    }

    /// What the rows that the statement changes are paid for by, where anybody pays.
    pub(crate) fn spending(&self) -> Option<Arc<Spending>> {
        self.state.config().get_extension::<Spending>()
    }

    /// Pays for rows that the statement has changed, so many altogether, before it changes more.
    pub(crate) fn pay_up_to(&self, rows: u64) -> Result<()> {
        pay_up_to(self.spending().as_deref(), rows)
    }

    /// All that the engine may use.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// A count of the memory that rows take which a statement keeps.
    pub(crate) fn memory(&self, what: &str) -> MemoryReservation {
        MemoryConsumer::new(what).register(&self.pool)
    }
}

/// Pays for a change that comes to so many touches altogether, as far as that was not paid for yet;
/// fails where nothing is left then.
pub(crate) fn pay_up_to(spending: Option<&Spending>, touches: u64) -> Result<()> {
    let paid = spending.map_or(Ok(()), |it| it.spend_on_change_up_to(touches));
    Ok(paid?)
}

fn lost() -> Error {
    Error::new(
        SqlState::InternalError,
        "the transaction was lost in a failure before",
    )
}
