//! Transaction blocks of a session.
//!
//! ```text
//! autocommit   begin -> statement -> commit                          reads see the newest snapshot
//! BEGIN        a snapshot, at the first statement                    reads see that one
//!   change     begin, if that snapshot is still the newest (40001 otherwise) -> statement
//!   reads      see the transaction's own state from then on
//! COMMIT       commit; ROLLBACK, a stopped change, or too long a pause: the transaction is dropped
//! ```
//!
//! Writers of a database take turns, and [`Writer::begin`](orrery_storage::Writer::begin) waits for
//! the one whose turn it is. So `BEGIN` takes no turn, the first change does: a block that has read
//! what somebody changed meanwhile fails then. That is snapshot isolation with the first committer
//! winning, and serializable at that, for what a block read is what its commit follows upon. A
//! block that holds its turn and asks for nothing is ended after a while
//! ([`SessionOptions::idle_max`](crate::SessionOptions)), and any block after the time that its
//! client sets (`idle_in_transaction_session_timeout`).
//!
//! A statement that runs, and rows that somebody waits for, are no pause, however long they take.
//!
//! A statement that fails within a block leaves the block to `ROLLBACK` or `ROLLBACK TO` (25P02),
//! and gives its turn back at once if there is no savepoint.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};
use orrery_storage::{Snapshot, TableSavepoint, Transaction};
use parking_lot::Mutex;

use crate::distributed::forward::Remote;
use crate::transactions::cursor::Cursor;
use crate::{Error, Result, SqlState};

/// Savepoints that a block may have.
const SAVEPOINTS_MAX: usize = 1_000;
/// Cursors that a block may have.
const CURSORS_MAX: usize = 100;

/// Whether a session is within a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// It is not: each statement is committed by itself.
    Idle,
    /// It is.
    Open,
    /// It is, and a statement has failed.
    Failed,
}

/// What a session has between `BEGIN` and `COMMIT`.
#[derive(Debug, Default)]
pub(crate) struct Block {
    open: Option<Open>,
    /// Of the block that is open, or was last: what an earlier one began is none of its business.
    number: BlockNumber,
    is_failed: bool,
    /// It was ended because nothing was asked in it.
    is_expired: bool,
    /// When something was asked, or a row was taken, last.
    asked: Option<Instant>,
    /// Statements that run, and streams whose next rows somebody waits for.
    at_work: usize,
    /// The pause that somebody looks after, and which of those it is who did.
    watched: Option<Duration>,
    watch_number: u64,
}

/// How long a block may be open without a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdleMax {
    /// One that has the writers' turn, for which others wait.
    pub(crate) with_turn: Duration,
    /// Any other.
    pub(crate) without: Option<Duration>,
}

/// Which of a session's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockNumber(u64);

#[derive(Debug, Default)]
struct Open {
    /// It reads an old state, or is a unit without a transaction. Whether who asks wants no changes
    /// is a setting.
    is_read_only: bool,
    /// What reads see before the first change.
    snapshot: Option<Arc<Snapshot>>,
    transaction: Option<Transaction>,
    /// The transaction, where another process has it.
    remote: Option<Arc<Remote>>,
    /// The columns of cursors that are there.
    remote_cursors: HashMap<String, SchemaRef>,
    /// The commit that the transaction began after, also when it was given back.
    after: Option<u64>,
    /// In their order; without a state those from before the first change.
    savepoints: Vec<(String, Option<TableSavepoint>)>,
    cursors: HashMap<String, Cursor>,
}

impl Block {
    pub(crate) fn status(&self) -> TransactionStatus {
        match (&self.open, self.is_failed) {
            (None, _) => TransactionStatus::Idle,
            (Some(_), false) => TransactionStatus::Open,
            (Some(_), true) => TransactionStatus::Failed,
        }
    }

    /// `BEGIN`.
    pub(crate) fn begin(&mut self) {
        self.number.0 += u64::from(self.open.is_none());
        self.open.get_or_insert_default();
    }

    /// Begins a block that has its transaction, or changes nothing.
    pub(crate) fn begin_unit(&mut self, transaction: Option<Transaction>) -> Result<()> {
        if self.open.is_some() {
            return Err(Error::new(
                SqlState::ActiveSqlTransaction,
                "a transaction is open already",
            ));
        }
        self.note_life();
        self.number.0 += 1;
        self.open = Some(Open {
            is_read_only: transaction.is_none(),
            after: transaction.as_ref().map(Transaction::begins_after),
            transaction,
            ..Open::default()
        });
        Ok(())
    }

