//! Savepoints of transactions.
//!
//! Their handle is the transaction's, followed by the name; a later savepoint of the same name
//! hides the earlier, as in SQL.

use bytes::Bytes;
use tonic::{Code, Status};

use crate::calls::call::Call;
use crate::refusal::{malformed, refusal, refused};

/// Bytes of a transaction's handle.
const TRANSACTION_BYTES: usize = 16;

/// The two ways to end a savepoint.
pub(crate) enum End {
    Release,
    RollBack,
}

impl Call {
    /// Sets a savepoint.
    pub(crate) async fn set_savepoint(
        &self,
        transaction: &[u8],
        name: &str,
    ) -> Result<Bytes, Status> {
        self.run_savepoint(transaction, &format!("SAVEPOINT {}", quoted(name)?))
            .await?;
        let mut handle = transaction.to_vec();
        handle.extend(name.as_bytes());
        Ok(handle.into())
    }

    /// Releases a savepoint, or rolls back to it.
    pub(crate) async fn end_savepoint(&self, savepoint: &[u8], end: End) -> Result<(), Status> {
        let parts = savepoint.split_at_checked(TRANSACTION_BYTES);
        let parts = parts
            .and_then(|(transaction, name)| Some((transaction, std::str::from_utf8(name).ok()?)));
        let (transaction, name) =
            parts.ok_or_else(|| refusal(Code::NotFound, "3B001", "there is no such savepoint"))?;
        let name = quoted(name)?;
        let text = match end {
            End::Release => format!("RELEASE SAVEPOINT {name}"),
            End::RollBack => format!("ROLLBACK TO SAVEPOINT {name}"),
        };
        self.run_savepoint(transaction, &text).await
    }

    async fn run_savepoint(&self, transaction: &[u8], text: &str) -> Result<(), Status> {
        if transaction.is_empty() {
            return Err(malformed("a savepoint needs its transaction"));
        }
        let place = self.place(Some(transaction)).await?;
        let (session, time) = self.begin(place.session()).await?;
        let run = async {
            for statement in session.statements(text)? {
                session.execute(&statement).await?;
            }
            Ok(())
        };
        self.within(&session, &time.bounds, run).await
    }
}

/// Quotes a name for SQL.
pub(crate) fn quoted(name: &str) -> Result<String, Status> {
    match name.contains('\0') {
        true => Err(refused(&orrery_sql::Error::new(
            orrery_sql::SqlState::CharacterNotInRepertoire,
            "a name cannot contain the character 0",
        ))),
        false => Ok(format!("\"{}\"", name.replace('"', "\"\""))),
    }
}
