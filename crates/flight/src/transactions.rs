//! Begin and end of transactions.

use std::sync::Arc;

use bytes::Bytes;
use tonic::Status;

use crate::handles::ConnectionId;
use crate::open_transaction::{OpenTransaction, over};
use crate::shared::Shared;

impl Shared {
    /// Begins one.
    pub(crate) fn begin_transaction(
        &self,
        connection: Option<ConnectionId>,
    ) -> Result<Bytes, Status> {
        self.require_serving()?;
        let transaction = OpenTransaction::begin(self.session());
        self.transactions.keep(Arc::new(transaction), connection)
    }

    pub(crate) fn transaction(&self, handle: &[u8]) -> Result<Arc<OpenTransaction>, Status> {
        self.transactions.get(handle).ok_or_else(over)
    }

    /// Ends one. Its rows that were not taken yet are of the state that they were asked in.
    pub(crate) async fn end_transaction(&self, handle: &[u8], commits: bool) -> Result<(), Status> {
        let transaction = self.transaction(handle)?;
        let _guard = transaction.enter().await?;
        transaction.note_end();
        self.transactions.remove(handle);
        let time = self.begin(&transaction.session).await?;
        let end = transaction.session.end_block(commits);
        self.within(&transaction.session, time.until, end).await
    }
}
