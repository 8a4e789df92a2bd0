//! Settings of the HTTP interface, with their defaults.

use orrery_service::metrics::MetricsToken;
use std::time::Duration;

/// How long clients of HTTP may take, so that those who say nothing do not keep connections from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimes {
    /// For the head of a request; so long may an idle connection stay open, too.
    pub head_max: Duration,
    /// To send a body that is read into memory, and to send more of one that goes to the disk.
    pub body_max: Duration,
    /// To take more of an answer.
    pub stall_max: Duration,
    /// Bytes of a body that goes to the disk that have to come in each second, on average over `upload_window`, in which the server has waited for them.
    pub upload_bytes_per_s: u64,
    /// See `upload_bytes_per_s`.
    pub upload_window: Duration,
}

impl Default for ClientTimes {
    fn default() -> Self {
        Self {
            head_max: Duration::from_secs(30),
            body_max: Duration::from_secs(30),
            stall_max: Duration::from_secs(60),
            upload_bytes_per_s: 1024,
            upload_window: Duration::from_secs(30),
        }
    }
}

/// Limits and behaviour of the HTTP interface.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Largest body of a request that asks, also after decompression; a form has up to three bytes for one of the query.
    pub body_bytes_max: usize,
    /// Largest body of a request that changes something, if it must stand in memory.
    pub update_bytes_max: usize,
    /// Names, beside those of this machine, under which a server that listens on a loopback address is reached.
    pub allow_hosts: Vec<String>,
    /// Lets pages from any origin read answers (CORS).
    pub allow_any_origin: bool,
    /// Who has it may read `/metrics`, beside administrators; without one, and without users, everybody may.
    pub metrics_token: Option<MetricsToken>,
    /// Who vouches for servers that changes are forwarded to, beside the authorities that the world knows.
    pub authorities: Vec<reqwest::Certificate>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            body_bytes_max: 4 << 20,
            update_bytes_max: 64 << 20,
            allow_hosts: Vec::new(),
            allow_any_origin: false,
            metrics_token: None,
            authorities: Vec::new(),
        }
    }
}
