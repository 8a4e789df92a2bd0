//! A node: startup from a directory, service for others, calls, membership changes.

pub(crate) mod calls;
pub(crate) mod core;
pub(crate) mod fetch;
pub(crate) mod members;
pub(crate) mod propose;
pub(crate) mod read;
pub(crate) mod running;
pub(crate) mod service;
pub(crate) mod tend;
pub(crate) mod upload;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::blocking::Blocking;
use crate::calls::{CallAnswer, CallError, CallHandler, Handlers};
use crate::disk::LocalDisk;
use crate::error::{Error, Result};
use crate::http::calls::client::Caller;
use crate::http::calls::server as call_server;
use crate::http::client::{HttpTransport, Signer};
use crate::http::server;
use crate::http::signature::{Gate, SECRET_BYTES_MIN, Secret};
use crate::messages::{Member, NodeStatus};
use crate::node::calls::Calls;
use crate::node::core::{Ground, Pace};
use crate::node::running::Running;
use crate::store::QuorumStore;
use crate::transport::paths;

/// How long requests that are being answered may take when a node stops.
const STOP_TIME: Duration = Duration::from_secs(1);

/// The start configuration of a node.
#[derive(Clone)]
pub struct NodeConfig {
    /// Its number, above 0. It belongs to the directory: a node whose directory is lost comes back
    /// under another number, as a new member.
    pub id: u64,
    /// `host:port` where others find it: a name is looked up anew for each connection, so it may
    /// get another address while the cluster runs. Without one it does not listen: for a cluster of
    /// one.
    pub address: Option<String>,
    /// `host:port` where it listens, if that is not `address`: a name may not be known yet when the
    /// node starts, or be another machine's.
    pub listen: Option<String>,
    /// Where it keeps its log, its snapshot and its files.
    pub directory: PathBuf,
    /// The cluster's secret, the same for all nodes; 16 bytes at least.
    pub secret: Vec<u8>,
    /// The first members of a new cluster, with their addresses; the same for all of them. Empty
    /// for a node that is to be added to a cluster. Not looked at once the directory belongs to a
    /// cluster.
    pub members: BTreeMap<u64, String>,
    /// Times and sizes.
    pub pace: Pace,
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            address,
            listen,
            directory,
            members,
            pace,
            secret: _,
        } = self;
        formatter
            .debug_struct("NodeConfig")
            .field("id", id)
            .field("address", address)
            .field("listen", listen)
            .field("directory", directory)
            .field("members", members)
            .field("pace", pace)
            .finish_non_exhaustive()
    }
}

/// A running node. It runs until [`Node::stop`].
pub struct Node {
    running: Running,
    calls: Calls,
    server: Mutex<Option<Server>>,
    /// Keeps other processes out of the directory.
    lock: Mutex<Option<File>>,
}

