//! Settings of PostgreSQL's listener, and the errors of wrong ones at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use orrery_tls::{TlsError, TlsFiles};

use crate::Password;

/// PostgreSQL's own port is 5432; this one leaves it free.
pub const PORT_DEFAULT: u16 = 5433;

/// Settings for PostgreSQL's clients.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The password of all clients where the database has no users.
    ///
    /// Without one the listener only accepts an address of this machine.
    pub password: Option<Password>,
    /// Whether the database has users, whose names and passwords clients send.
    pub has_users: bool,
    /// Certificate and key, for clients that ask for TLS.
    pub tls: Option<TlsFiles>,
    /// Most connections open at the same time; more are told to come back (53300).
    pub connections_max: usize,
    /// Longest message of a client.
    pub message_bytes_max: usize,
    /// Most time for a client to authenticate.
    pub startup_time_max: Duration,
    /// Time limit of a statement, unless the client sets another (`statement_timeout`).
    pub statement_time_default: Duration,
    /// The highest time limit that a client can set.
    pub statement_time_max: Duration,
    /// How long running statements may go on after the server was asked to stop.
    pub grace: Duration,
}

impl PostgresOptions {
    /// The default settings for an address.
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

/// Why the listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Without a password, everyone could read and change everything.
    #[error(
        "{address} can be reached from other machines, so PostgreSQL's clients need a password there; give one with --pg-password-file or ORRERY_PG_PASSWORD, or listen on 127.0.0.1"
    )]
    NoPassword {
        /// The configured address.
        address: SocketAddr,
    },
    /// The address is taken, or not one of this machine.
    #[error(
        "cannot listen on {address} for PostgreSQL's clients: {source}; choose another with --pg"
    )]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A certificate, a key or a password is unusable.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
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
