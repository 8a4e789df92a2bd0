//! Who is at the other end of a connection.

use std::net::IpAddr;

use orrery_tls::PeerNames;

use crate::handles::ConnectionId;

/// See the module; in the extensions of its calls.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) address: IpAddr,
    /// What the client's certificate says, if it has one.
    pub(crate) certificate: Option<PeerNames>,
}
