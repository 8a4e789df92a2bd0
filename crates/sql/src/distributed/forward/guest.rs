//! A guest transaction: one of another process's client, in the writing process.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use super::incoming::{Batches, Incoming};
use super::messages::{
    Asked, Opening, SettingValues, Told, damaged, pieces_of, schema_to_bytes, to_bytes,
    values_from_bytes, values_to_bytes,
};
use crate::answers::outcome::{Outcome, Rows};
use crate::parse::statement::{Statement, parse, prepared_in};
use crate::session::client::Session;
use crate::session::place::{Spent, Turn, spent};
use crate::settings::Scope;
use crate::{Error, Result, SqlState};

/// Where answers go. Nobody reads them any more if that fails.
pub(super) type Answers = mpsc::Sender<Result<Bytes, String>>;

/// See the module.
pub(super) struct Guest {
    session: Session,
    user: GuestUser,
    /// What the user of the opening is known by, where all messages have to say so.
    passport: Option<Option<String>>,
    /// The statement that takes pieces, and what it holds.
    incoming: Mutex<Option<(Incoming, GuestHeld)>>,
}

/// What a statement of a guest holds while it runs.
pub struct GuestHeld {
    /// Its turn, with whatever counts it.
    pub turn: Turn,
    /// Why it has to end, when it costs more than there is.
    pub spent: Option<Spent>,
}

impl fmt::Debug for GuestHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestHeld").finish_non_exhaustive()
    }
}

/// Lets a statement begin: holds its session to what the user may do now, and waits for its turn.
pub type BeginGuest =
    Box<dyn Fn(Session) -> BoxFuture<'static, Result<(Session, GuestHeld)>> + Send + Sync>;

/// Finds the user that a passport is of; none of whoever came in where the database has no users.
pub type KnowGuest = Arc<dyn Fn(Option<&str>) -> Result<GuestUser> + Send + Sync>;

/// A client of another process, as this one knows it.
pub struct GuestUser {
    /// Lets its statements begin.
    pub begin: BeginGuest,
    /// Fails when it is not let in any more.
    pub require: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

impl fmt::Debug for GuestUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestUser").finish_non_exhaustive()
    }
}

/// Says something to who asked.
pub(super) async fn tell(answers: &Answers, told: &Told, behind: &[u8]) -> Result<()> {
    let message = to_bytes(told, behind)?;
    let gone = |_| Error::new(SqlState::QueryCanceled, "nobody waits for the answer");
    answers.send(Ok(message)).await.map_err(gone)
}

impl Guest {
    /// Begins a transaction.
    ///
    /// # Errors
    /// When whoever asks for it is not known here.
    pub(super) fn new(sessions: &Session, know: &KnowGuest, opening: Opening) -> Result<Self> {
        let user = know(opening.passport.as_deref())?;
        let session = sessions.another_of(&opening.user, opening.who);
        session.begin_block();
        let mut block = session.block().lock();
        block.begin_after(opening.after, opening.savepoints);
        drop(block);
        Ok(Self {
            session,
            user,
            passport: opening.names_user.then_some(opening.passport),
            incoming: Mutex::default(),
        })
    }

    /// Whether who asks is who opened it.
    pub(super) fn is_of(&self, passport: Option<&str>) -> bool {
        let of = self.passport.as_ref();
        of.is_none_or(|of| of.as_deref() == passport)
    }

    /// A statement begins: what who asks may do now, and its turn.
    async fn begin(&self, settings: Option<SettingValues>) -> Result<(Session, GuestHeld)> {
        // What came before has ended, also where nobody said so.
        self.incoming.lock().await.take();
        self.set(settings);
        (self.user.begin)(self.session.clone()).await
    }

    fn set(&self, settings: Option<SettingValues>) {
        let mut known = self.session.settings.lock();
        for (name, value) in settings.into_iter().flatten() {
            // What an older or newer process does not know, or is not set by clients, is as it is.
            _ = known.set(&name, Some(&value), Scope::Session);
        }
    }

    /// Runs a statement.
    pub(super) async fn run(&self, asked: Asked, values: &Bytes, answers: &Answers) -> Result<()> {
        let (session, held) = self.begin(asked.settings).await?;
        let statement = statement(&asked.text, asked.place)?;
        let work = async {
            match asked.is_prepared {
                false => session.execute(&statement).await,
                true => {
                    let (types, values) = values_from_bytes(values)?;
                    let prepared = session.prepare_statement(statement, &types).await?;
                    session.run(&prepared, &values).await
                }
            }
        };
        let outcome = within(held.spent.as_ref(), work).await?;
        if let Outcome::CopyIn(copy) = outcome {
            let columns = copy.columns();
            *self.incoming.lock().await = Some((Incoming::Copy(copy), held));
            return tell(answers, &Told::CopyIn { columns }, &[]).await;
        }
        within(held.spent.as_ref(), give(outcome, answers)).await
    }

