//! The lease of a connection, whose statement is cancelled where reading stops early.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::Client;

use crate::access::{ForeignAccess, Shared};
use crate::address::Server;
use crate::connection::{Connection, connect};
use crate::error::{Error, Result};
use crate::pool::Pool;

/// A statement that nobody waits for is asked to stop, and its connection is cut after so long.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// A connection lent to one who reads. Dropped while a statement runs it stops that; only
/// [`Lease::give_back`] keeps it for others.
pub(crate) struct Lease {
    connection: Option<Connection>,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    /// Whether it was used before: the server may have ended it meanwhile.
    is_old: bool,
    /// Whether a statement may be running.
    pub(crate) is_busy: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl ForeignAccess {
    /// A connection that was kept, or a new one.
    pub(crate) async fn lease(&self, server: &Arc<Server>) -> Result<Lease> {
        let shared = self.shared(server)?;
        let failed = |words: String| Error::Connect {
            server: server.to_string(),
            words,
        };
        let pool = shared.pools.lock().of(server);
        let (rights, of) = (Arc::clone(&shared.rights), Arc::clone(server));
        let (from, limit) = (Arc::clone(&pool), server.connect_timeout);
        let threads = shared.threads().map_err(failed)?;
        // There, for where the query runs there may be neither sockets nor a clock.
        let connecting = threads.spawn(async move {
            let connecting = async {
                let permit = from.permit(limit).await;
                let permit = permit.map_err(|words| Error::Connect {
                    server: of.to_string(),
                    words,
                })?;
                let kept = from.take();
                let is_old = kept.is_some();
                let connection = match kept {
                    Some(connection) => connection,
                    None => connect(&rights, &of).await?,
                };
                Ok::<_, Error>((connection, is_old, permit))
            };
            match tokio::time::timeout(limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(Error::Connect {
                    server: of.to_string(),
                    words: format!("no answer within {} s", limit.as_secs()),
                }),
            }
        });
        let connected = connecting
            .await
            .map_err(|error| failed(error.to_string()))?;
        let (connection, is_old, permit) = connected?;
        Ok(Lease {
            connection: Some(connection),
            shared: Arc::clone(shared),
            pool,
            is_old,
            is_busy: false,
            permit: Some(permit),
        })
    }
}

impl Lease {
    /// The connection; an error only after it was given back.
    pub(crate) fn client(&self) -> Result<&Client> {
        let connection = self.connection.as_ref().ok_or_else(|| {
            Error::Invalid("a connection was used after it was given back".to_owned())
        })?;
        Ok(&connection.client)
    }

    /// Whether an error says that the server had ended a kept connection: the statement has not
    /// run, and may be tried with another one.
    pub(crate) fn was_ended(&self, error: &tokio_postgres::Error) -> bool {
        let code = error.code().map(tokio_postgres::error::SqlState::code);
        let is_shutdown = code.is_some_and(|code| code.starts_with("57P0"));
        self.is_old && (error.is_closed() || is_shutdown)
    }

    /// Keeps the connection for others, if it is as it was lent.
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take()
            && !self.is_busy
        {
            Pool::keep(&self.pool, connection, self.shared.threads().ok());
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let (is_busy, permit) = (self.is_busy, self.permit.take());
        if !is_busy || connection.client.is_closed() {
            return;
        }
        if let Ok(threads) = self.shared.threads() {
            threads.spawn(async move {
                let cancelling = connection.client.cancel_token();
                let tls = connection.tls.clone();
                let stop = async {
                    if let Err(error) = cancelling.cancel_query(tls).await {
                        tracing::debug!("a statement could not be cancelled: {error}");
                    }
                };
                _ = tokio::time::timeout(CANCEL_TIME, stop).await;
                let Connection { client, task, .. } = connection;
                // Ends the connection once what the server still sends is read.
                drop(client);
                tokio::time::sleep(CANCEL_TIME).await;
                task.abort();
                drop(permit);
            });
        }
    }
}
