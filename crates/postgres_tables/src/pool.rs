//! The connection pool: a few idle connections per server, for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::address::Server;
use crate::connection::Connection;

/// Connections to one server at the same time.
const CONNECTIONS_MAX: usize = 16;
/// Of those, kept while nobody reads.
const IDLE_MAX: usize = 4;
/// How long they are kept.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Servers that are remembered; beyond, those to which there is no connection are forgotten.
const SERVERS_MAX: usize = 64;

/// The pools of all servers.
#[derive(Default)]
pub(crate) struct Pools {
    by_server: HashMap<Arc<Server>, Arc<Pool>>,
}

/// Connections to one server.
pub(crate) struct Pool {
    idle: Mutex<Vec<(Connection, Instant)>>,
    permits: Arc<Semaphore>,
}

impl Pools {
    /// That of a server.
    pub(crate) fn of(&mut self, server: &Arc<Server>) -> Arc<Pool> {
        if let Some(pool) = self.by_server.get(server) {
            return Arc::clone(pool);
        }
        if self.by_server.len() >= SERVERS_MAX {
            self.by_server
                .retain(|_, pool| Arc::strong_count(pool) > 1 || !pool.idle.lock().is_empty());
        }
        let pool = Arc::new(Pool {
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        });
        self.by_server.insert(Arc::clone(server), Arc::clone(&pool));
        pool
    }
}

impl Pool {
    /// The right to one more connection. Nobody waits long: who waits may hold what the others wait
    /// for.
    pub(crate) async fn permit(&self, limit: Duration) -> Result<OwnedSemaphorePermit, String> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        match tokio::time::timeout(limit, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("all {CONNECTIONS_MAX} connections are in use")),
        }
    }

    /// The connection that was used last, if one lives.
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some((connection, since)) = idle.pop() {
            if !connection.client.is_closed() && since.elapsed() < IDLE_TIME {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for a while.
    pub(crate) fn keep(pool: &Arc<Self>, connection: Connection, threads: Option<&Handle>) {
        if connection.client.is_closed() {
            return;
        }
        let mut idle = pool.idle.lock();
        if idle.len() >= IDLE_MAX {
            return;
        }
        idle.push((connection, Instant::now()));
        drop(idle);
        let kept = Arc::downgrade(pool);
        if let Some(threads) = threads {
            threads.spawn(async move {
                tokio::time::sleep(IDLE_TIME).await;
                if let Some(pool) = kept.upgrade() {
                    let is_young = |(_, since): &(Connection, Instant)| since.elapsed() < IDLE_TIME;
                    pool.idle.lock().retain(is_young);
                }
            });
        }
    }
}
