//! The target of SQL statements: a local session, or a server.

use std::io::Read as _;
use std::path::Path;

use orrery_sql::{CopyIn, Outcome, Session, Statement, Tag, TransactionStatus};

use super::answer::Answer;
use super::server::Server;
use crate::failure::Failure;

/// A local session, or a server.
pub(super) enum Target {
    Session(Box<Session>),
    Server(Server),
}

impl Target {
    /// Runs one statement, given as a text.
    pub(super) async fn execute(&self, text: &str) -> Result<Answer, Failure> {
        match self {
            Self::Server(server) => server.execute(text).await,
            Self::Session(session) => {
                let mut statements = session.statements(text)?.into_iter();
                match (statements.next(), statements.next()) {
                    (Some(statement), None) => execute(session, &statement).await,
                    _ => Err(Failure::Other("that is not one statement".to_owned())),
                }
            }
        }
    }

    /// The message for a statement stopped by Ctrl-C.
    pub(super) fn stopped(&self) -> &'static str {
        match self {
            Self::Session(_) => {
                "ERROR 57014: the statement was canceled; what it was committing already is made"
            }
            Self::Server(_) => {
                "ERROR 57014: the statement is not waited for; what the server was committing already is made"
            }
        }
    }

    /// The status of the session's transaction; a server has none.
    pub(super) fn transaction_status(&self) -> TransactionStatus {
        match self {
            Self::Session(session) => session.transaction_status(),
            Self::Server(_) => TransactionStatus::Idle,
        }
    }
}

/// Runs a statement in a local session.
pub(super) async fn execute(session: &Session, statement: &Statement) -> Result<Answer, Failure> {
    Ok(match session.execute(statement).await? {
        Outcome::Query(rows) => Answer::of(rows, None),
        Outcome::Returned(rows, tag) => Answer::of(rows, Some(tag)),
        Outcome::Done(tag) => Answer::done(tag),
        Outcome::CopyIn(copy) => Answer::done(copy_in(copy).await?),
        Outcome::CopyOut(copy) => Answer {
            copy: Some(copy),
            rows: None,
            tag: None,
        },
    })
}

/// Feeds a statement from standard input.
async fn copy_in(mut copy: CopyIn) -> Result<Tag, Failure> {
    /// Bytes per read.
    const CHUNK_BYTES: usize = 256 * 1024;
    loop {
        let read = tokio::task::spawn_blocking(|| {
            let mut chunk = vec![0; CHUNK_BYTES];
            let bytes = std::io::stdin().read(&mut chunk)?;
            chunk.truncate(bytes);
            Ok::<_, std::io::Error>(chunk)
        });
        let chunk = read.await.map_err(std::io::Error::other);
        match chunk.and_then(|chunk| chunk) {
            Ok(chunk) if chunk.is_empty() => return Ok(copy.finish().await?),
            Ok(chunk) => copy.send(chunk.into()).await?,
            Err(error) => {
                let failure = Failure::file(Path::new("standard input"), error);
                copy.fail("standard input cannot be read").await;
                return Err(failure);
            }
        }
    }
}