    /// The state that the transaction of the block begins on, if it has begun.
    pub(crate) fn start(&self) -> Option<Arc<Snapshot>> {
        let transaction = self.open.as_ref()?.transaction.as_ref()?;
        Some(Arc::clone(transaction.start()))
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_read_only)
    }

    /// Notes that a statement begins, which is none that ends the block or goes back in it; fails
    /// where such a one alone is taken.
    pub(crate) fn note_statement(&mut self) -> Result<()> {
        self.note_life();
        self.require_turn()?;
        match (self.is_expired, self.status()) {
            (true, TransactionStatus::Failed) => {
                Err(expired().with_hint("ROLLBACK, and begin again."))
            }
            (false, TransactionStatus::Failed) => Err(Error::new(
                SqlState::InFailedSqlTransaction,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            (_, TransactionStatus::Idle | TransactionStatus::Open) => Ok(()),
        }
    }

    /// A block whose server writes no more has failed: another server's changes come between.
    fn require_turn(&mut self) -> Result<()> {
        let transaction = self
            .open
            .as_ref()
            .and_then(|open| open.transaction.as_ref());
        if !transaction.is_some_and(|it| it.writer().is_over()) {
            return Ok(());
        }
        if let Some(open) = &mut self.open {
            open.transaction = None;
        }
        self.is_failed = true;
        Err(Error::new(
            SqlState::SerializationFailure,
            "this server does not write the database any more, and the transaction is over",
        )
        .with_detail("Nothing of it was committed.")
        .with_hint("ROLLBACK; the transaction might succeed if retried."))
    }

    /// The block that is open, if one is.
    pub(crate) fn number(&self) -> Option<BlockNumber> {
        self.open.as_ref().map(|_| self.number)
    }

    /// A cursor of the block.
    pub(crate) fn cursor(&self, name: &str) -> Option<&Cursor> {
        self.open.as_ref()?.cursors.get(name)
    }

    /// Fails where no cursor of that name can be declared.
    pub(crate) fn require_free_cursor(&self, name: &str) -> Result<()> {
        let open = self.open.as_ref();
        let open = open.ok_or_else(|| outside("DECLARE CURSOR"))?;
        match open.cursors.len() {
            _ if open.cursors.contains_key(name) => Err(Error::new(
                SqlState::DuplicateCursor,
                format!("cursor \"{name}\" already exists"),
            )),
            CURSORS_MAX.. => Err(Error::new(
                SqlState::ProgramLimitExceeded,
                format!("a transaction has at most {CURSORS_MAX} cursors"),
            )),
            _ => Ok(()),
        }
    }

    /// Keeps a cursor until the block ends.
    pub(crate) fn put_cursor(&mut self, name: String, cursor: Cursor) {
        if let Some(open) = &mut self.open {
            open.cursors.insert(name, cursor);
        }
    }

    /// Takes a cursor, to be put back when it was read.
    pub(crate) fn take_cursor(&mut self, name: &str) -> Result<Cursor> {
        let open = self.open.as_mut();
        let cursor = open.and_then(|open| open.cursors.remove(name));
        cursor.ok_or_else(|| no_cursor(name))
    }

    /// Forgets a cursor, or all.
    pub(crate) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match (name, &mut self.open) {
            (Some(name), _) => self.take_cursor(name).map(drop),
            (None, Some(open)) => {
                open.cursors.clear();
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Notes that somebody is there.
    pub(crate) fn note_life(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// `SET TRANSACTION SNAPSHOT`: the block reads an old state and changes nothing. Fails where it
    /// has read or changed something.
    pub(crate) fn read_old(&mut self, old: Arc<Snapshot>) -> Result<()> {
        let open = self.open_before_queries()?;
        open.snapshot = Some(old);
        open.is_read_only = true;
        Ok(())
    }

    /// Fails unless a block is open that has neither read nor changed anything.
    pub(crate) fn refuse_queries_before(&mut self) -> Result<()> {
        self.open_before_queries().map(|_| ())
    }

    fn open_before_queries(&mut self) -> Result<&mut Open> {
        let what = "SET TRANSACTION SNAPSHOT";
        let open = self.open.as_mut().ok_or_else(|| outside(what))?;
        let has_begun = open.snapshot.is_some() || open.after.is_some() || open.remote.is_some();
        match has_begun || open.transaction.is_some() {
            true => Err(Error::new(
                SqlState::ActiveSqlTransaction,
                format!("{what} must be called before any query"),
            )),
            false => Ok(open),
        }
    }

    /// What reads see: of the transaction, or of the snapshot that is seen first in the block.
    pub(crate) fn read(&mut self, newest: impl FnOnce() -> Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let Some(open) = &mut self.open else {
            return Ok(newest());
        };
        match &mut open.transaction {
            Some(transaction) => Ok(transaction.snapshot()?),
            None => {
                let snapshot = open.snapshot.get_or_insert_with(newest);
                match open.after.is_some_and(|after| after != snapshot.commit()) {
                    true => Err(serialization_failure()),
                    false => Ok(Arc::clone(snapshot)),
                }
            }
        }
    }

    /// The same state, to which the block is not bound by looking at it.
    pub(crate) fn look(&mut self, newest: impl FnOnce() -> Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        match &mut self.open {
            Some(Open {
                transaction: Some(transaction),
                ..
            }) => Ok(transaction.snapshot()?),
            Some(Open {
                snapshot: Some(snapshot),
                ..
            }) => Ok(Arc::clone(snapshot)),
            _ => Ok(newest()),
        }
    }

    /// Takes the transaction for a change; without one, the number of the commit that it has to
    /// begin after, if that matters. Until it is given back, the block counts as failed: a
    /// statement that is stopped has dropped the transaction.
    pub(crate) fn take(&mut self) -> Taken {
        let Some(open) = &mut self.open else {
            return Taken::Autocommit;
        };
        self.is_failed = true;
        match open.transaction.take() {
            Some(transaction) => Taken::Transaction(self.number, Box::new(transaction)),
            None => {
                let read = open.snapshot.as_ref().map(|snapshot| snapshot.commit());
                Taken::After(self.number, open.after.or(read))
            }
        }
    }

    /// A statement of a block was done. Where that block is over, so is the transaction.
    pub(crate) fn give_back(&mut self, number: BlockNumber, transaction: Transaction) {
        self.note_life();
        if self.number() != Some(number) {
            return;
        }
        if let Some(open) = &mut self.open {
            open.after = Some(transaction.begins_after());
            open.transaction = Some(transaction);
            self.is_failed = false;
        }
    }

    /// A statement of a block failed, and was undone.
    pub(crate) fn fail(&mut self, number: BlockNumber, transaction: Option<Transaction>) {
        if self.number() != Some(number) {
            return;
        }
        self.is_failed = true;
        let Some(open) = &mut self.open else {
            return;
        };
        if open.savepoints.is_empty() {
            open.remote = None;
        } else if let Some(transaction) = transaction {
            open.after = Some(transaction.begins_after());
            open.transaction = Some(transaction);
        }
    }

    /// A statement failed that has changed nothing, or its answer did; of a block, if one was open
    /// when it began.
    pub(crate) fn fail_statement(&mut self, number: Option<BlockNumber>) {
        if let (Some(number), true) = (number, self.number() == number) {
            let transaction = self.open.as_mut().and_then(|open| open.transaction.take());
            self.fail(number, transaction);
        }
    }

    /// Whether another process has the transaction of the block.
    pub(crate) fn has_remote(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.remote.is_some())
    }

    /// The transaction of the block, if another process has it.
    pub(crate) fn remote(&self) -> Option<Arc<Remote>> {
        self.open.as_ref()?.remote.clone()
    }

    /// The columns of a cursor that is there.
    pub(crate) fn remote_cursor(&self, name: &str) -> Option<SchemaRef> {
        self.open.as_ref()?.remote_cursors.get(name).cloned()
    }

    /// Notes them.
    pub(crate) fn put_remote_cursor(&mut self, name: String, columns: SchemaRef) {
        if let Some(open) = &mut self.open {
            open.remote_cursors.insert(name, columns);
        }
    }

    /// The transaction of the block, if another process has it and the block has not failed.
    pub(crate) fn remote_to_commit(&self) -> Option<Arc<Remote>> {
        self.remote().filter(|_| !self.is_failed)
    }

    /// What a transaction of the block in another process begins with: after which commit, if that
    /// matters, and with which savepoints.
    pub(crate) fn before_remote(&self) -> Option<(BlockNumber, Option<u64>, Vec<String>)> {
        let open = self.open.as_ref()?;
        let read = open.snapshot.as_ref().map(|snapshot| snapshot.commit());
        let savepoints = open.savepoints.iter().map(|(name, _)| name.clone());
        Some((self.number, open.after.or(read), savepoints.collect()))
    }

    /// A statement of the block begins in another process, which has its transaction from now on.
    /// Until it has ended the block counts as failed.
    pub(crate) fn begin_remote(&mut self, number: BlockNumber, remote: &Arc<Remote>) -> Result<()> {
        match &mut self.open {
            Some(open) if self.number == number => {
                open.remote = Some(Arc::clone(remote));
                self.is_failed = true;
                Ok(())
            }
            _ => Err(Error::new(
                SqlState::NoActiveSqlTransaction,
                "the transaction of the statement is over",
            )),
        }
    }

    /// It was done.
    pub(crate) fn end_remote(&mut self, number: BlockNumber) {
        self.note_life();
        if self.number() == Some(number) {
            self.is_failed = false;
        }
    }

    /// Begins a block whose transaction has to begin after this commit, if that matters, and which
    /// has these savepoints.
    pub(crate) fn begin_after(&mut self, after: Option<u64>, savepoints: Vec<String>) {
        self.begin();
        if let Some(open) = &mut self.open {
            open.after = after;
            let savepoints = savepoints.into_iter().map(|name| (name, None));
            open.savepoints = savepoints.collect();
        }
    }

    /// `COMMIT`: what is to be committed. The block is over; a failed one has nothing, and one that
    /// was ended without being asked is told so.
    pub(crate) fn end_for_commit(&mut self) -> Result<(Option<Transaction>, TransactionStatus)> {
        let is_expired = self.is_expired;
        let ended = self.end();
        match is_expired {
            true => Err(expired().with_detail("Nothing of it was committed.")),
            false => Ok(ended),
        }
    }

    /// `ROLLBACK`, and the half of `COMMIT`.
    pub(crate) fn end(&mut self) -> (Option<Transaction>, TransactionStatus) {
        let status = self.status();
        let open = self.open.take();
        self.is_failed = false;
        self.is_expired = false;
        let transaction = open.and_then(|open| open.transaction);
        match status {
            TransactionStatus::Open => (transaction, status),
            TransactionStatus::Idle | TransactionStatus::Failed => (None, status),
        }
    }

    /// `SAVEPOINT`.
    pub(crate) fn set_savepoint(&mut self, name: String) -> Result<()> {
        let open = self.open.as_mut().ok_or_else(|| outside("SAVEPOINT"))?;
        if open.savepoints.len() >= SAVEPOINTS_MAX {
            return Err(Error::new(
                SqlState::ProgramLimitExceeded,
                format!("a transaction has at most {SAVEPOINTS_MAX} savepoints"),
            ));
        }
        let state = open.transaction.as_ref().map(Transaction::table_savepoint);
        open.savepoints.push((name, state));
        Ok(())
    }

    /// Fails where a savepoint is open, for what cannot be undone to one.
    pub(crate) fn refuse_savepoints(&self, what: &str) -> Result<()> {
        match self
            .open
            .as_ref()
            .is_some_and(|it| !it.savepoints.is_empty())
        {
            true => Err(Error::unsupported(format!("{what} behind a savepoint"))),
            false => Ok(()),
        }
    }

    /// `ROLLBACK TO`: also what lifts a failure.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let is_expired = self.is_expired;
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| outside("ROLLBACK TO SAVEPOINT"))?;
        let place = place_of(&open.savepoints, name)?;
        let is_over = || {
            Error::new(
                SqlState::InFailedSqlTransaction,
                "the transaction of the savepoint is over, ROLLBACK is all that can be done",
            )
        };
        // What was changed before the savepoint is gone, here or at another node, and so is the
        // state that was read.
        if is_expired {
            return Err(is_over());
        }
        match &open.savepoints[place].1 {
            // The turn is given back: nothing was changed before.
            None => open.transaction = None,
            Some(state) => match &mut open.transaction {
                Some(transaction) => transaction.undo_to(state),
                None => return Err(is_over()),
            },
        }
        open.savepoints.truncate(place + 1);
        self.is_failed = false;
        Ok(())
    }

    /// `RELEASE`.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| outside("RELEASE SAVEPOINT"))?;
        let place = place_of(&open.savepoints, name)?;
        open.savepoints.truncate(place);
        Ok(())
    }
}

