//! SPARQL protocol over HTTP: formats, limits, console.
//!
//! A request passes [`mod@serve`] (connections), the router (paths, log, gzip), `protocol` (what
//! is asked), `negotiate` (in which form), `admission` (when), and `stream_body`, which
//! runs the query on threads of its own and sends its rows as they come. [`format`](mod@format)
//! turns terms into bytes and serves the command line too.
//!
//! There is no access control and no TLS here: the default address is loopback, and a
//! server for others stands behind a proxy that has both.

mod access_log;
mod admission;
mod console;
mod description;
mod endpoints;
mod errors;
pub mod format;
mod health;
mod negotiate;
mod options;
mod protocol;
mod query_threads;
mod router;
pub mod serve;
mod stream_body;

pub use endpoints::EndpointOptions;
pub use options::{HttpOptions, PORT_DEFAULT, ServerOptions};
pub use router::router;
pub use serve::{ServeError, Server, serve, stop_signal};
