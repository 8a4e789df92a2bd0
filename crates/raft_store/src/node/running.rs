//! A node without sockets, shared by HTTP and simulations.

use std::collections::BTreeMap;
use std::sync::Arc;

use openraft::BasicNode;
use openraft::error::{InitializeError, RaftError};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::node::core::{Core, Ground, Pace};
use crate::node::propose::Proposer;
use crate::node::read::Reader;
use crate::node::service::Service;
use crate::node::tend;
use crate::node::write::Writer;
use crate::store::QuorumStore;
use crate::types::NodeId;

/// A node's parts and tasks.
pub(crate) struct Running {
    pub core: Arc<Core>,
    pub service: Service,
    reader: Reader,
    writer: Writer,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// Starts the parts over what a directory has. The first members make a cluster if it belongs
    /// to none.
    pub(crate) async fn start(
        id: NodeId,
        ground: Ground,
        pace: Pace,
        members: BTreeMap<NodeId, String>,
    ) -> Result<Self> {
        let core = Core::start(id, ground, pace).await?;
        if !members.is_empty() {
            let members: BTreeMap<NodeId, BasicNode> = members
                .into_iter()
                .map(|(id, address)| (id, BasicNode::new(address)))
                .collect();
            match core.raft.initialize(members).await {
                Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => {}
                Err(error) => {
                    return Err(Error::Configuration(format!(
                        "the cluster cannot begin: {error}"
                    )));
                }
            }
        }
        let mut tasks = tend::start(&core);
        let (proposer, task) = Proposer::start(core.clone());
        tasks.push(task);
        let (reader, task) = Reader::start(core.clone());
        tasks.push(task);
        let (writer, task) = Writer::start(core.clone(), proposer.clone());
        tasks.push(task);
        let service = Service {
            core: core.clone(),
            proposer,
        };
        Ok(Self {
            core,
            service,
            reader,
            writer,
            tasks: Mutex::new(tasks),
        })
    }

    /// The objects, as seen from this node.
    pub(crate) fn store(&self) -> QuorumStore {
        QuorumStore::new(self.core.clone(), self.reader.clone(), self.writer.clone())
    }

    /// Waits until this node's state has all that was written before.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        self.reader.catch_up().await
    }

    /// Stops the parts.
    pub(crate) async fn stop(&self) {
        if let Err(error) = self.core.raft.shutdown().await {
            tracing::error!(%error, "the node did not stop as it should");
        }
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
    }
}
