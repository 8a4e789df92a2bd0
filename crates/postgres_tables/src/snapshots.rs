//! One snapshot per server for all scans of a statement.
//!
//! Where a statement reads one table once, the source's own statement is of one state. Where it
//! reads more of one server, a connection begins a transaction (`REPEATABLE READ`, read only) and
//! exports its snapshot, and each scan begins with that snapshot. The connection is held until
//! nothing of the statement is left.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::access::ForeignAccess;
use crate::address::Server;
use crate::error::{Error, Result};
use crate::lease::Lease;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// What the scans of one statement share.
#[derive(Default)]
pub struct StatementSnapshots {
    by_server: Mutex<HashMap<Arc<Server>, Arc<Snapshot>>>,
}

#[derive(Default)]
pub(crate) struct Snapshot {
    scans: AtomicUsize,
    exported: OnceCell<(Lease, String)>,
}

impl StatementSnapshots {
    /// What the scans of a server share; one more is planned.
    pub(crate) fn planned(&self, server: &Arc<Server>) -> Arc<Snapshot> {
        let mut snapshots = self.by_server.lock();
        let snapshot = snapshots.entry(Arc::clone(server)).or_default();
        snapshot.scans.fetch_add(1, Ordering::Relaxed);
        Arc::clone(snapshot)
    }
}

impl Snapshot {
    /// What a connection begins with to see the state that the others see; nothing where there are
    /// no others.
    pub(crate) async fn begin(
        &self,
        access: &ForeignAccess,
        server: &Arc<Server>,
        table: &str,
    ) -> Result<Option<String>> {
        if self.scans.load(Ordering::Relaxed) < 2 {
            return Ok(None);
        }
        let export = || async {
            let name = server.to_string();
            let failed = |error: tokio_postgres::Error| Error::of_read(&error, table, &name);
            loop {
                let lease = access.lease(server).await?;
                let client = lease.client()?;
                match client.batch_execute(BEGIN).await {
                    Err(error) if lease.was_ended(&error) => continue,
                    begun => begun.map_err(failed)?,
                }
                let exported = client.query_one("SELECT pg_export_snapshot()", &[]).await;
                let id = exported.and_then(|row| row.try_get::<_, String>(0));
                let id = id.map_err(failed)?;
                return Ok((lease, id));
            }
        };
        let (_, id) = self.exported.get_or_try_init(export).await?;
        let id = crate::literal::quoted_text(id);
        Ok(Some(format!("{BEGIN}; SET TRANSACTION SNAPSHOT {id}")))
    }
}
