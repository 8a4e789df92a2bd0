//! The client end of a connection: its number and its certificate.

use std::net::IpAddr;

use orrery_tls::PeerNames;

use crate::handles::ConnectionId;

/// The client end of a connection; stored in the extensions of its calls.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) address: IpAddr,
    /// The names in the client's certificate, if it has one.
    pub(crate) certificate: Option<PeerNames>,
}
