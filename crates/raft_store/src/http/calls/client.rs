//! The client of calls between nodes: sends a request, verifies the frames of its answer.
//!
//! Each call has a task on the node's own threads, which sends the request, reads and verifies
//! frames, and hands whole messages on, one at a time: it reads on while the caller has one that it
//! has not taken, and no further. So connections outlive the threads of those who call, a caller
//! needs no runtime to read, and one that takes its time is not mistaken for a node that is silent.
//! Dropping the answer ends the task, which closes the connection.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};

use crate::calls::{CallAnswer, CallError};
use crate::error::Result;
use crate::http::calls::frame::{Heard, Opener};
use crate::http::client::{Signer, chain};
use crate::http::signature::{BODY, NODE, NONCE, SIGNATURE, Secret, TIME, digest_of};
use crate::transport::paths;
use crate::types::NodeId;

/// The digest of a larger request is not made on a thread that others wait for.
const DIGEST_BYTES_MAX: usize = 1 << 20;
/// A request may take a second more for each of these.
const BYTES_PER_SECOND: usize = 1 << 20;
/// Why a call was refused is told in this many bytes.
const REASON_BYTES_MAX: usize = 4_096;
/// Messages that a caller has not taken.
const MESSAGES_AHEAD: usize = 1;

/// Makes calls.
pub(crate) struct Caller {
    signer: Signer,
    runtime: Handle,
}

/// A call to a node at an address.
pub(crate) struct Call {
    pub node: NodeId,
    pub address: String,
    pub kind: String,
    pub request: Bytes,
    /// How long nothing may come.
    pub silence: Duration,
}

/// Ends a task when it is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer as it is handed on: a message, or that it is whole.
type Part = Result<Option<Bytes>, CallError>;

impl Caller {
    /// Its connections and tasks run on the runtime that it is made on.
    pub(crate) fn new(signer: Signer) -> Self {
        Self {
            signer,
            runtime: Handle::current(),
        }
    }

