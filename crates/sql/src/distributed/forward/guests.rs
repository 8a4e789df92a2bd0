//! The service for forwarded statements in the writing process.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::ForwardAnswer;
use super::guest::{Answers, Guest, KnowGuest, tell};
use super::messages::{Ask, Told, Within, from_bytes, to_bytes};
use crate::session::client::Session;
use crate::{Error, Result, SqlState};

/// Messages that wait until the network takes them.
const AHEAD: usize = 2;
/// Transactions that may be open.
const OPEN_MAX: usize = 1_000;

/// The transactions of clients of other processes.
pub struct Guests {
    /// What their sessions are made of. It writes, where this process does.
    sessions: Session,
    know: KnowGuest,
    threads: Handle,
    open: Mutex<HashMap<u64, Arc<Guest>>>,
    begun: AtomicU64,
    stopped: watch::Sender<bool>,
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guests")
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

/// Ends a task with the answer that it makes.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Ends a transaction that nobody wants any more.
struct Wanted {
    guests: Arc<Guests>,
    session: u64,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.guests.open.lock().remove(&self.session);
    }
}

impl Guests {
    /// The guests from processes that serve the same database.
    ///
    /// Their sessions are copies of `sessions`. `know` finds their users and admits their
    /// statements, which compute on `threads`, where tokio runs.
    pub fn new(sessions: Session, know: KnowGuest, threads: Handle) -> Arc<Self> {
        Arc::new(Self {
            sessions,
            know,
            threads,
            open: Mutex::default(),
            begun: AtomicU64::default(),
            stopped: watch::Sender::new(false),
        })
    }

    /// Transactions that were begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The number of open guest transactions.
    pub fn open(&self) -> u64 {
        self.open.lock().len() as u64
    }

    /// Ends what is open, but for commits that have begun, and begins nothing more.
    pub fn stop(&self) {
        self.stopped.send_replace(true);
        self.open.lock().clear();
    }

    /// Answers a request. Its work is done on the threads of statements, and ends with the answer,
    /// but for a commit that has begun.
    pub fn answer(self: &Arc<Self>, request: Bytes) -> ForwardAnswer {
        let (answers, receiver) = mpsc::channel(AHEAD);
        let guests = Arc::clone(self);
        let task = self.threads.spawn(async move {
            let Err(error) = guests.answered(request, &answers).await else {
                return;
            };
            let failed = to_bytes(&Told::Failed(error), &[]);
            // Who has gone does not want to know.
            _ = answers
                .send(failed.map_err(|error| error.to_string()))
                .await;
        });
        let task = Task(task.abort_handle());
        futures::stream::unfold((receiver, task), |(mut receiver, task)| async move {
            Some((receiver.recv().await?, (receiver, task)))
        })
        .boxed()
    }

    async fn answered(self: &Arc<Self>, request: Bytes, answers: &Answers) -> Result<()> {
        let (ask, behind) = from_bytes(request)?;
        match ask {
            Ask::Open(opening) => {
                let mut stopped = self.stopped.subscribe();
                if *stopped.borrow() || !self.sessions.has_writer() {
                    return tell(answers, &Told::NotHere, &[]).await;
                }
                let guest = Guest::new(&self.sessions, &self.know, opening)?;
                let wanted = self.keep(guest)?;
                tell(answers, &Told::Opened(wanted.session), &[]).await?;
                // Until the answer is dropped, or this process stops.
                tokio::select! {
                    () = answers.closed() => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
                drop(wanted);
                Ok(())
            }
            Ask::Run(asked) => {
                let guest = self.guest(&asked.within)?;
                guest.run(asked, &behind, answers).await
            }
            Ask::Prepare(asked) => {
                let guest = self.guest(&asked.within)?;
                guest.prepare(asked, &behind, answers).await
            }
            Ask::Insert {
                within,
                settings,
                schema,
                table,
                columns,
            } => {
                let into = (schema, table, columns);
                self.guest(&within)?.insert(settings, into, answers).await
            }
            Ask::Piece(within) => self.guest(&within)?.take(behind, answers).await,
            Ask::Finish { within, failed } => self.guest(&within)?.finish(failed, answers).await,
            Ask::Commit(within) => self.guest(&within)?.commit(answers).await,
        }
    }

    fn keep(self: &Arc<Self>, guest: Guest) -> Result<Wanted> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            return Err(Error::new(
                SqlState::TooManyConnections,
                format!("{OPEN_MAX} transactions of clients of other processes are open"),
            ));
        }
        // Not counted: a process that has begun anew would give a number a second time, and who had
        // it first would ask in another's transaction.
        let mut session = rand::random();
        while open.contains_key(&session) {
            session = rand::random();
        }
        open.insert(session, Arc::new(guest));
        Ok(Wanted {
            guests: Arc::clone(self),
            session,
        })
    }

    fn guest(&self, within: &Within) -> Result<Arc<Guest>> {
        let open = self.open.lock();
        let guest = open.get(&within.session).cloned();
        drop(open);
        // Of somebody else's it is not told that it is there.
        let guest = guest.filter(|guest| guest.is_of(within.passport.as_deref()));
        // Of a process that writes no more, none is open.
        let guest = guest.filter(|_| self.sessions.has_writer());
        guest.ok_or_else(|| {
            Error::new(
                SqlState::SerializationFailure,
                "the transaction has ended where the database is written",
            )
            .with_hint("The transaction might succeed if retried.")
        })
    }
}
