//! A node's side of writes: groups of commands are sent to the leader, with retries.
//!
//! Every command has a number in this node's session, and the state remembers the answers of
//! numbers that may come again ([`crate::state`]). So a group that was sent to a leader which was
//! lost meanwhile is sent to the next one, and is done once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::messages::{Led, Propose, Proposed};
use crate::node::core::Core;
use crate::node::propose::Proposer;
use crate::state::WINDOW;
use crate::transport::paths;
use crate::types::{Answer, Command, Request};

/// Commands that wait.
const QUEUE_COMMANDS: usize = 1_024;
/// Commands of one group.
const COMMANDS_MAX: usize = 256;
/// Bytes of one group, but for its last command.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// Groups that were sent and have no answer yet.
const GROUPS_IN_FLIGHT: usize = 4;

struct Pending {
    command: Command,
    answer: oneshot::Sender<Result<Answer>>,
}

/// Writes for the clients of a node.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Pending>,
}

/// The session, and the numbers that are under way in it.
#[derive(Default)]
struct Numbers {
    session: Option<u64>,
    next: u64,
    under_way: BTreeSet<u64>,
}

struct Lane {
    core: Arc<Core>,
    proposer: Proposer,
    numbers: Mutex<Numbers>,
    /// Told when numbers have had their answers.
    answered: Notify,
}

/// A command with its number.
struct Numbered {
    request: Request,
    answer: oneshot::Sender<Result<Answer>>,
}

impl Writer {
    /// Starts the task that sends.
    pub(crate) fn start(core: Arc<Core>, proposer: Proposer) -> (Self, JoinHandle<()>) {
        let (queue, commands) = mpsc::channel(QUEUE_COMMANDS);
        let lane = Lane {
            core,
            proposer,
            numbers: Mutex::default(),
            answered: Notify::new(),
        };
        (Self { queue }, tokio::spawn(run(Arc::new(lane), commands)))
    }

