//! Runs statements, plain and prepared: once for each bound set of values.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use orrery_sql::{Prepared, ScalarValue, Session, StatementKind, TransactionStatus};
use parking_lot::Mutex;
use tonic::{Code, Status};

use crate::calls::answer::{Answer, Batches, Unfetched};
use crate::calls::call::Call;
use crate::calls::kept_statement::KeptStatement;
use crate::calls::parameters::{Bound, values};
use crate::execution::columns::plain_schema;
use crate::execution::work::{Place, Ran, Terms, count, ran, refuse_control};
use crate::handles::ConnectionId;
use crate::refusal::{is_out_of_memory, refusal, refused};

/// The description of a prepared statement, for its client.
pub(crate) struct Described {
    pub(crate) handle: Bytes,
    pub(crate) columns: Option<Arc<Schema>>,
    pub(crate) parameters: Schema,
}

/// The result of a statement that was asked for rows.
pub(crate) enum Asked {
    /// The rows can be fetched with this handle.
    Rows(Bytes, Arc<Answer>),
    /// The statement has no rows.
    Done,
}

impl Call {
    /// Runs a text whose rows are to be fetched.
    pub(crate) async fn ask(
        &self,
        text: &str,
        transaction: Option<&[u8]>,
        connection: Option<ConnectionId>,
    ) -> Result<Asked, Status> {
        self.watch(text);
        let asked = async {
            let place = self.place(transaction).await?;
            let prepared = self.understood(&place, text).await?;
            self.ask_prepared(place, prepared, Arc::default(), connection)
                .await
        };
        self.asked(asked.await)
    }

    /// Notes how a statement ended; one whose rows are to be fetched goes on.
    fn asked(&self, asked: Result<Asked, Status>) -> Result<Asked, Status> {
        match asked {
            Ok(Asked::Rows(handle, answer)) => Ok(Asked::Rows(handle, answer)),
            ended => self.ended(ended),
        }
    }

    /// Runs a prepared statement whose rows are to be fetched, with the values that are bound to
    /// it.
    pub(crate) async fn ask_kept(
        &self,
        handle: &[u8],
        connection: Option<ConnectionId>,
    ) -> Result<Asked, Status> {
        let kept = self.kept(handle)?;
        self.watch(kept.prepared.text());
        let asked = async {
            let place = self.place_of(&kept).await?;
            let bound = Arc::clone(&kept.bound.lock());
            self.ask_prepared(place, Arc::clone(&kept.prepared), bound, connection)
                .await
        };
        self.asked(asked.await)
    }

    async fn ask_prepared(
        &self,
        place: Place,
        prepared: Arc<Prepared>,
        bound: Arc<Bound>,
        connection: Option<ConnectionId>,
    ) -> Result<Asked, Status> {
        if bound.rows() > 1 && prepared.statement().kind() == StatementKind::Change {
            if prepared.columns().is_some() {
                return Err(refusal(
                    Code::Unimplemented,
                    "0A000",
                    "a change with RETURNING takes one set of values at a time",
                ));
            }
            let rows = (0..bound.rows()).map(|row| bound.values(row));
            let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
            let rows = futures::stream::iter(rows.into_iter().map(Ok)).boxed();
            self.change_rows(&place, &prepared, rows).await?;
            return Ok(Asked::Done);
        }
        let (session, time) = self.begin(place.session()).await?;
        let first = bound.values(0)?;
        // Before it runs: a change whose rows cannot be held must not be made.
        let held = prepared.columns().map(|_| session.hold_unfetched());
        let held = held.transpose().map_err(|error| refused(&error))?;
        let run = self.within(&session, &time.bounds, session.run(&prepared, &first));
        match ran(run.await?)? {
            Ran::Done(_) => Ok(Asked::Done),
            Ran::Rows(schema, rows) => {
                let rest = further(&session, &prepared, &bound);
                let rows = match prepared.statement().kind() {
                    // The rows of a change cannot be computed anew.
                    StatementKind::Change => rows,
                    _ => self.tried_twice(&session, Arc::clone(&prepared), first, rows),
                };
                let rows = rows.chain(rest).boxed();
                let scope = self.by().scope().cloned();
                let answer = Answer::start(
                    schema,
                    rows,
                    time,
                    self.again(&session),
                    Unfetched { scope, held },
                    self.watched().cloned(),
                    self.stage.clone(),
                );
                let owner = self.by().owner();
                let handle = self.answers.keep(Arc::clone(&answer), connection, owner)?;
                Ok(Asked::Rows(handle, answer))
            }
        }
    }