    /// Calls a node. Returns when it has taken the call.
    pub(crate) async fn call(&self, call: Call) -> Result<CallAnswer, CallError> {
        let node = call.node;
        let reader = Reader {
            client: self.signer.client.clone(),
            secret: self.signer.secret.clone(),
            time_ms: self.signer.time_ms(),
            nonce: match self.signer.nonce() {
                Ok(nonce) => nonce,
                Err(error) => {
                    let detail = error.to_string();
                    return Err(CallError::Unreachable { node, detail });
                }
            },
            call,
        };
        let (taken, is_taken) = oneshot::channel();
        let (parts, received) = mpsc::channel(MESSAGES_AHEAD);
        let task = self.runtime.spawn(reader.run(taken, parts));
        let task = Task(task.abort_handle());
        is_taken.await.unwrap_or_else(|_| Err(gone(node)))?;
        let answer = stream::unfold(Some((received, task)), move |open| async move {
            let (mut received, task) = open?;
            // Nothing more comes if the node's threads have ended; that is no end of the answer.
            match received.recv().await.unwrap_or_else(|| Err(gone(node))) {
                Ok(Some(message)) => Some((Ok(message), Some((received, task)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(answer.boxed())
    }
}

fn gone(node: NodeId) -> CallError {
    CallError::BrokenOff {
        node,
        detail: "this node has stopped".to_owned(),
    }
}

/// The task of a call.
struct Reader {
    client: reqwest::Client,
    secret: Secret,
    time_ms: u64,
    nonce: String,
    call: Call,
}

impl Reader {
    async fn run(
        mut self,
        taken: oneshot::Sender<Result<(), CallError>>,
        parts: mpsc::Sender<Part>,
    ) {
        let response = match self.send().await {
            Ok(response) => response,
            Err(error) => {
                // Nobody waits any more, if that fails.
                let _ = taken.send(Err(error));
                return;
            }
        };
        if taken.send(Ok(())).is_err() {
            return;
        }
        if let Err(error) = self.read(response, &parts).await {
            let _ = parts.send(Err(error)).await;
        }
    }

    /// Sends the request, and waits until the node has taken it.
    async fn send(&mut self) -> Result<reqwest::Response, CallError> {
        let Call {
            node,
            address,
            kind,
            request,
            silence,
        } = &mut self.call;
        let (node, silence) = (*node, *silence);
        let request = std::mem::take(request);
        let waited = silence + Duration::from_secs((request.len() / BYTES_PER_SECOND) as u64);
        let path = format!("{}{kind}", paths::CALL);
        let digest = digest(&request).await.ok_or_else(|| gone(node))?;
        let signature = self
            .secret
            .request_with(&path, node, self.time_ms, &self.nonce, &digest);
        let sent = self
            .client
            .post(format!("http://{address}{path}"))
            .header(NODE, node)
            .header(TIME, self.time_ms)
            .header(NONCE, &self.nonce)
            .header(BODY, digest)
            .header(SIGNATURE, signature)
            .body(request)
            .send();
        let response = match timeout(waited, sent).await {
            Err(_) => return Err(CallError::Silent { node, waited }),
            Ok(Err(error)) => {
                let detail = chain(&error);
                return Err(match error.is_connect() {
                    true => CallError::Unreachable { node, detail },
                    false => CallError::BrokenOff { node, detail },
                });
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let reason = timeout(silence, self.reason(response)).await;
        Err(reason.unwrap_or(CallError::Silent {
            node,
            waited: silence,
        }))
    }

    /// Why a call was refused.
    async fn reason(&self, mut response: reqwest::Response) -> CallError {
        let status = response.status();
        let signature = response.headers().get(SIGNATURE).cloned();
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > REASON_BYTES_MAX {
                break;
            }
        }
        let is_signed = signature
            .as_ref()
            .and_then(|signature| signature.to_str().ok())
            .is_some_and(|signature| {
                self.secret
                    .is_answer(signature, &self.nonce, status.as_u16(), &body)
            });
        body.truncate(REASON_BYTES_MAX);
        let text = String::from_utf8_lossy(&body);
        let detail = match is_signed {
            true => text.into_owned(),
            false => {
                format!("{status}: {text} (the answer is not signed with this cluster's secret)")
            }
        };
        CallError::Refused {
            node: self.call.node,
            detail,
        }
    }

    /// Reads an answer to its end.
    async fn read(
        &self,
        mut response: reqwest::Response,
        parts: &mpsc::Sender<Part>,
    ) -> Result<(), CallError> {
        let node = self.call.node;
        let mut opener = Opener::new(self.secret.clone(), self.nonce.clone());
        loop {
            match self.hear(&mut opener, &mut response).await? {
                Heard::Alive => {}
                Heard::Message(message) => {
                    if parts.send(Ok(Some(message))).await.is_err() {
                        return Ok(());
                    }
                }
                Heard::Failed(message) => return Err(CallError::Handler { node, message }),
                Heard::End => break,
            }
        }
        let deadline = Instant::now() + self.call.silence;
        if self.more(&mut response, deadline).await?.is_some() || opener.has_rest() {
            return Err(self.broken_off("there is more behind its end".to_owned()));
        }
        // Only now: the connection is free, for the call that the caller may make next.
        drop(response);
        let _ = parts.send(Ok(None)).await;
        Ok(())
    }

    /// Reads until a frame is there. It is frames that tell whether the other side is there, not
    /// bytes: these anybody can send.
    async fn hear(
        &self,
        opener: &mut Opener,
        response: &mut reqwest::Response,
    ) -> Result<Heard, CallError> {
        let deadline = Instant::now() + self.call.silence;
        loop {
            let heard = opener.next();
            if let Some(heard) = heard.map_err(|wrong| self.broken_off(wrong.to_owned()))? {
                return Ok(heard);
            }
            let Some(chunk) = self.more(response, deadline).await? else {
                return Err(self.broken_off("it ended before its end".to_owned()));
            };
            opener.push(&chunk);
        }
    }

    async fn more(
        &self,
        response: &mut reqwest::Response,
        deadline: Instant,
    ) -> Result<Option<Bytes>, CallError> {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(self.broken_off(chain(&error))),
            Err(_) => Err(CallError::Silent {
                node: self.call.node,
                waited: self.call.silence,
            }),
        }
    }

    fn broken_off(&self, detail: String) -> CallError {
        CallError::BrokenOff {
            node: self.call.node,
            detail,
        }
    }
}

/// The digest of a request; `None` when the threads are ending.
async fn digest(request: &Bytes) -> Option<String> {
    if request.len() <= DIGEST_BYTES_MAX {
        return Some(digest_of(request));
    }
    let request = request.clone();
    spawn_blocking(move || digest_of(&request)).await.ok()
}
