//! The HTTP interface: SPARQL protocol, SQL, graph store protocol, change feed, admin socket and
//! console, over the service.
//!
//! A request passes `connection` (TLS, limits), the router, `edge` (access log, user, host, the
//! server that a change is for), `request` (body, protocol, conditions, formats) and one of
//! `routes`, whose `answer` goes out as it is computed. The statement itself is `orrery_service`'s.

mod admin;
mod answer;
mod connection;
mod edge;
mod options;
mod request;
mod route;
mod route_table;
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
pub use route::{Forwarding, Metering, Right, RouteRow, Who};
pub use router::{route_rows, router};
pub use state::HttpState;
