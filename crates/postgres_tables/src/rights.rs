//! The allowed hosts, and the places of their passwords.

use std::net::IpAddr;
use std::path::PathBuf;

use orrery_http_client::AllowList;

use crate::address::{Server, host_and_port};
use crate::error::{Error, Result};

/// See the module.
pub(crate) struct Rights {
    /// Any host if there is no list.
    pub(crate) allow: Option<AllowList>,
    /// A file of passwords in libpq's form.
    pub(crate) passwords: Option<PathBuf>,
}

impl Rights {
    /// Fails if a server may not be connected to, as far as its name tells.
    pub(crate) fn check(&self, server: &Server) -> Result<()> {
        match &self.allow {
            Some(allow) => allow
                .check_host(&server.host, server.port)
                .map_err(|reason| not_allowed(server, reason)),
            None => Ok(()),
        }
    }

    /// Fails if the name of a server may not lead to an address.
    pub(crate) fn check_address(&self, server: &Server, address: IpAddr) -> Result<()> {
        // What stands as an address was looked at already.
        match &self.allow {
            Some(allow) if server.host.parse::<IpAddr>().is_err() => allow
                .check_address(&server.host, address)
                .map_err(|reason| not_allowed(server, reason)),
            _ => Ok(()),
        }
    }
}

/// What is said of a server that may not be connected to.
pub(crate) fn not_allowed(server: &Server, reason: String) -> Error {
    Error::NotAllowed {
        host: host_and_port(&server.host, server.port),
        reason,
    }
}