/// What a change begins with.
pub(crate) enum Taken {
    /// A transaction of its own.
    Autocommit,
    /// The block's.
    Transaction(BlockNumber, Box<Transaction>),
    /// One that is to become the block's, after this commit if there is one.
    After(BlockNumber, Option<u64>),
}

fn expired() -> Error {
    Error::new(
        SqlState::IdleInTransactionSessionTimeout,
        "the transaction was ended because nothing was asked in it for too long",
    )
}

fn place_of(savepoints: &[(String, Option<TableSavepoint>)], name: &str) -> Result<usize> {
    let place = savepoints.iter().rposition(|(it, _)| it == name);
    place.ok_or_else(|| {
        Error::new(
            SqlState::InvalidSavepointSpecification,
            format!("savepoint \"{name}\" does not exist"),
        )
    })
}

fn no_cursor(name: &str) -> Error {
    Error::new(
        SqlState::InvalidCursorName,
        format!("cursor \"{name}\" does not exist"),
    )
}

fn outside(what: &str) -> Error {
    Error::new(
        SqlState::NoActiveSqlTransaction,
        format!("{what} can only be used in transaction blocks"),
    )
}

/// Somebody else changed what this block has read.
pub(crate) fn serialization_failure() -> Error {
    Error::new(
        SqlState::SerializationFailure,
        "could not serialize access due to concurrent update",
    )
    .with_detail("Another transaction was committed after this one had begun to read.")
    .with_hint("The transaction might succeed if retried.")
}

