//! TLS of all ports: HTTP, the admin socket, PostgreSQL, Flight SQL.
//!
//! ```text
//! files (PEM) -> [files] -> Served: what handshakes are made with -> [tls] -> stream, and [peer]: what the client's certificate says of it
//!                  ^ looked at every second; what cannot be served leaves the old one in place
//! ```
//!
//! and of those who ask: how a client checks a server's certificate, `verifier`, and whom it
//! trusts, `trust`.
//!
//! TLS 1.2 and 1.3 by rustls with ring. A connection keeps what it began with; the next one gets
//! what the files have by then.

mod error;
mod files;
mod peer;
mod tls;
mod trust;
mod verifier;

pub use error::TlsError;
pub use files::TlsFiles;
pub use peer::PeerNames;
pub use tls::{Served, Tls};
pub use trust::client_trusting;
pub use verifier::{Takes, add_authorities, client_config, public_authorities};