    /// Has a command done, at most once.
    pub(crate) async fn write(&self, command: Command) -> Result<Answer> {
        let stopped = || Error::Stopped("it was asked to".to_owned());
        let (answer, answered) = oneshot::channel();
        self.queue
            .send(Pending { command, answer })
            .await
            .map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

async fn run(lane: Arc<Lane>, mut commands: mpsc::Receiver<Pending>) {
    let slots = Arc::new(Semaphore::new(GROUPS_IN_FLIGHT));
    while let Some(first) = commands.recv().await {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let mut bytes = first.command.bytes();
        let mut group = vec![first];
        while bytes < GROUP_BYTES_MAX && group.len() < COMMANDS_MAX {
            let Ok(next) = commands.try_recv() else { break };
            bytes += next.command.bytes();
            group.push(next);
        }
        let session = match lane.session().await {
            Ok(session) => session,
            Err(error) => {
                let detail = error.to_string();
                for pending in group {
                    let _ = pending.answer.send(Err(Error::NoLeader {
                        waited_ms: lane.core.request_time().as_millis() as u64,
                        detail: detail.clone(),
                    }));
                }
                continue;
            }
        };
        let group = lane.number(session, group).await;
        let lane = lane.clone();
        tokio::spawn(async move {
            lane.send(group).await;
            drop(slot);
        });
    }
}

impl Lane {
    /// The session; opens one if there is none. Opening is no command of a session: one that was
    /// opened twice is forgotten one day.
    async fn session(&self) -> Result<u64> {
        let open = self.numbers.lock().session;
        if let Some(session) = open {
            return Ok(session);
        }
        let request = Request {
            session: 0,
            number: 0,
            floor: 0,
            command: Command::Open,
        };
        match self
            .ask(&[request], Instant::now() + self.core.request_time())
            .await?
            .0
            .first()
        {
            Some(&Answer::Opened(session)) => {
                self.numbers.lock().session = Some(session);
                Ok(session)
            }
            _ => Err(Error::Message("no session was opened".to_owned())),
        }
    }

    /// Gives commands their numbers, as soon as these are within the state's window.
    async fn number(&self, session: u64, group: Vec<Pending>) -> Vec<Numbered> {
        loop {
            let answered = self.answered.notified();
            {
                let mut numbers = self.numbers.lock();
                let floor = numbers.floor();
                if numbers.next + group.len() as u64 - floor <= WINDOW / 2 {
                    let numbered = group.into_iter().map(|Pending { command, answer }| {
                        let number = numbers.next;
                        numbers.next += 1;
                        numbers.under_way.insert(number);
                        Numbered {
                            request: Request {
                                session,
                                number,
                                floor,
                                command,
                            },
                            answer,
                        }
                    });
                    return numbered.collect();
                }
            }
            answered.await;
        }
    }

    /// Sends a group until it has its answers, and hands them out.
    async fn send(&self, group: Vec<Numbered>) {
        let (requests, waiting): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|numbered| (numbered.request, numbered.answer))
            .unzip();
        let answers = self.answers(&requests).await;
        {
            let mut numbers = self.numbers.lock();
            for request in &requests {
                numbers.under_way.remove(&request.number);
            }
        }
        self.answered.notify_waiters();
        match answers {
            Ok(answers) => {
                for (waits, answer) in waiting.into_iter().zip(answers) {
                    let _ = waits.send(match answer {
                        Answer::Forgotten => Err(Error::Unknown {
                            waited_ms: 0,
                            detail: "the nodes no longer remember this node's writes".to_owned(),
                        }),
                        answer => Ok(answer),
                    });
                }
            }
            Err(failure) => {
                for waits in waiting {
                    let _ = waits.send(Err(failure.error()));
                }
            }
        }
    }

    async fn answers(&self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        let deadline = Instant::now() + self.core.request_time();
        let (answers, attempts) = self.ask(requests, deadline).await?;
        if attempts > 1 || !answers.contains(&Answer::Forgotten) {
            return Ok(answers);
        }
        // The session was forgotten since it was last used, and these were sent once: none of them
        // was done. They go with a new one, whose numbers go on.
        let Some(first) = requests.first() else {
            return Ok(answers);
        };
        {
            let mut numbers = self.numbers.lock();
            if numbers.session == Some(first.session) {
                numbers.session = None;
            }
        }
        let session = self.session().await.map_err(|error| Failure {
            sent: false,
            waited: self.core.request_time(),
            detail: error.to_string(),
        })?;
        let renewed: Vec<Request> = requests
            .iter()
            .map(|request| Request {
                session,
                ..request.clone()
            })
            .collect();
        Ok(self.ask(&renewed, deadline).await?.0)
    }

    /// Sends commands to whoever leads until somebody answers. Gives the answers, and how often
    /// they were sent.
    async fn ask(
        &self,
        requests: &[Request],
        deadline: Instant,
    ) -> Result<(Vec<Answer>, u32), Failure> {
        let started = Instant::now();
        let core = &self.core;
        let mut attempts = 0;
        let mut detail = "there is none".to_owned();
        while let Some(leader) = core.await_leader(deadline).await {
            attempts += 1;
            let answer: Proposed = if leader == core.id {
                self.proposer.propose(requests.to_vec()).await
            } else {
                let propose = Propose {
                    requests: requests.to_vec(),
                };
                match core
                    .ask(leader, paths::PROPOSE, &propose, core.pace.attempt)
                    .await
                {
                    Ok(answer) => answer,
                    Err(error) => Led::Failed(error.to_string()),
                }
            };
            match answer {
                Led::Done(answers) if answers.len() == requests.len() => {
                    return Ok((answers, attempts));
                }
                Led::Done(_) => detail = "there were fewer answers than commands".to_owned(),
                Led::NotLeader(_) => detail = format!("node {leader} does not lead"),
                Led::Failed(why) => detail = why,
            }
            if Instant::now() >= deadline || core.stopped().is_some() {
                break;
            }
            core.pause().await;
        }
        let detail = core.stopped().unwrap_or(detail);
        Err(Failure {
            sent: attempts > 0,
            waited: started.elapsed(),
            detail,
        })
    }
}

impl Numbers {
    /// Numbers below have their answers.
    fn floor(&self) -> u64 {
        self.under_way.first().copied().unwrap_or(self.next)
    }
}

/// No answer came.
struct Failure {
    /// Whether anything was sent.
    sent: bool,
    waited: Duration,
    detail: String,
}

impl Failure {
    fn error(&self) -> Error {
        let (waited_ms, detail) = (self.waited.as_millis() as u64, self.detail.clone());
        if self.sent {
            Error::Unknown { waited_ms, detail }
        } else {
            Error::NoLeader { waited_ms, detail }
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error()
    }
}