    /// Rows of a query. If one outside of transactions runs out of memory before its first rows, it
    /// runs once more in the narrow lane.
    fn tried_twice(
        &self,
        session: &Session,
        prepared: Arc<Prepared>,
        values: Vec<ScalarValue>,
        mut rows: Batches,
    ) -> Batches {
        let (host, session) = (self.host.clone(), session.clone());
        let tried = async move {
            match rows.next().await {
                None => futures::stream::empty().boxed(),
                // A transaction has failed with it.
                Some(Err(status))
                    if is_out_of_memory(&status)
                        && session.transaction_status() == TransactionStatus::Idle =>
                {
                    drop(rows);
                    let again = async {
                        let Ok((second, turn)) = host.second_try(&session).await else {
                            return Err(status);
                        };
                        let outcome = session.run(&prepared, &values).await;
                        let mut rows = match ran(outcome.map_err(|error| refused(&error))?)? {
                            Ran::Rows(_, rows) => rows,
                            Ran::Done(_) => return Err(status),
                        };
                        let first = rows.next().await;
                        // Others have their second try while the client takes its rows.
                        drop(second);
                        let rows = futures::stream::iter(first).chain(rows);
                        Ok(rows
                            .inspect(move |_| {
                                let _ = &turn;
                            })
                            .boxed())
                    };
                    again
                        .await
                        .unwrap_or_else(|status| futures::stream::iter([Err(status)]).boxed())
                }
                Some(first) => futures::stream::iter([first]).chain(rows).boxed(),
            }
        };
        futures::stream::once(tried).flatten().boxed()
    }

    /// Runs a text without rows, and counts the rows that it changed.
    pub(crate) async fn change(
        &self,
        text: &str,
        transaction: Option<&[u8]>,
    ) -> Result<i64, Status> {
        self.watch(text);
        let changed = async {
            let place = self.place(transaction).await?;
            let prepared = self.understood(&place, text).await?;
            self.change_once(&place, &prepared, &[]).await
        };
        self.ended(changed.await)
    }

    /// Runs a prepared statement once for each set of values that comes: all of them are done, or
    /// none.
    pub(crate) async fn change_kept(
        &self,
        handle: &[u8],
        batches: BoxStream<'static, Result<RecordBatch, Status>>,
    ) -> Result<i64, Status> {
        let kept = self.kept(handle)?;
        let prepared = &kept.prepared;
        self.watch(prepared.text());
        let changed = async {
            let place = self.place_of(&kept).await?;
            if prepared.parameters().is_empty() {
                return self.change_once(&place, prepared, &[]).await;
            }
            let rows = self.while_let_in(batches).map_ok(|batch| {
                let rows = 0..batch.num_rows();
                futures::stream::iter(rows.map(move |row| values(&batch, row)))
            });
            self.change_rows(&place, prepared, rows.try_flatten().boxed())
                .await
        };
        self.ended(changed.await)
    }

    async fn change_once(
        &self,
        place: &Place,
        prepared: &Prepared,
        values: &[orrery_sql::ScalarValue],
    ) -> Result<i64, Status> {
        let (session, counted) = self.enter(place.session())?;
        self.change_row(&session, &counted.terms, prepared, values)
            .await
    }

    /// Runs a counted change with these values.
    async fn change_row(
        &self,
        session: &Session,
        terms: &Terms,
        prepared: &Prepared,
        values: &[orrery_sql::ScalarValue],
    ) -> Result<i64, Status> {
        let time = self.turn(session, terms).await?;
        let run = self.within(session, &time.bounds, session.run(prepared, values));
        match run.await? {
            orrery_sql::Outcome::Returned(_, tag) => Ok(count(tag)),
            outcome => match ran(outcome)? {
                Ran::Done(tag) => Ok(count(tag)),
                Ran::Rows(..) => Err(refusal(
                    Code::InvalidArgument,
                    "42809",
                    "the statement is a query, and not an update: ask for its rows",
                )),
            },
        }
    }

    async fn change_rows(
        &self,
        place: &Place,
        prepared: &Prepared,
        mut rows: BoxStream<'static, Result<Vec<orrery_sql::ScalarValue>, Status>>,
    ) -> Result<i64, Status> {
        // One statement, however many rows; while the client sends more of them, others compute.
        let (session, counted) = self.enter(place.session())?;
        // In a session of its own: a failure drops it.
        if place.is_own() {
            session.begin_block();
        }
        let mut changed = 0;
        while let Some(values) = rows.next().await {
            let values = values?;
            changed += self
                .change_row(&session, &counted.terms, prepared, &values)
                .await?;
        }
        if place.is_own() {
            self.require_still(&session).await?;
            let time = self.turn(&session, &counted.terms).await?;
            self.within(&session, &time.bounds, session.end_block(true))
                .await?;
        }
        Ok(changed)
    }

