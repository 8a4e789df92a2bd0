//! Settings of the listener, and what is refused at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use orrery_tls::{TlsError, TlsFiles};

use crate::Password;

/// The port that clients of Flight SQL expect.
pub const PORT_DEFAULT: u16 = 32010;

/// How clients of Flight SQL are served.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// What clients have to know where the database has no users. Without one only an address of this machine is listened on.
    pub password: Option<Password>,
    /// Whether the database has users, who say with each call who they are.
    pub has_users: bool,
    /// Certificate and key: with them all clients have to speak TLS.
    pub tls: Option<TlsFiles>,
    /// Connections open at the same time; more wait.
    pub connections_max: usize,
    /// Calls of a connection at the same time; more wait.
    pub calls_max: u32,
    /// Longest message of a client.
    pub message_bytes_max: usize,
    /// Transactions that are open at the same time.
    pub transactions_max: usize,
    /// Prepared statements of all clients.
    pub statements_max: usize,
    /// Answers that wait to be fetched, of all clients.
    pub answers_max: usize,
    /// What nobody has asked for so long is forgotten: a transaction, a prepared statement.
    pub idle_max: Duration,
    /// How long an answer waits to be fetched.
    pub answer_time_max: Duration,
    /// A client that sends rows is given up when nothing comes for so long.
    pub send_time_max: Duration,
    /// Time of a statement, until its last row was taken.
    pub statement_time_default: Duration,
    /// The most that `SET statement_timeout` within a transaction gives it.
    pub statement_time_max: Duration,
    /// How long running statements may go on after a stop was asked for.
    pub grace: Duration,
}

impl FlightOptions {
    /// The defaults for an address.
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

/// Why clients of Flight SQL cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Everybody could read and change everything.
    #[error(
        "{address} can be reached from other machines, so Flight SQL needs a password there; give one with --flight-password-file or ORRERY_FLIGHT_PASSWORD, or listen on 127.0.0.1"
    )]
    NoPassword {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The password would travel as it is.
    #[error(
        "{address} can be reached from other machines, and clients of Flight SQL send their password as it is: give --flight-certificate and --flight-key, or listen on 127.0.0.1"
    )]
    NoTls {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address is taken, or not ours.
    #[error("cannot listen on {address} for Flight SQL: {source}; choose another with --flight")]
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
