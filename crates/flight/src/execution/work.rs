//! Runs the work of a statement: its session, its admission, its time limit, and its budget.

use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, TryStreamExt};
use orrery_service::ports::host::Host;
use orrery_service::ports::users::Entered;
use orrery_sql::{
    Error, Outcome, Rows, Session, Spent, Statement, StatementKind, Tag, Turn, spent,
};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::access::by::denied;
use crate::calls::answer::{Again, Batches, Bounds, Time, is_killed};
use crate::calls::call::Call;
use crate::calls::open_transaction::OpenTransaction;
use crate::execution::columns::{plain_batch, plain_schema};
use crate::life::{Stage, reached};
use crate::refusal::{killed, out_of_time, refusal, refused, shutting_down, used_up};

/// The session in which a statement runs: its own, or a transaction's, where it waits for the
/// previous one.
pub(crate) enum Place {
    Own(Box<Session>),
    Within {
        transaction: Arc<OpenTransaction>,
        /// The transaction's session, limited to the caller's present rights.
        held: Option<Box<Session>>,
        _turn: OwnedMutexGuard<()>,
    },
}

impl Place {
    pub(crate) fn session(&self) -> &Session {
        match self {
            Self::Own(session) => session,
            Self::Within {
                transaction, held, ..
            } => held.as_deref().unwrap_or(&transaction.session),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// The session of a statement that has begun.
pub(crate) enum Begun<'a> {
    /// The session itself: nothing is limited.
    Unpaid(&'a Session),
    /// A copy of the session that counts the work against the caller's budget.
    Paid(Box<Session>),
}

impl Deref for Begun<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        match self {
            Self::Unpaid(session) => session,
            Self::Paid(session) => session,
        }
    }
}

/// Counts a statement until it is dropped.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) terms: Terms,
    _held: Entered,
}

/// The caller's limits for a statement.
#[derive(Default)]
pub(crate) struct Terms {
    /// Most time of one admission.
    time_max: Option<Duration>,
    spent: Option<Spent>,
}

/// The result of a statement: rows, or its command tag.
pub(crate) enum Ran {
    Rows(arrow::datatypes::SchemaRef, Batches),
    Done(Tag),
}

impl Call {
    /// The place of a statement in this transaction; without a transaction, in a session of its
    /// own.
    pub(crate) async fn place(&self, transaction: Option<&[u8]>) -> Result<Place, Status> {
        self.require_serving()?;
        match transaction.filter(|handle| !handle.is_empty()) {
            None => Ok(Place::Own(Box::new(self.session()))),
            Some(handle) => {
                let transaction = self.transaction(handle)?;
                let turn = transaction.enter().await?;
                Ok(self.within_transaction(transaction, turn).await)
            }
        }
    }

    /// The place in a transaction, once its previous statement is done.
    pub(crate) async fn within_transaction(
        &self,
        transaction: Arc<OpenTransaction>,
        turn: OwnedMutexGuard<()>,
    ) -> Place {
        Place::Within {
            held: self.held(&transaction.session).await.map(Box::new),
            transaction,
            _turn: turn,
        }
    }

