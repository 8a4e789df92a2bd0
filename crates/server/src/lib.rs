//! SPARQL protocol and SQL over HTTP: formats, limits, console.
//!
//! A request passes [`mod@serve`] (connections), the router (paths, log, gzip), `edge` (by whom, from where), `body`, `protocol` (what
//! is asked), `conditions`, `negotiate` (in which form), `admission` (when), and `stream_body`, which
//! runs the query on threads of its own and sends its rows as they come. `orrery_formats`
//! turns terms into bytes and serves the command line too.
//!
//! Changes come by `updates`, `graphs` and `sql`, past `guard`, and are made one after the other by `writes`.
//!
//! [`postgres`](orrery_postgres) speaks with PostgreSQL's clients beside these, [`flight`](orrery_flight) with those of Arrow Flight SQL.
//!
//! Where the database has users, `authentication` finds who sends a request, and `edge` puts what they may see and change beside it; `admin` is a
//! socket of its own. Without users the default address is loopback, where changes are taken from this machine's programs only. `tls` has HTTP within TLS, and what certificates of clients
//! say; `oidc` has tokens of an OpenID provider.

mod access_log;
mod admin;
mod admin_queries;
mod admin_usage;
mod body;
mod changes;
mod cluster;
mod conditions;
mod connections;
mod console;
mod description;
mod documents;
mod doorway;
mod edge;
mod error_response;
mod first_user;
mod flight;
mod form_parts;
mod forward;
mod graphs;
mod guard;
mod health;
mod maintenance;
mod media_type;
mod metrics_page;
mod min_commit;
mod multipart_form;
mod negotiate;
mod options;
mod output;
mod parameters;
mod partial;
mod passed_over;
mod paths;
mod postgres;
mod prefixes;
mod protocol;
mod proxies;
mod refusals;
mod request_times;
mod router;
mod second_try;
pub mod serve;
mod sql;
mod stalls;
mod state;
mod stream_body;
mod streamed;
mod temporary;
mod texts;
mod tls;
mod unread_body;
mod updates;
mod warming;
mod warnings;

pub use documents::{DOCUMENT_MEMORY_BYTES, Documents};
pub use options::{ClientTimes, HttpOptions, PORT_DEFAULT, ServerOptions};
pub use orrery_service::cluster::nodes::{Answers, Cluster, Work};
pub use orrery_service::endpoints::EndpointOptions;
pub use orrery_service::metrics::MetricsToken;
pub use orrery_service::oidc::{OidcError, OidcOptions, UserClaim};
pub use orrery_service::options::{DIVIDE_FROM, ServiceOptions};
pub use orrery_service::query_log::{QUERY_LOG_BYTES_MIN, QueryLogOptions};
pub use orrery_service::times::{NotATime, parse_time};
pub use orrery_service::traces::{OtlpError, OtlpOptions};
pub use proxies::{NotANetwork, TrustedProxies};
pub use router::{Writing, router};
pub use serve::{ServeError, Server, serve, stop_signal};
