//! HTTP within TLS: the handshake, and what requests learn of their connection.
//!
//! ```text
//! connection -> handshake (limited in time and number) -> HTTP/1.1
//!     each request has `Secure`, and `PeerNames` where the client has a certificate
//! ```

use axum::http::Extensions;
use orrery_tls::{PeerNames, Tls};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

/// The protocols that clients may negotiate within TLS.
pub const ALPN: &[&[u8]] = &[b"http/1.1"];

/// Marks a request that came within TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secure;

/// The names in the certificate of a client within TLS, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct SecureClient(Option<PeerNames>);

impl SecureClient {
    /// Notes both with a request.
    pub(crate) fn mark(&self, extensions: &mut Extensions) {
        extensions.insert(Secure);
        if let Some(names) = &self.0 {
            extensions.insert(names.clone());
        }
    }
}

/// Performs the handshake with a new client; none if it fails, or the server stops first.
pub(crate) async fn secured(
    stream: TcpStream,
    tls: &Tls,
    stopping: &mut watch::Receiver<bool>,
) -> Option<(TlsStream<TcpStream>, SecureClient)> {
    let accepted = tokio::select! {
        accepted = tls.accept(stream) => accepted,
        // An error means that the server is gone, which is a stop as well.
        _ = stopping.wait_for(|&is_stopping| is_stopping) => return None,
    };
    match accepted {
        Ok(stream) => {
            let client = SecureClient(PeerNames::of(&stream));
            Some((stream, client))
        }
        Err(error) => {
            tracing::debug!("a client was not let in by TLS: {error}");
            None
        }
    }
}
