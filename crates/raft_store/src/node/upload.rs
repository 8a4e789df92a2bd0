//! Uploads of large objects: pieces go to all voters' disks, then the put is proposed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::messages::{FileFinish, FilePiece};
use crate::node::core::Core;
use crate::transport::paths;
use crate::types::{File, NodeId};

/// How long the others are waited for when a majority has a piece. Who takes longer fetches the
/// file later.
const GRACE: Duration = Duration::from_secs(1);
/// How long one piece may take.
const PIECE_TIME: Duration = Duration::from_secs(20);

/// A file on its way to the nodes; clones are the same.
#[derive(Clone)]
pub(crate) struct Upload {
    core: Arc<Core>,
    id: String,
    voters: usize,
    /// Nodes that have all pieces so far.
    nodes: Arc<Mutex<BTreeSet<NodeId>>>,
}

impl Upload {
    /// Begins a file, on all nodes that vote now.
    pub(crate) fn start(core: Arc<Core>) -> Result<Self> {
        let id = format!("{:x}-{:032x}", core.id, (core.ground.unique)()?);
        let voters = core.voters();
        Ok(Self {
            core,
            id,
            voters: voters.len(),
            nodes: Arc::new(Mutex::new(voters)),
        })
    }

    /// Sends a piece. Pieces may come in any order, and side by side.
    pub(crate) async fn piece(&self, offset: u64, data: Bytes) -> Result<()> {
        let send = |node| {
            let (core, id, data) = (self.core.clone(), self.id.clone(), data.clone());
            let sent: BoxFuture<'static, Result<()>> = Box::pin(async move {
                if node == core.id {
                    return core.files.write(&id, offset, data).await;
                }
                core.ask(
                    node,
                    paths::FILE_WRITE,
                    &FilePiece { id, offset, data },
                    PIECE_TIME,
                )
                .await
            });
            sent
        };
        self.on_all(send).await
    }

    /// Says that all pieces were sent, and gives the file as a majority has it.
    pub(crate) async fn finish(&self, bytes: u64, crc: u32) -> Result<File> {
        let send = |node| {
            let (core, id) = (self.core.clone(), self.id.clone());
            let sent: BoxFuture<'static, Result<()>> = Box::pin(async move {
                if node == core.id {
                    return core.files.finish(&id, bytes, crc).await;
                }
                core.ask(
                    node,
                    paths::FILE_FINISH,
                    &FileFinish { id, bytes, crc },
                    core.pace.request,
                )
                .await
            });
            sent
        };
        self.on_all(send).await?;
        Ok(File {
            id: self.id.clone(),
            bytes,
            crc,
            copies: self.nodes.lock().clone(),
        })
    }

    /// Does something on all nodes that have the pieces so far, twice where it fails, and goes on
    /// with those where it worked.
    async fn on_all(&self, send: impl Fn(NodeId) -> BoxFuture<'static, Result<()>>) -> Result<()> {
        let nodes = self.nodes.lock().clone();
        let mut running: FuturesUnordered<_> = nodes
            .iter()
            .map(|&node| {
                let (first, second) = (send(node), send(node));
                async move {
                    match first.await {
                        Ok(()) => (node, Ok(())),
                        Err(_) => (node, second.await),
                    }
                }
            })
            .collect();
        let mut done = BTreeSet::new();
        let mut detail = "the others are not reached".to_owned();
        loop {
            let patience = if done.len() * 2 > self.voters {
                GRACE
            } else {
                self.core.pace.request
            };
            match timeout(patience, running.next()).await {
                Ok(Some((node, Ok(())))) => _ = done.insert(node),
                Ok(Some((node, Err(error)))) => detail = format!("node {node}: {error}"),
                Ok(None) => break,
                Err(_) => {
                    detail = "the others do not answer in time".to_owned();
                    break;
                }
            }
        }
        let mut nodes = self.nodes.lock();
        nodes.retain(|node| done.contains(node));
        if nodes.len() * 2 > self.voters {
            return Ok(());
        }
        Err(Error::TooFewCopies {
            copies: nodes.len(),
            nodes: self.voters,
            detail,
        })
    }
}