struct Server {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Node")
            .field("id", &self.running.core.id)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node. It is up before there is a leader, and before it knows what others have
    /// written meanwhile.
    pub async fn start(config: NodeConfig) -> Result<Self> {
        check(&config)?;
        let listener = match config.listen.as_ref().or(config.address.as_ref()) {
            Some(address) => {
                let listener = TcpListener::bind(address).await;
                Some(listener.map_err(|error| {
                    Error::Configuration(format!("cannot listen at {address}: {error}"))
                })?)
            }
            None => None,
        };
        let lock = LocalDisk::lock(&config.directory)?;
        let disk = Arc::new(LocalDisk::open(&config.directory)?);
        let now_us = Arc::new(|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_micros() as u64)
        });
        let random = SystemRandom::new();
        let unique = Arc::new(move || {
            let mut bytes = [0; 16];
            random
                .fill(&mut bytes)
                .map_err(|_| Error::Stopped("the system gives no random numbers".to_owned()))?;
            Ok(u128::from_le_bytes(bytes))
        });
        let secret = Secret::new(&config.secret);
        let signer = || Signer::new(secret.clone(), now_us.clone(), unique.clone());
        let transport = Arc::new(HttpTransport(signer()?));
        let caller = Caller::new(signer()?);
        let handlers = Arc::new(Handlers::new());
        let gate = Arc::new(Gate::new(secret, config.id));
        let answers = call_server::router(
            gate.clone(),
            handlers.clone(),
            now_us.clone(),
            config.pace.keep_alive,
        );
        let ground = Ground {
            disk,
            blocking: Blocking::Elsewhere,
            transport,
            now_us,
            unique,
        };
        let running = Running::start(config.id, ground, config.pace, config.members).await?;
        let server = listener.map(|listener| {
            let (stop, stopped) = oneshot::channel();
            let task = server::serve(listener, running.service.clone(), gate, answers, stopped);
            Server { stop, task }
        });
        let calls = Calls {
            core: running.core.clone(),
            address: config.address.unwrap_or_default(),
            handlers,
            caller,
        };
        Ok(Self {
            running,
            calls,
            server: Mutex::new(server),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// The objects of the cluster, as seen from this node.
    pub fn store(&self) -> QuorumStore {
        self.running.store()
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.running.core.id
    }

    /// The numbers and addresses of the members, voters and learners, as far as this node knows,
    /// whether they are up or not. This node is always among them. Nobody is asked.
    pub fn peers(&self) -> Vec<(u64, String)> {
        self.calls.peers()
    }

    /// Sets the handler of a kind of calls (small letters, digits and hyphens). It goes when the
    /// node is stopped.
    pub fn answer_calls(&self, kind: &'static str, handler: Arc<dyn CallHandler>) -> Result<()> {
        self.calls.answer(kind, handler)
    }

    /// Calls a member, or this node itself, which goes without network. Returns when the other one
    /// has taken the call, before its handler says anything.
    ///
    /// `request` has [`CALL_REQUEST_BYTES_MAX`](crate::CALL_REQUEST_BYTES_MAX) at most. `silence`
    /// is how long nothing may come ([`CALL_SILENCE`](crate::CALL_SILENCE) if nothing speaks for
    /// another time), and must be well above [`Pace::keep_alive`]. It counts only while the answer
    /// is waited for, not while the caller does something else. The answer can be read on any
    /// thread; one that is not read is not sent on.
    pub async fn call(
        &self,
        to: u64,
        kind: &str,
        request: Bytes,
        silence: Duration,
    ) -> Result<CallAnswer, CallError> {
        self.calls.call(to, kind, request, silence).await
    }

    /// Whether this node leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.leader() == Some(self.id())
    }

    /// The node that leads, as far as this one knows. Nobody is asked.
    pub fn leader(&self) -> Option<u64> {
        self.running.core.raft.metrics().borrow().current_leader
    }

    /// Returns once this node has all that was acknowledged before the call, entries and files, so
    /// that it counts for a majority as the others do. Asks the leader, and waits for `time` at
    /// most; after that it says what is missing.
    pub async fn current(&self, time: Duration) -> Result<()> {
        let waited = timeout(time, self.running.catch_up()).await;
        waited.unwrap_or_else(|_| {
            Err(Error::Behind(
                "no leader has told it in time what was written".to_owned(),
            ))
        })?;
        match fetch::missing(&self.running.core).await?.len() {
            0 => Ok(()),
            number => Err(Error::Behind(format!("it lacks {number} files"))),
        }
    }

    /// The status of this node.
    pub async fn status(&self) -> Result<NodeStatus> {
        members::status(&self.running.core).await
    }

    /// The status of another member, from itself.
    pub async fn status_of(&self, id: u64) -> Result<NodeStatus> {
        if id == self.running.core.id {
            return self.status().await;
        }
        self.running
            .core
            .ask(id, paths::STATUS, &(), self.running.core.pace.attempt)
            .await
    }

    /// Adds a node that runs already, with no members in its configuration. Returns when it has
    /// everything and votes. If it fails, the node may be left as a learner: add it again, or
    /// remove it.
    pub async fn add(&self, id: u64, address: &str) -> Result<()> {
        members::change(
            &self.running.core,
            paths::ADD,
            Member {
                id,
                address: address.to_owned(),
            },
        )
        .await
    }

    /// Removes a node, which may be lost. Returns when the others no longer count on it; it is to
    /// be stopped after that.
    pub async fn remove(&self, id: u64) -> Result<()> {
        members::change(
            &self.running.core,
            paths::REMOVE,
            Member {
                id,
                address: String::new(),
            },
        )
        .await
    }

    /// Announces the stop of the node: later reads and writes wait 5 s at most for a majority,
    /// which may be stopping, too.
    pub fn hurry(&self) {
        self.running.core.hurry();
    }

    /// Stops the node: answers to calls of other nodes break off, what it is writing is written,
    /// and its directory is free after that.
    pub async fn stop(&self) {
        self.calls.handlers.stop();
        let server = self.server.lock().take();
        if let Some(Server { stop, mut task }) = server {
            let _ = stop.send(());
            self.running.stop().await;
            if timeout(STOP_TIME, &mut task).await.is_err() {
                task.abort();
            }
        } else {
            self.running.stop().await;
        }
        self.lock.lock().take();
    }
}

impl Drop for Node {
    /// A node that was not stopped goes on; so its directory stays its own for as long as the
    /// process lives.
    fn drop(&mut self) {
        if let Some(lock) = self.lock.lock().take() {
            tracing::warn!("a node was dropped without being stopped; it goes on");
            std::mem::forget(lock);
        }
    }
}

fn check(config: &NodeConfig) -> Result<()> {
    if config.id == 0 {
        return Err(Error::Configuration(
            "a node's number is above 0".to_owned(),
        ));
    }
    if config.listen.is_some() && config.address.is_none() {
        return Err(Error::Configuration(
            "a node that listens needs an address that others find it by".to_owned(),
        ));
    }
    if config.secret.len() < SECRET_BYTES_MIN && config.address.is_some() {
        return Err(Error::Configuration(format!(
            "the cluster's secret must have {SECRET_BYTES_MIN} bytes at least"
        )));
    }
    if !config.members.is_empty() && !config.members.contains_key(&config.id) {
        return Err(Error::Configuration(format!(
            "node {} is none of the first members",
            config.id
        )));
    }
    if config.members.len() > 1 && config.address.is_none() {
        return Err(Error::Configuration(
            "a cluster of several nodes needs an address to listen at".to_owned(),
        ));
    }
    Ok(())
}
