//! openraft's network over the node's transport.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use openraft::BasicNode;
use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::messages::SnapshotPart;
use crate::transport::{Transport, paths};
use crate::types::{NodeId, TypeConfig};
use crate::wire;

/// How long a node that could not be reached is left alone.
const BACKOFF: Duration = Duration::from_millis(100);

/// Makes the peers of a node.
#[derive(Clone)]
pub(crate) struct Network(pub(crate) Arc<dyn Transport>);

/// One peer.
pub(crate) struct Peer {
    node: NodeId,
    address: String,
    transport: Arc<dyn Transport>,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: NodeId, node: &BasicNode) -> Peer {
        Peer {
            node: target,
            address: node.addr.clone(),
            transport: self.0.clone(),
        }
    }
}

type Failure<E> = RPCError<NodeId, BasicNode, RaftError<NodeId, E>>;

impl Peer {
    async fn ask<Q, A, E>(
        &self,
        path: &'static str,
        request: &Q,
        option: &RPCOption,
    ) -> Result<A, Failure<E>>
    where
        Q: Serialize,
        A: DeserializeOwned,
        E: StdError + DeserializeOwned,
    {
        let body = wire::pack(request).map_err(|error| NetworkError::new(&error))?;
        let answer = self
            .transport
            .call(self.node, &self.address, path, body, option.hard_ttl())
            .await;
        let answer = answer.map_err(|error| match error {
            Error::Unreachable { .. } => Failure::Unreachable(Unreachable::new(&error)),
            error => Failure::Network(NetworkError::new(&error)),
        })?;
        let answer: Result<A, RaftError<NodeId, E>> =
            wire::unpack(&answer).map_err(|error| NetworkError::new(&error))?;
        answer.map_err(|error| RemoteError::new(self.node, error).into())
    }
}

impl RaftNetwork<TypeConfig> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<NodeId>, RPCError<NodeId, BasicNode, RaftError<NodeId>>> {
        self.ask(paths::APPEND, &request, &option).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<
        InstallSnapshotResponse<NodeId>,
        RPCError<NodeId, BasicNode, RaftError<NodeId, InstallSnapshotError>>,
    > {
        let InstallSnapshotRequest {
            vote,
            meta,
            offset,
            data,
            done,
        } = request;
        let part = SnapshotPart {
            vote,
            meta,
            offset,
            data: Bytes::from(data),
            done,
        };
        self.ask(paths::SNAPSHOT, &part, &option).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<NodeId>,
        option: RPCOption,
    ) -> Result<VoteResponse<NodeId>, RPCError<NodeId, BasicNode, RaftError<NodeId>>> {
        self.ask(paths::VOTE, &request, &option).await
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(BACKOFF))
    }
}
