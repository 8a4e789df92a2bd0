//! The server: builds a running process from options, answers over HTTP, PostgreSQL's protocol and
//! Flight SQL, and stops.
//!
//! It only composes: `orrery_service` is what all protocols work with; `orrery_http`,
//! [`orrery_postgres`] and [`orrery_flight`] speak with clients. [`mod@serve`] opens the database,
//! listens and stops.
//!
//! A server without users listens on loopback by default, where it accepts changes only from
//! programs of this machine.

mod first_user;
mod options;
mod port;
pub mod serve;
mod temporary;
mod warming;

pub use options::{PORT_DEFAULT, ServerOptions};
pub use orrery_http::{
    ClientTimes, DOCUMENT_MEMORY_BYTES, Documents, HttpOptions, NotANetwork, TrustedProxies,
};
pub use orrery_service::cluster::nodes::{Answers, Cluster, Work};
pub use orrery_service::endpoints::EndpointOptions;
pub use orrery_service::metrics::MetricsToken;
pub use orrery_service::oidc::{OidcError, OidcOptions, UserClaim};
pub use orrery_service::options::{DIVIDE_FROM, ServiceOptions};
pub use orrery_service::query_log::{QUERY_LOG_BYTES_MIN, QueryLogOptions};
pub use orrery_service::traces::{OtlpError, OtlpOptions};
pub use serve::{ServeError, Server, serve, stop_signal};