/// Ends a block if nothing is asked in it for so long.
pub(crate) fn watch(block: &Arc<Mutex<Block>>, idle_max: IdleMax) {
    let (mut pause, number) = {
        let mut block = block.lock();
        let pause = block.idle_limit(idle_max);
        let Some(pause) = pause.filter(|_| block.watched != pause) else {
            return;
        };
        block.watched = Some(pause);
        block.watch_number += 1;
        (pause, block.watch_number)
    };
    let watched = Arc::downgrade(block);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(pause).await;
            let Some(block) = watched.upgrade() else {
                return;
            };
            let mut block = block.lock();
            // Another looks after it by now, for another time.
            if block.watch_number != number {
                return;
            }
            match block.left_to_idle(idle_max) {
                Some(left) => pause = left,
                None => return,
            }
        }
    });
}

impl Block {
    /// Whether nobody else can change anything. While a change runs, its statement has the turn and
    /// not the block.
    pub(crate) fn holds_turn(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.transaction.is_some())
    }

    /// How long a pause of the block may be; none where it may be of any length.
    fn idle_limit(&self, idle_max: IdleMax) -> Option<Duration> {
        match (&self.open, self.holds_turn()) {
            (None, _) => None,
            // One that was ended has nothing more that could be taken from it.
            (Some(_), false) if self.is_expired => None,
            (Some(_), false) => idle_max.without,
            (Some(_), true) => Some(idle_max.with_turn),
        }
    }

    /// How long the pause may last that is now; none where there is nothing to wait for, or the
    /// block was ended.
    fn left_to_idle(&mut self, idle_max: IdleMax) -> Option<Duration> {
        let Some(idle_max) = self.idle_limit(idle_max) else {
            self.watched = None;
            return None;
        };
        if self.at_work > 0 {
            return Some(idle_max);
        }
        let idle = self.asked.map_or(idle_max, |asked| asked.elapsed());
        let left = idle_max.saturating_sub(idle);
        if !left.is_zero() {
            return Some(left);
        }
        self.watched = None;
        self.is_failed = true;
        self.is_expired = true;
        if let Some(open) = &mut self.open {
            open.transaction = None;
            open.remote = None;
            open.snapshot = None;
            open.cursors.clear();
        }
        tracing::warn!(
            "a transaction was ended: nothing was asked in it for {} s",
            idle_max.as_secs()
        );
        None
    }
}

