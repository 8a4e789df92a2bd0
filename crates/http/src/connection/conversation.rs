//! Serves one HTTP client, from its first byte to its last, with or without TLS.

use crate::connection::refusals::Explained;
use crate::connection::stalls::Unstalled;
use crate::connection::tls::{self, SecureClient};
use crate::connection::unread_body;
use crate::edge::proxies::FarEnd;
use crate::options::ClientTimes;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use orrery_service::ports::connections::Connections;
use orrery_tls::Tls;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Serves one client, within TLS if its address has TLS.
pub async fn answer(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    (peer, connections): (Option<FarEnd>, Arc<Connections>),
    times: ClientTimes,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let _counted = connections.accept();
    // Without it the kernel delays the second half of a small answer by 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {error}");
    }
    let Some(tls) = tls else {
        return converse(stream, peer, None, times, router, stopping).await;
    };
    // A future of its own, so that connections without TLS take no more memory.
    let secured = async move {
        if let Some((stream, client)) = tls::secured(stream, &tls, &mut stopping).await {
            drop(tls);
            converse(stream, peer, Some(client), times, router, stopping).await;
        } else {
            connections.note_refused();
        }
    };
    Box::pin(secured).await;
}

/// Speaks HTTP/1.1 on one connection until it ends or the server stops.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Option<FarEnd>,
    client: Option<SecureClient>,
    times: ClientTimes,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head_max)
        .serve_connection(
            TokioIo::new(Explained::new(Unstalled::new(stream, times.stall_max))),
            service_fn(move |mut request: Request<Incoming>| {
                if let Some(peer) = &peer {
                    let peer = peer.of(request.headers());
                    request.extensions_mut().insert(peer);
                }
                if times != ClientTimes::default() {
                    request.extensions_mut().insert(times);
                }
                if let Some(client) = &client {
                    client.mark(request.extensions_mut());
                }
                let (head, body) = request.into_parts();
                let (body, unread) = unread_body::watch(&head.headers, body);
                let answered = service.call(Request::from_parts(head, body));
                async move {
                    let mut response = answered.await?;
                    if let Some(unread) = unread {
                        // The usual case: all of the body is read, and this is ready at once.
                        unread.settle(&mut response).await;
                    }
                    Ok::<_, std::convert::Infallible>(response)
                }
            }),
        );
    let mut connection = pin!(connection);
    let stopped = async move {
        // An error means that the server is gone, which is a stop as well.
        let _ = stopping.wait_for(|&is_stopping| is_stopping).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Broken-off answers and clients that leave end here; the access log has recorded them.
    if let Err(error) = ended {
        tracing::debug!("connection ended: {error}");
    }
}
