//! Where statements run, and what they come to: a database here, or a server.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use orrery_sql::{Error, Outcome, Session, Statement, Tag, TransactionStatus};

use super::server::Server;
use crate::failure::Failure;

/// Who runs statements.
pub(super) enum Target {
    Session(Box<Session>),
    Server(Server),
}

/// What one statement came to.
pub(super) struct Answer {
    pub(super) rows: Option<Rows>,
    /// What was done; none where the rows say it.
    pub(super) tag: Option<String>,
}

/// Rows as they come.
pub(super) struct Rows {
    pub(super) schema: SchemaRef,
    pub(super) batches: BoxStream<'static, Result<RecordBatch, Failure>>,
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

impl Answer {
    fn of(rows: orrery_sql::Rows, tag: Option<Tag>) -> Self {
        let schema = rows.schema();
        let batches = rows.map(|batch| Ok(batch.map_err(|error| Error::of_run(&error))?));
        Self {
            rows: Some(Rows {
                schema,
                batches: batches.boxed(),
            }),
            tag: tag.map(|tag| tag.to_string()),
        }
    }
}
