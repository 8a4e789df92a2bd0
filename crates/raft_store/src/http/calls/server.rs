//! The server side of calls: authentication, and the body of the answer.
//!
//! A signature is looked at before the body of the request is read, since it may be large. The
//! answer begins at once, before the handler has said anything; from then on a frame goes at least
//! every `keep_alive`, unless the caller does not read. Nothing is made ahead: the handler is asked
//! for a message when the one before has gone to the connection. hyper holds a frame or two.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::calls::{self, CALL_REQUEST_BYTES_MAX, Handlers};
use crate::http::body::read;
use crate::http::calls::frame::Sealer;
use crate::http::server::{claim, header, respond, turn_away};
use crate::http::signature::{BODY, Gate, NONCE};
use crate::transport::paths;

/// Calls that a node answers at the same time.
const CALLS_MAX: usize = 1_024;
/// How long the body of a request may take to come.
const BODY_TIME: Duration = Duration::from_secs(120);

/// What calls come through.
#[derive(Clone)]
struct Door {
    gate: Arc<Gate>,
    handlers: Arc<Handlers>,
    now_us: Arc<dyn Fn() -> u64 + Send + Sync>,
    keep_alive: Duration,
    free: Arc<Semaphore>,
}

/// Answers calls, beside what else a node answers.
pub(crate) fn router(
    gate: Arc<Gate>,
    handlers: Arc<Handlers>,
    now_us: Arc<dyn Fn() -> u64 + Send + Sync>,
    keep_alive: Duration,
) -> Router {
    Router::new()
        .route(&format!("{}{{kind}}", paths::CALL), post(answer))
        .with_state(Door {
            gate,
            handlers,
            now_us,
            keep_alive,
            free: Arc::new(Semaphore::new(CALLS_MAX)),
        })
}

async fn answer(State(door): State<Door>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let nonce = header(&parts.headers, NONCE).to_owned();
    let path = parts.uri.path();
    let digest = header(&parts.headers, BODY);
    let now_ms = (door.now_us)() / 1_000;
    let claim = claim(path, &parts.headers, &nonce);
    if let Err(reason) = door.gate.admit_with(&claim, digest, now_ms) {
        tracing::warn!(path, reason, "refused a call");
        return turn_away(reason);
    }
    let refuse = |status, reason: String| {
        tracing::warn!(path, reason, "refused a call");
        respond(&door.gate, &nonce, status, Bytes::from(reason))
    };
    let Ok(place) = door.free.clone().try_acquire_owned() else {
        let reason = format!("it answers {CALLS_MAX} calls already");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, reason);
    };
    let request = match timeout(BODY_TIME, read(body, digest, CALL_REQUEST_BYTES_MAX)).await {
        Ok(Ok(request)) => request,
        Ok(Err((status, reason))) => return refuse(status, reason.to_owned()),
        Err(_) => {
            let reason = "the request did not come in time".to_owned();
            return refuse(StatusCode::REQUEST_TIMEOUT, reason);
        }
    };
    let kind = path.strip_prefix(paths::CALL).unwrap_or_default();
    let handler = match door.handlers.find(kind) {
        Ok(handler) => handler,
        Err(reason) => return refuse(StatusCode::NOT_FOUND, reason),
    };
    let frames = Frames {
        messages: calls::messages(&*handler, kind, request),
        message: None,
        sealer: Sealer::new(door.gate.secret().clone(), nonce),
        keep_alive: door.keep_alive,
        stopped: door.handlers.stopped(),
        is_over: false,
        _place: place,
    };
    let frames = stream::unfold(frames, |mut frames| async {
        Some((frames.next().await?, frames))
    });
    Response::new(Body::from_stream(frames))
}

/// The frames of an answer.
struct Frames {
    messages: BoxStream<'static, Result<Bytes, String>>,
    /// What is left to send of the last message.
    message: Option<Bytes>,
    sealer: Sealer,
    keep_alive: Duration,
    stopped: watch::Receiver<bool>,
    is_over: bool,
    /// Among the calls that are answered.
    _place: OwnedSemaphorePermit,
}

impl Frames {
    /// The next frame. An error makes hyper close the connection, which the caller sees.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.is_over {
            return None;
        }
        if *self.stopped.borrow() {
            return Some(self.stop());
        }
        if let Some(frame) = self.sealer.part(&mut self.message) {
            return Some(Ok(frame));
        }
        let message = tokio::select! {
            biased;
            () = has_stopped(&mut self.stopped) => return Some(self.stop()),
            message = self.messages.next() => message,
            () = sleep(self.keep_alive) => return Some(Ok(self.sealer.keep_alive())),
        };
        match message {
            Some(Ok(message)) => {
                self.message = Some(message);
                self.sealer.part(&mut self.message).map(Ok)
            }
            Some(Err(text)) => {
                self.is_over = true;
                Some(Ok(self.sealer.error(&text)))
            }
            None => {
                self.is_over = true;
                Some(Ok(self.sealer.end()))
            }
        }
    }

    fn stop(&mut self) -> io::Result<Bytes> {
        self.is_over = true;
        Err(io::Error::other("this node stops"))
    }
}

/// Waits until the node stops, or is gone.
async fn has_stopped(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}
