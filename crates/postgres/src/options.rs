//! Settings of the listener, and what is refused at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use orrery_tls::{TlsError, TlsFiles};

use crate::Password;

/// PostgreSQL's own port is 5432; this one leaves it free.
pub const PORT_DEFAULT: u16 = 5433;

/// How PostgreSQL's clients are served.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// What clients have to know where the database has no users. Without one only an address of this machine is listened on.
    pub password: Option<Password>,
    /// Whether the database has users, whom clients name and whose passwords they have.
    pub has_users: bool,
    /// Certificate and key, for those who ask for TLS.
    pub tls: Option<TlsFiles>,
    /// Connections open at the same time; more are told to come back (53300).
    pub connections_max: usize,
    /// Longest message of a client.
    pub message_bytes_max: usize,
    /// How long a client may take until it is known and let in.
    pub startup_time_max: Duration,
    /// Time of a statement, unless the client sets another (`statement_timeout`).
    pub statement_time_default: Duration,
    /// The most that a client can set.
    pub statement_time_max: Duration,
    /// How long running statements may go on after a stop was asked for.
    pub grace: Duration,
}

impl PostgresOptions {
    /// The defaults for an address.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            password: None,
            has_users: false,
            tls: None,
            connections_max: 256,
            message_bytes_max: 64 << 20,
            startup_time_max: Duration::from_secs(30),
            statement_time_default: Duration::from_secs(60),
            statement_time_max: Duration::from_secs(600),
            grace: Duration::from_secs(10),
        }
    }
}

/// Why clients of PostgreSQL cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Everybody could read and change everything.
    #[error(
        "{address} can be reached from other machines, so PostgreSQL's clients need a password there; give one with --pg-password-file or ORRERY_PG_PASSWORD, or listen on 127.0.0.1"
    )]
    NoPassword {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is taken, or not ours.
    #[error(
        "cannot listen on {address} for PostgreSQL's clients: {source}; choose another with --pg"
    )]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A certificate, a key or a password that is not as it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<TlsError> for StartError {
    fn from(error: TlsError) -> Self {
        Self::File {
            path: error.path,
            reason: error.reason,
        }
    }
}
