//! Settings of Flight SQL's listener, and the errors of wrong ones at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use orrery_tls::{TlsError, TlsFiles};

use crate::Password;

/// The port that clients of Flight SQL expect.
pub const PORT_DEFAULT: u16 = 32010;

/// Settings for Flight SQL's clients.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The password of all clients where the database has no users.
    ///
    /// Without one the listener only accepts an address of this machine.
    pub password: Option<Password>,
    /// Whether the database has users, whose credentials come with each call.
    pub has_users: bool,
    /// Certificate and key: with them all clients have to use TLS.
    pub tls: Option<TlsFiles>,
    /// Most connections open at the same time; more wait.
    pub connections_max: usize,
    /// Most calls of a connection at the same time; more wait.
    pub calls_max: u32,
    /// Longest message of a client.
    pub message_bytes_max: usize,
    /// Most transactions open at the same time.
    pub transactions_max: usize,
    /// Most prepared statements of all clients.
    pub statements_max: usize,
    /// Most answers of all clients that wait to be fetched.
    pub answers_max: usize,
    /// Time after which an unused transaction or prepared statement is dropped.
    pub idle_max: Duration,
    /// How long an answer waits to be fetched.
    pub answer_time_max: Duration,
    /// Time without rows after which a client that sends them is given up.
    pub send_time_max: Duration,
    /// Time limit of a statement, until its last row was taken.
    pub statement_time_default: Duration,
    /// The highest time limit that `SET statement_timeout` within a transaction can set.
    pub statement_time_max: Duration,
    /// How long running statements may go on after the server was asked to stop.
    pub grace: Duration,
}

impl FlightOptions {
    /// The default settings for an address.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            password: None,
            has_users: false,
            tls: None,
            connections_max: 256,
            calls_max: 64,
            message_bytes_max: 64 << 20,
            transactions_max: 1_000,
            statements_max: 10_000,
            answers_max: 1_000,
            idle_max: Duration::from_secs(15 * 60),
            answer_time_max: Duration::from_secs(60),
            send_time_max: Duration::from_secs(60),
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
        "{address} can be reached from other machines, so Flight SQL needs a password there; give one with --flight-password-file or ORRERY_FLIGHT_PASSWORD, or listen on 127.0.0.1"
    )]
    NoPassword {
        /// The configured address.
        address: SocketAddr,
    },
    /// Without TLS, the password would travel in clear.
    #[error(
        "{address} can be reached from other machines, and clients of Flight SQL send their password as it is: give --flight-certificate and --flight-key, or listen on 127.0.0.1"
    )]
    NoTls {
        /// The configured address.
        address: SocketAddr,
    },
    /// The address is taken, or not one of this machine.
    #[error("cannot listen on {address} for Flight SQL: {source}; choose another with --flight")]
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
