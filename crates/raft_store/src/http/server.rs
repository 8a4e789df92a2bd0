//! Requests of other nodes over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::http::body::read;
use crate::http::signature::{BODY, Claim, Gate, NODE, NONCE, SIGNATURE, TIME};
use crate::node::service::Service;
use crate::transport::paths;

/// The largest request: entries of the log, or a piece of a file, with room.
const BODY_BYTES_MAX: usize = 32 << 20;
/// How long the body of a request may take to come.
const BODY_TIME: Duration = Duration::from_secs(60);
/// The same of one of which it is not known yet who has sent it, and how many of these are read at
/// a time.
const UNANNOUNCED_TIME: Duration = Duration::from_secs(5);
const UNANNOUNCED_MAX: usize = 4;

const TOO_SLOW: &str = "the request did not come in time";

/// What answers.
#[derive(Clone)]
struct Door {
    service: Service,
    gate: Arc<Gate>,
    /// Places for requests that do not say beforehand what was signed.
    unannounced: Arc<Semaphore>,
}

/// Serves until it is told to stop; `calls` are what else is answered.
pub(crate) fn serve(
    listener: TcpListener,
    service: Service,
    gate: Arc<Gate>,
    calls: Router,
    stop: oneshot::Receiver<()>,
) -> JoinHandle<()> {
    let mut router = Router::new();
    for path in paths::ALL {
        router = router.route(path, post(answer));
    }
    let door = Door {
        service,
        gate,
        unannounced: Arc::new(Semaphore::new(UNANNOUNCED_MAX)),
    };
    let router = router.with_state(door).merge(calls);
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a connection of another node may be slow");
        }
    });
    tokio::spawn(async move {
        let stopped = async move { _ = stop.await };
        if let Err(error) = axum::serve(listener, router)
            .with_graceful_shutdown(stopped)
            .await
        {
            tracing::error!(%error, "this node no longer answers others");
        }
    })
}

async fn answer(State(door): State<Door>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let nonce = header(&parts.headers, NONCE).to_owned();
    let path = parts.uri.path();
    let claim = claim(path, &parts.headers, &nonce);
    let now_ms = || (door.service.core.ground.now_us)() / 1_000;
    let refuse = |reason: &'static str| {
        tracing::warn!(path, reason, "refused a request");
        turn_away(reason)
    };
    let digest = header(&parts.headers, BODY);
    let body = if digest.is_empty() {
        let body = match door.unannounced(body).await {
            Ok(body) => body,
            Err(reason) => return refuse(reason),
        };
        if let Err(reason) = door.gate.admit(&claim, &body, now_ms()) {
            return refuse(reason);
        }
        body
    } else {
        if let Err(reason) = door.gate.admit_with(&claim, digest, now_ms()) {
            return refuse(reason);
        }
        let read = timeout(BODY_TIME, read(body, digest, BODY_BYTES_MAX)).await;
        match read.unwrap_or(Err((StatusCode::REQUEST_TIMEOUT, TOO_SLOW))) {
            Ok(body) => body,
            // What is not what was signed gets no signature, either.
            Err((StatusCode::UNAUTHORIZED, reason)) => return refuse(reason),
            Err((status, reason)) => {
                tracing::warn!(path, reason, "refused a request");
                let reason = Bytes::from_static(reason.as_bytes());
                return respond(&door.gate, &nonce, status, reason);
            }
        }
    };
    match door.service.answer(path, &body).await {
        Ok(body) => respond(&door.gate, &nonce, StatusCode::OK, body),
        Err(error) => respond(
            &door.gate,
            &nonce,
            StatusCode::INTERNAL_SERVER_ERROR,
            Bytes::from(error.to_string()),
        ),
    }
}

impl Door {
    /// The body of a request that does not say beforehand what was signed, as those of earlier
    /// versions: anybody may have sent it, so few are read at a time, and not for long.
    async fn unannounced(&self, body: Body) -> Result<Bytes, &'static str> {
        // While nodes are upgraded there may be several; they wait for each other, and not for
        // long.
        let place = timeout(
            UNANNOUNCED_TIME,
            Arc::clone(&self.unannounced).acquire_owned(),
        );
        let Ok(Ok(_place)) = place.await else {
            return Err("others that do not say what was signed are read already");
        };
        let read = timeout(UNANNOUNCED_TIME, axum::body::to_bytes(body, BODY_BYTES_MAX)).await;
        read.map_err(|_elapsed| TOO_SLOW)?
            .map_err(|_error| "the request is too large, or was cut off")
    }
}

/// What a request says of itself.
pub(crate) fn claim<'a>(path: &'a str, headers: &'a HeaderMap, nonce: &'a str) -> Claim<'a> {
    Claim {
        path,
        node: header(headers, NODE),
        time_ms: header(headers, TIME),
        nonce,
        signature: header(headers, SIGNATURE),
    }
}

/// Answers a request that is not let in. Not signed: who cannot sign a request must not learn what
/// a signature looks like.
pub(crate) fn turn_away(reason: &'static str) -> Response<Body> {
    let mut refused = Response::new(Body::from(reason));
    *refused.status_mut() = StatusCode::UNAUTHORIZED;
    refused
}

/// A signed answer.
pub(crate) fn respond(gate: &Gate, nonce: &str, status: StatusCode, body: Bytes) -> Response<Body> {
    let signature = gate.sign(nonce, status.as_u16(), &body);
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if let Ok(value) = signature.parse() {
        response.headers_mut().insert(SIGNATURE, value);
    }
    response
}

/// A header's text, or none.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
