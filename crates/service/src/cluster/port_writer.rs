//! The writer, as sessions of PostgreSQL and Flight SQL see it: in a cluster, statements that
//! change data are forwarded to the writing node.
//!
//! Over HTTP the request itself is forwarded (`orrery_http`); here a client has a session, and its
//! statements go by the nodes' own calls ([`orrery_sql::Guests`]).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use orrery_distributed::Network;
use orrery_sql::{ForwardAnswer, ForwardCalls, WriterPlace};
use orrery_storage::{Database, Writer};

use crate::cluster::nodes::{Cluster, Work};
use crate::writes::freshness::Freshness;
use crate::writes::seat::Seat;

/// How long an answer waits until its commit has reached this node.
const OWN_COMMIT_WAIT: Duration = Duration::from_secs(2);

/// The writer role and the calls to the node that holds it.
pub struct PortWriter {
    seat: Arc<Seat>,
    calls: Option<Arc<NodeCalls>>,
}

impl fmt::Debug for PortWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortWriter")
            .field("seat", &self.seat)
            .finish_non_exhaustive()
    }
}

/// Calls between nodes about forwarded statements.
struct NodeCalls {
    cluster: Arc<dyn Cluster>,
    network: Arc<dyn Network>,
    freshness: Freshness,
}

impl PortWriter {
    /// Creates the writer of a port; without a cluster it forwards nothing.
    pub fn new(
        seat: &Arc<Seat>,
        cluster: Option<&Arc<dyn Cluster>>,
        database: &Arc<Database>,
    ) -> Self {
        Self {
            seat: Arc::clone(seat),
            calls: cluster.map(|cluster| {
                Arc::new(NodeCalls {
                    network: cluster.network(Work::Statements),
                    cluster: Arc::clone(cluster),
                    freshness: Freshness::new(database),
                })
            }),
        }
    }
}

impl WriterPlace for PortWriter {
    fn writer(&self) -> Option<Writer> {
        self.seat.writer()
    }

    fn is_here(&self) -> bool {
        WriterPlace::is_here(&*self.seat)
    }

    fn address(&self) -> Option<String> {
        self.seat.address()
    }

    fn calls(&self) -> Option<Arc<dyn ForwardCalls>> {
        let calls = self.calls.as_ref()?;
        Some(Arc::clone(calls) as Arc<dyn ForwardCalls>)
    }
}

impl ForwardCalls for NodeCalls {
    fn writer(&self) -> Option<String> {
        self.cluster.leader()
    }

    fn call(
        &self,
        process: &str,
        request: Bytes,
    ) -> BoxFuture<'static, Result<ForwardAnswer, String>> {
        let called = self.network.call(process, request);
        async move {
            let answer = called.await.map_err(|error| error.to_string())?;
            Ok(answer.map_err(|error| error.to_string()).boxed())
        }
        .boxed()
    }

    fn wait_for(&self, commit: u64) -> BoxFuture<'_, ()> {
        async move {
            // The change is made even if its commit does not reach this node in time.
            let here = self.freshness.wait_for(commit);
            let _ignored = tokio::time::timeout(OWN_COMMIT_WAIT, here).await;
        }
        .boxed()
    }
}
