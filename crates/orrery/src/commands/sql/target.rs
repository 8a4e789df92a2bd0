//! Where statements run: on a database here, or a server.

use orrery_sql::{Outcome, Session, Statement, TransactionStatus};

use super::answer::Answer;
use super::server::Server;
use crate::failure::Failure;

/// Who runs statements.
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

    /// Whether a transaction is open.
    pub(super) fn transaction_status(&self) -> TransactionStatus {
        match self {
            Self::Session(session) => session.transaction_status(),
            Self::Server(_) => TransactionStatus::Idle,
        }
    }
}

/// Runs a statement here.
pub(super) async fn execute(session: &Session, statement: &Statement) -> Result<Answer, Failure> {
    Ok(match session.execute(statement).await? {
        Outcome::Query(rows) => Answer::of(rows, None),
        Outcome::Returned(rows, tag) => Answer::of(rows, Some(tag)),
        Outcome::Done(tag) => Answer {
            rows: None,
            tag: Some(tag.to_string()),
        },
    })
}