    /// Tells what a statement takes and gives.
    pub(super) async fn prepare(
        &self,
        asked: Asked,
        types: &Bytes,
        answers: &Answers,
    ) -> Result<()> {
        let (session, _held) = self.begin(asked.settings).await?;
        let statement = statement(&asked.text, asked.place)?;
        let (types, _) = values_from_bytes(types)?;
        let prepared = session.prepare_statement(statement, &types).await;
        if prepared.is_err() {
            session.fail();
        }
        let prepared = prepared?;
        let parameters = values_to_bytes(prepared.parameters(), &[])?;
        tell(answers, &Told::Parameters, &parameters).await?;
        match prepared.columns() {
            None => tell(answers, &Told::End, &[]).await,
            Some(columns) => tell(answers, &Told::Columns, &schema_to_bytes(columns)?).await,
        }
    }

    /// Begins to insert batches.
    pub(super) async fn insert(
        &self,
        settings: Option<SettingValues>,
        into: (Option<String>, String, Vec<String>),
        answers: &Answers,
    ) -> Result<()> {
        let (session, held) = self.begin(settings).await?;
        let batches = Batches::begin(session, into);
        *self.incoming.lock().await = Some((Incoming::Batches(batches), held));
        tell(answers, &Told::Taken, &[]).await
    }

    /// Takes a piece of what the client sends.
    pub(super) async fn take(&self, piece: Bytes, answers: &Answers) -> Result<()> {
        let mut incoming = self.incoming.lock().await;
        let (taking, held) = incoming.as_mut().ok_or_else(nothing_is_taken)?;
        within(held.spent.as_ref(), taking.send(piece)).await?;
        tell(answers, &Told::Taken, &[]).await
    }

    /// The client has sent everything, or has given up.
    pub(super) async fn finish(&self, failed: Option<String>, answers: &Answers) -> Result<()> {
        let incoming = self.incoming.lock().await.take();
        let (taking, held) = incoming.ok_or_else(nothing_is_taken)?;
        let tag = within(held.spent.as_ref(), taking.finish(failed)).await?;
        tell(answers, &Told::Done(tag), &[]).await
    }

    /// Commits.
    pub(super) async fn commit(&self, answers: &Answers) -> Result<()> {
        (self.user.require)()?;
        let own = self.session.end_block(true).await?;
        // One that has changed nothing has seen no more than is here now.
        let commit = own.unwrap_or_else(|| self.session.database.snapshot().commit());
        tell(answers, &Told::Committed(commit), &[]).await
    }
}

fn nothing_is_taken() -> Error {
    damaged(&"no statement takes pieces")
}

/// A statement of a text, or the one that it prepares.
fn statement(text: &str, place: usize) -> Result<Statement> {
    let mut parsed = parse(text)?;
    let parsed = parsed.remove(place);
    let parsed = parsed.ok_or_else(|| damaged(&"the text has no such statement"))?;
    let parsed = prepared_in(parsed);
    Ok(Statement {
        parsed,
        text: text.into(),
        place,
    })
}

/// Does something unless it costs more than there is.
async fn within<T>(said: Option<&Spent>, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        message = spent(said) => Err(Error::new(SqlState::ConfigurationLimitExceeded, message)),
    }
}

/// Gives what became of a statement to who asked.
async fn give(outcome: Outcome, answers: &Answers) -> Result<()> {
    match outcome {
        Outcome::Done(tag) => tell(answers, &Told::Done(tag), &[]).await,
        Outcome::Query(rows) => give_rows(&Told::Query, rows, answers).await,
        Outcome::Returned(rows, tag) => give_rows(&Told::Returned(tag), rows, answers).await,
        Outcome::CopyOut(mut copy) => {
            let columns = copy.columns();
            tell(answers, &Told::CopyOut { columns }, &[]).await?;
            while let Some(rows) = copy.next().await {
                let rows = rows?;
                let told = Told::Copied {
                    ends: rows.ends,
                    count: rows.count,
                };
                tell(answers, &told, &rows.bytes).await?;
            }
            tell(answers, &Told::End, &[]).await
        }
        Outcome::CopyIn(_) => Err(nothing_is_taken()),
    }
}

async fn give_rows(told: &Told, mut rows: Rows, answers: &Answers) -> Result<()> {
    tell(answers, told, &schema_to_bytes(&rows.schema())?).await?;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(|error| Error::of_run(&error))?;
        for piece in pieces_of(batch)? {
            tell(answers, &Told::Rows, &piece).await?;
        }
    }
    tell(answers, &Told::End, &[]).await
}