    /// Prepares a statement.
    pub(crate) async fn prepare(
        &self,
        text: &str,
        transaction: Option<&[u8]>,
    ) -> Result<Described, Status> {
        let place = self.place(transaction).await?;
        let prepared = self.understood(&place, text).await?;
        let parameters = prepared.parameters().iter().enumerate();
        let parameters = parameters.map(|(place, known)| {
            let data_type = known.clone().unwrap_or(DataType::Utf8);
            Field::new(format!("${}", place + 1), data_type, true)
        });
        let parameters = plain_schema(&Schema::new(parameters.collect::<Vec<_>>()));
        let columns = prepared.columns().map(|columns| plain_schema(columns));
        let transaction = match &place {
            Place::Own(_) => None,
            Place::Within { transaction, .. } => Some(Arc::downgrade(transaction)),
        };
        let kept = KeptStatement {
            prepared,
            transaction,
            bound: Mutex::default(),
        };
        Ok(Described {
            handle: self
                .statements
                .keep(Arc::new(kept), None, self.by().owner())?,
            columns,
            parameters: parameters.as_ref().clone(),
        })
    }

    /// Binds values to a prepared statement, in place of the previous ones.
    pub(crate) async fn bind(
        &self,
        handle: &[u8],
        mut batches: BoxStream<'static, Result<RecordBatch, Status>>,
    ) -> Result<(), Status> {
        let kept = self.kept(handle)?;
        let mut bound = Bound::default();
        while let Some(batch) = batches.next().await {
            bound.push(batch?)?;
        }
        *kept.bound.lock() = Arc::new(bound);
        Ok(())
    }

    /// Prepares a text of one statement.
    async fn understood(&self, place: &Place, text: &str) -> Result<Arc<Prepared>, Status> {
        let (session, time) = self.begin(place.session()).await?;
        let prepared = self.within(&session, &time.bounds, session.prepare_told(text, &[]));
        let prepared = prepared.await?.ok_or_else(|| {
            refused(&orrery_sql::Error::new(
                orrery_sql::SqlState::SyntaxError,
                "there is no statement",
            ))
        })?;
        refuse_control(prepared.statement(), place.is_own())?;
        Ok(Arc::new(prepared))
    }

    fn kept(&self, handle: &[u8]) -> Result<Arc<KeptStatement>, Status> {
        self.statements
            .get(handle, self.by().owner())
            .ok_or_else(|| {
                refusal(
                    Code::NotFound,
                    "26000",
                    "there is no such prepared statement: it was closed, or not used for too long",
                )
            })
    }

    async fn place_of(&self, kept: &KeptStatement) -> Result<Place, Status> {
        let Some(transaction) = &kept.transaction else {
            return self.place(None).await;
        };
        self.require_serving()?;
        let over = || {
            refusal(
                Code::FailedPrecondition,
                "25P01",
                "the transaction in which the statement was prepared is over; prepare it anew",
            )
        };
        let transaction = transaction.upgrade().ok_or_else(over)?;
        let turn = transaction.enter().await.map_err(|_| over())?;
        Ok(self.within_transaction(transaction, turn).await)
    }
}

/// The rows of a query for all sets of values but the first, one after the other.
fn further(session: &orrery_sql::Session, prepared: &Arc<Prepared>, bound: &Arc<Bound>) -> Batches {
    let rows = 1..bound.rows();
    let (session, prepared, bound) = (session.clone(), Arc::clone(prepared), Arc::clone(bound));
    let runs = futures::stream::iter(rows.map(Ok::<usize, Status>)).and_then(move |row| {
        let (session, prepared, bound) =
            (session.clone(), Arc::clone(&prepared), Arc::clone(&bound));
        async move {
            let values = bound.values(row)?;
            let outcome = session.run(&prepared, &values).await;
            match ran(outcome.map_err(|error| refused(&error))?)? {
                Ran::Rows(_, rows) => Ok(rows),
                Ran::Done(_) => Ok(futures::stream::empty().boxed()),
            }
        }
    });
    runs.try_flatten().boxed()
}
