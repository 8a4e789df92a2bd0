//! The identity of a client certificate: the URIs among its subject alternative names, such as a
//! WebID.
//!
//! The handshake has checked the certificate then: who vouches for it, its days, and that the
//! client has its key.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

/// More than these are not looked at.
const NAMES_MAX: usize = 16;

/// The URIs of a client's certificate, perhaps none. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerNames(Arc<[String]>);

impl PeerNames {
    /// Of a connection whose client has a certificate.
    pub fn of(stream: &TlsStream<TcpStream>) -> Option<Self> {
        let certificates = stream.get_ref().1.peer_certificates()?;
        let names = EndEntityCert::try_from(certificates.first()?);
        // The handshake has read it already: one that cannot be read does not come so far.
        let names = names.as_ref().map_or_else(
            |_unreadable| Vec::new(),
            |certificate| {
                let names = certificate.valid_uri_names().take(NAMES_MAX);
                names.map(str::to_owned).collect()
            },
        );
        Some(Self(names.into()))
    }

    /// The URIs.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// The same, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}
