//! HTTP: the SPARQL protocol, SQL, the graph store protocol, the change feed, the admin socket and the console, over the service.
//!
//! A request passes `connection` (TLS, bounds), the router, `edge` (access log; by whom and from where; the server that a change is for),
//! `request` (body, protocol, conditions, formats) and one of `routes`, whose `answer` goes out as it is computed. What happens to
//! the statement in between is `orrery_service`'s.

mod admin;
mod answer;
mod connection;
mod edge;
mod options;
mod paths;
mod request;
mod router;
mod routes;
mod state;

pub use admin::routes as admin_routes;
pub use connection::connections::{AddressRule, OpenAtAddress, OpenConnections};
pub use connection::conversation::answer;
pub use connection::tls::ALPN;
pub use edge::proxies::{FarEnd, NotANetwork, TrustedProxies};
pub use options::{ClientTimes, HttpOptions};
pub use request::documents::{DOCUMENT_MEMORY_BYTES, Documents};
pub use router::router;
pub use state::HttpState;
