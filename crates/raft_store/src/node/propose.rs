//! The leader's side of writes: groups of commands become log entries.
//!
//! openraft syncs its log once for each entry, and waits. So what comes in meanwhile becomes one
//! entry: the more clients, the larger the entries, and a sync on each node is shared by all of
//! them.

use std::sync::Arc;

use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::messages::{Led, Proposed};
use crate::node::core::Core;
use crate::types::{Batch, Request};

/// Groups that wait; more wait in their nodes.
const QUEUE_GROUPS: usize = 256;
/// Commands of one entry.
const COMMANDS_MAX: usize = 1_024;
/// Bytes of one entry, but for its last group.
const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Entries that were handed to openraft and have no answer yet.
const ENTRIES_IN_FLIGHT: usize = 2;

struct Group {
    requests: Vec<Request>,
    bytes: usize,
    answer: oneshot::Sender<Proposed>,
}

/// Takes commands, as far as this node leads.
#[derive(Clone)]
pub(crate) struct Proposer {
    queue: mpsc::Sender<Group>,
}

impl Proposer {
    /// Starts the task that makes entries.
    pub(crate) fn start(core: Arc<Core>) -> (Self, JoinHandle<()>) {
        let (queue, groups) = mpsc::channel(QUEUE_GROUPS);
        (Self { queue }, tokio::spawn(run(core, groups)))
    }

    /// Puts commands into the log and waits until they are applied. No answer within the time for
    /// an attempt is a failure; the commands may still be done later.
    pub(crate) async fn propose(&self, requests: Vec<Request>) -> Proposed {
        let (answer, answered) = oneshot::channel();
        let bytes = requests.iter().map(Request::bytes).sum();
        if self
            .queue
            .send(Group {
                requests,
                bytes,
                answer,
            })
            .await
            .is_err()
        {
            return Led::Failed("the node stops".to_owned());
        }
        answered
            .await
            .unwrap_or_else(|_| Led::Failed("the node stops".to_owned()))
    }
}

async fn run(core: Arc<Core>, mut groups: mpsc::Receiver<Group>) {
    let slots = Arc::new(Semaphore::new(ENTRIES_IN_FLIGHT));
    while let Some(first) = groups.recv().await {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let mut bytes = first.bytes;
        let mut commands = first.requests;
        let mut waiting = vec![(first.answer, commands.len())];
        while bytes < ENTRY_BYTES_MAX && commands.len() < COMMANDS_MAX {
            let Ok(next) = groups.try_recv() else { break };
            bytes += next.bytes;
            waiting.push((next.answer, next.requests.len()));
            commands.extend(next.requests);
        }
        let core = core.clone();
        tokio::spawn(async move {
            let batch = Batch {
                now_us: (core.ground.now_us)(),
                commands,
            };
            let written = timeout(core.pace.attempt, core.raft.client_write(batch)).await;
            drop(slot);
            answer(written, waiting);
        });
    }
}

type Written = Result<
    Result<
        openraft::raft::ClientWriteResponse<crate::types::TypeConfig>,
        RaftError<u64, ClientWriteError<u64, openraft::BasicNode>>,
    >,
    tokio::time::error::Elapsed,
>;

/// Gives each group its part of the answers, or what went wrong. Who no longer waits has no part.
fn answer(written: Written, waiting: Vec<(oneshot::Sender<Proposed>, usize)>) {
    match written {
        Ok(Ok(written)) => {
            let mut answers = written.data.into_iter();
            for (waits, number) in waiting {
                let _ = waits.send(Led::Done(answers.by_ref().take(number).collect()));
            }
        }
        Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
            for (waits, _) in waiting {
                let _ = waits.send(Led::NotLeader(forward.leader_id));
            }
        }
        Ok(Err(error)) => fail(waiting, &error.to_string()),
        Err(_) => fail(waiting, "no majority has answered the leader in time"),
    }
}

fn fail(waiting: Vec<(oneshot::Sender<Proposed>, usize)>, detail: &str) {
    for (waits, _) in waiting {
        let _ = waits.send(Led::Failed(detail.to_owned()));
    }
}
