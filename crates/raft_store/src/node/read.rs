//! Linearizable reads: the log position a node must apply before it answers.
//!
//! A reader asks the leader for its read index: the leader asks a majority whether it still leads,
//! and tells the last entry that was committed when it was asked, at least the first of its own
//! term. When this node has applied that entry, its state has all writes that had their answer
//! before the read began. Readers that come while the leader is being asked wait for the next
//! question, and share it.

use std::sync::Arc;

use openraft::error::{CheckIsLeaderError, RaftError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::error::{Error, Result};
use crate::messages::Led;
use crate::node::core::Core;
use crate::transport::paths;

/// Readers that wait.
const QUEUE_READERS: usize = 4_096;

/// Asks the leader, once for many readers.
#[derive(Clone)]
pub(crate) struct Reader {
    core: Arc<Core>,
    queue: mpsc::Sender<oneshot::Sender<Result<u64, String>>>,
}

impl Reader {
    /// Starts the task that asks.
    pub(crate) fn start(core: Arc<Core>) -> (Self, JoinHandle<()>) {
        let (queue, readers) = mpsc::channel(QUEUE_READERS);
        (
            Self {
                core: core.clone(),
                queue,
            },
            tokio::spawn(run(core, readers)),
        )
    }

    /// Waits until this node's state has all that was written before.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        let started = Instant::now();
        let no_leader = |detail: String| Error::NoLeader {
            waited_ms: started.elapsed().as_millis() as u64,
            detail,
        };
        let (answer, answered) = oneshot::channel();
        self.queue
            .send(answer)
            .await
            .map_err(|_| Error::Stopped("it was asked to".to_owned()))?;
        let next = answered
            .await
            .map_err(|_| Error::Stopped("it was asked to".to_owned()))?
            .map_err(no_leader)?;
        let mut applied = self.core.shared.applied.subscribe();
        match timeout(
            self.core.request_time(),
            applied.wait_for(|&applied| applied >= next),
        )
        .await
        {
            Ok(Ok(_)) => Ok(()),
            _ => Err(no_leader(format!(
                "this node has not applied entry {next} yet"
            ))),
        }
    }
}

/// The leader's side: the index after the last entry that a reader must have applied.
pub(crate) async fn read_index(core: &Core) -> Led<u64> {
    match timeout(core.pace.attempt, core.raft.get_read_log_id()).await {
        Ok(Ok((read, _))) => Led::Done(read.map_or(0, |id| id.index + 1)),
        Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(forward)))) => {
            Led::NotLeader(forward.leader_id)
        }
        Ok(Err(error)) => Led::Failed(error.to_string()),
        Err(_) => Led::Failed("no majority has answered the leader in time".to_owned()),
    }
}

async fn run(core: Arc<Core>, mut readers: mpsc::Receiver<oneshot::Sender<Result<u64, String>>>) {
    while let Some(first) = readers.recv().await {
        let mut waiting = vec![first];
        while let Ok(next) = readers.try_recv() {
            waiting.push(next);
        }
        let found = ask(&core).await;
        for reader in waiting {
            let _ = reader.send(found.clone());
        }
    }
}

/// Asks whoever leads until somebody answers. Asking again does no harm.
async fn ask(core: &Core) -> Result<u64, String> {
    let deadline = Instant::now() + core.request_time();
    let mut detail = "there is none".to_owned();
    while let Some(leader) = core.await_leader(deadline).await {
        let answer = if leader == core.id {
            read_index(core).await
        } else {
            match core
                .ask(leader, paths::READ_INDEX, &(), core.pace.attempt)
                .await
            {
                Ok(answer) => answer,
                Err(error) => Led::Failed(error.to_string()),
            }
        };
        match answer {
            Led::Done(next) => return Ok(next),
            Led::NotLeader(_) => detail = format!("node {leader} does not lead"),
            Led::Failed(why) => detail = why,
        }
        if Instant::now() >= deadline || core.stopped().is_some() {
            break;
        }
        core.pause().await;
    }
    Err(core.stopped().unwrap_or(detail))
}