/// While this lives, a statement runs, or somebody waits for its rows.
#[derive(Debug)]
pub(crate) struct AtWork(Arc<Mutex<Block>>);

impl AtWork {
    pub(crate) fn new(block: &Arc<Mutex<Block>>) -> Self {
        block.lock().at_work += 1;
        Self(Arc::clone(block))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut block = self.0.lock();
        block.at_work -= 1;
        block.note_life();
    }
}

/// Rows of a statement: waiting for them is no pause of the block, and their failure is that of the
/// block in which they were asked for.
pub(crate) struct Answer {
    rows: SendableRecordBatchStream,
    block: Arc<Mutex<Block>>,
    number: Option<BlockNumber>,
    waiting: Option<AtWork>,
}

impl Answer {
    pub(crate) fn new(block: &Arc<Mutex<Block>>, rows: SendableRecordBatchStream) -> Self {
        Self {
            number: block.lock().number(),
            block: Arc::clone(block),
            rows,
            waiting: None,
        }
    }
}

impl Stream for Answer {
    type Item = datafusion::common::Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = &mut *self;
        if answer.waiting.is_none() {
            answer.waiting = Some(AtWork::new(&answer.block));
        }
        let polled = answer.rows.poll_next_unpin(context);
        if polled.is_ready() {
            answer.waiting = None;
        }
        if let Poll::Ready(Some(Err(_))) = &polled {
            answer.block.lock().fail_statement(answer.number);
        }
        polled
    }
}

impl RecordBatchStream for Answer {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
