//! Requests of other nodes over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::signature::{Claim, Gate, NODE, NONCE, SIGNATURE, TIME};
use crate::node::service::Service;
use crate::transport::paths;

/// The largest request: entries of the log, or a piece of a file, with room.
const BODY_BYTES_MAX: usize = 32 << 20;

/// What answers.
#[derive(Clone)]
struct Door {
    service: Service,
    gate: Arc<Gate>,
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
    let router = router.with_state(Door { service, gate }).merge(calls);
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
    let Ok(body) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        return respond(
            &door.gate,
            &nonce,
            StatusCode::PAYLOAD_TOO_LARGE,
            Bytes::from_static(b"the request is too large"),
        );
    };
    let path = parts.uri.path();
    let claim = claim(path, &parts.headers, &nonce);
    let now_ms = (door.service.core.ground.now_us)() / 1_000;
    if let Err(reason) = door.gate.admit(&claim, &body, now_ms) {
        tracing::warn!(path, reason, "refused a request");
        return turn_away(reason);
    }
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

/// Answers a request that is not let in. Not signed: who cannot sign a request must not learn what a signature looks like.
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
