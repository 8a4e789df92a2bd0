//! Settings of the HTTP interface, with their defaults.

use orrery_service::metrics::MetricsToken;
use std::time::Duration;

/// Time limits for HTTP clients, so that silent ones do not keep connections from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimes {
    /// Most time for the head of a request; also how long an idle connection stays open.
    pub head_max: Duration,
    /// Most time for a body that is read into memory, and for each part of one that goes to the
    /// disk.
    pub body_max: Duration,
    /// Most time for a client to read more of an answer.
    pub stall_max: Duration,
    /// Fewest bytes per second of a body that goes to the disk.
    ///
    /// An average over `upload_window`, of the time in which the server has waited for the body.
    pub upload_bytes_per_s: u64,
    /// The window of `upload_bytes_per_s`.
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
    /// Largest body of a query, also after decompression; a form has up to three bytes for one of
    /// it.
    pub body_bytes_max: usize,
    /// Largest body of a change, if it has to be in memory.
    pub update_bytes_max: usize,
    /// Names, beside those of this machine, of a server that listens on a loopback address.
    pub allow_hosts: Vec<String>,
    /// Lets pages from any origin read answers (CORS).
    pub allow_any_origin: bool,
    /// The token that, like an administrator, may read `/metrics`; without one, and without users,
    /// everyone may.
    pub metrics_token: Option<MetricsToken>,
    /// Certificate authorities of servers that changes are forwarded to, beside the public ones.
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
