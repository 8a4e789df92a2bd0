//! Begins and ends transactions.

use std::sync::Arc;

use bytes::Bytes;
use tonic::Status;

use crate::calls::call::Call;
use crate::calls::open_transaction::{OpenTransaction, over};
use crate::handles::ConnectionId;

impl Call {
    /// Begins a transaction.
    pub(crate) fn begin_transaction(
        &self,
        connection: Option<ConnectionId>,
    ) -> Result<Bytes, Status> {
        self.require_serving()?;
        let mut session = self.session();
        // Each statement chooses the snapshot for its rights; none is held between statements.
        session.set_ruled(None);
        let transaction = OpenTransaction::begin(session);
        let owner = self.by().owner();
        self.transactions
            .keep(Arc::new(transaction), connection, owner)
    }

    pub(crate) fn transaction(&self, handle: &[u8]) -> Result<Arc<OpenTransaction>, Status> {
        let owner = self.by().owner();
        self.transactions.get(handle, owner).ok_or_else(over)
    }

    /// Ends a transaction. Rows not fetched yet stay those of the snapshot that they were asked in.
    pub(crate) async fn end_transaction(&self, handle: &[u8], commits: bool) -> Result<(), Status> {
        let transaction = self.transaction(handle)?;
        let _guard = transaction.enter().await?;
        // A caller who may not begin a statement now may retry.
        let (session, time) = self.begin(&transaction.session).await?;
        transaction.note_end();
        self.transactions.remove(handle, self.by().owner());
        let end = session.end_block(commits);
        self.within(&session, &time.bounds, end).await.map(drop)
    }
}
