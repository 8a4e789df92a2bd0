//! SPARQL protocol and SQL over HTTP: formats, limits, console.
//!
//! A request passes [`mod@serve`] (connections), the router (paths, log, gzip), `edge` (by whom, from where), `body`, `protocol` (what
//! is asked), `conditions`, `negotiate` (in which form), `admission` (when), and `stream_body`, which
//! runs the query on threads of its own and sends its rows as they come. [`format`](mod@format)
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
mod admission;
mod audit;
mod authentication;
mod body;
mod callers;
mod changes;
mod cluster;
mod conditions;
mod connections;
mod console;
mod description;
mod documents;
mod doorway;
mod edge;
mod endpoints;
mod errors;
mod feeds;
mod first_user;
mod flight;
mod form_parts;
pub mod format;
mod forward;
mod freshness;
mod graph_rules;
mod graphs;
mod guard;
mod health;
mod hosting;
mod load_help;
mod maintenance;
mod media_type;
mod metering;
mod metrics;
mod metrics_page;
mod multipart_form;
mod negotiate;
mod nodes;
mod oidc;
mod options;
mod output;
mod parameters;
mod passed_over;
mod paths;
mod port_statements;
mod port_writer;
mod postgres;
mod prefixes;
mod protocol;
mod proxies;
mod query_log;
mod query_threads;
mod readiness;
mod refusals;
mod request_times;
mod router;
mod running_queries;
mod seat;
mod second_try;
pub mod serve;
mod sql;
mod sql_failure;
mod stages;
mod stalls;
mod standby;
mod standing;
mod state;
mod stream_body;
mod streamed;
mod temporary;
mod texts;
mod tls;
mod traces;
mod unread_body;
mod updates;
mod warming;
mod warnings;
mod writes;

pub use documents::{DOCUMENT_MEMORY_BYTES, Documents};
pub use endpoints::EndpointOptions;
pub use metrics::MetricsToken;
pub use nodes::{Answers, Cluster, Work};
pub use oidc::{OidcError, OidcOptions, UserClaim};
pub use options::{ClientTimes, DIVIDE_FROM, HttpOptions, PORT_DEFAULT, ServerOptions};
pub use proxies::{NotANetwork, TrustedProxies};
pub use query_log::{QUERY_LOG_BYTES_MIN, QueryLogOptions};
pub use router::{Writing, router};
pub use serve::{ServeError, Server, serve, stop_signal};
pub use traces::{OtlpError, OtlpOptions};