    /// Counts a statement and waits for admission; returns the session in which it runs.
    pub(crate) async fn begin<'a>(
        &self,
        session: &'a Session,
    ) -> Result<(Begun<'a>, Time), Status> {
        let (session, counted) = self.enter(session)?;
        let mut time = self.turn(&session, &counted.terms).await?;
        time.counted = Box::new(counted);
        Ok((session, time))
    }

    /// Counts a statement that may need many admissions; returns the session in which it runs.
    pub(crate) fn enter<'a>(&self, session: &'a Session) -> Result<(Begun<'a>, Counted), Status> {
        let Some(admitted) = self.by().limited() else {
            return Ok((Begun::Unpaid(session), Counted::default()));
        };
        // Settings, statements and the transaction are shared; the session that stays counts for no
        // caller.
        let mut paid = session.clone();
        let entered = admitted.enter(&mut paid, self.watched());
        let entered = entered.map_err(|it| denied(&it))?;
        // Shared by all bound sets of values, whose rows are one answer.
        paid.share_answer_max();
        let counted = Counted {
            terms: Terms {
                time_max: entered.time_max,
                spent: entered.spent.clone(),
            },
            _held: entered,
        };
        Ok((Begun::Paid(Box::new(paid)), counted))
    }

    /// Waits for admission of a counted statement.
    pub(crate) async fn turn(&self, session: &Session, terms: &Terms) -> Result<Time, Status> {
        let turn = place_of(&self.host, session).await?;
        let asked = session.statement_timeout();
        let time = asked.unwrap_or(self.options.statement_time_default);
        let time = time.min(self.options.statement_time_max);
        let bounds = Bounds {
            until: Instant::now() + time.min(terms.time_max.unwrap_or(time)),
            spent: terms.spent.clone(),
        };
        Ok(Time {
            turn,
            counted: Box::new(()),
            bounds,
        })
    }

    /// A future admission, for the rows of a statement once they are fetched.
    pub(crate) fn again(&self, session: &Session) -> Again {
        let (host, session) = (self.host.clone(), session.clone());
        async move { place_of(&host, &session).await }.boxed()
    }

    /// Runs work until it is done, its time is up, its budget is used up, or the server stops.
    ///
    /// A commit that has begun is waited for: it cannot be undone.
    pub(crate) async fn within<T>(
        &self,
        session: &Session,
        bounds: &Bounds,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Status> {
        let mut work = pin!(work);
        let mut stage = self.stage.clone();
        let stopped = tokio::select! {
            // Done is done, whatever else has come meanwhile.
            biased;
            done = &mut work => return done.map_err(|error| refused(&error)),
            () = tokio::time::sleep_until(bounds.until) => out_of_time(),
            message = spent(bounds.spent.as_ref()) => used_up(message),
            () = is_killed(self.watched()) => killed(),
            () = reached(&mut stage, Stage::Over) => return Err(shutting_down()),
        };
        if session.committing().is_begun() {
            return work.await.map_err(|error| refused(&error));
        }
        // As at PostgreSQL's port, the transaction has failed with its statement.
        session.fail();
        Err(stopped)
    }
}

/// Waits for admission.
async fn place_of(host: &Host, session: &Session) -> Result<Turn, Status> {
    let turn = host.turn_of(session).await;
    turn.map_err(|why| refusal(Code::ResourceExhausted, "53000", why.to_string()))
}

/// Converts the outcome of a statement for this protocol.
pub(crate) fn ran(outcome: Outcome) -> Result<Ran, Status> {
    match outcome {
        Outcome::Query(rows) | Outcome::Returned(rows, _) => {
            let schema = plain_schema(&rows.schema());
            Ok(Ran::Rows(Arc::clone(&schema), batches(rows, schema)))
        }
        Outcome::Done(tag) => Ok(Ran::Done(tag)),
        Outcome::CopyIn(_) | Outcome::CopyOut(_) => Err(refusal(
            Code::Unimplemented,
            "0A000",
            "COPY FROM STDIN and TO STDOUT are not supported here; ingest rows instead",
        )),
    }
}

fn batches(rows: Rows, schema: arrow::datatypes::SchemaRef) -> Batches {
    let rows = rows.map_err(|error| refused(&Error::of_run(&error)));
    rows.map(move |batch| {
        plain_batch(&batch?, &schema)
            .map_err(|error| refusal(Code::Internal, "XX000", error.to_string()))
    })
    .boxed()
}

/// The number of rows that a change has affected; a definition counts none.
pub(crate) fn count(tag: Tag) -> i64 {
    match tag {
        Tag::Select(rows)
        | Tag::Insert(rows)
        | Tag::Update(rows)
        | Tag::Delete(rows)
        | Tag::Copy(rows)
        | Tag::Materialize(rows)
        | Tag::Fetch(rows) => i64::try_from(rows).unwrap_or(i64::MAX),
        Tag::Words(_) => 0,
    }
}

/// Refuses statements that control a session or a transaction; the protocol has calls for these.
pub(crate) fn refuse_control(statement: &Statement, is_own: bool) -> Result<(), Status> {
    if statement.kind() == StatementKind::Transaction {
        return Err(refusal(
            Code::FailedPrecondition,
            "25001",
            "transactions begin and end by BeginTransaction and EndTransaction, not by statements",
        ));
    }
    if is_own && statement.is_of_session() {
        return Err(refusal(
            Code::Unimplemented,
            "0A000",
            "there is no session outside of a transaction whose settings and statements would be kept",
        ));
    }
    Ok(())
}
