//! The paths of the server, and the methods that each has.

use axum::http::Method;
use orrery_service::errors::ServiceError;

/// Where the graph store protocol is spoken.
pub(crate) const GRAPHS: &str = "/graphs";

/// What tells whether the server is up.
pub(crate) const HEALTH: &str = "/health";

/// What tells whether the server is to be asked, and may be counted on by others.
pub(crate) const READY: &str = "/health/ready";

/// The index of texts.
pub(crate) const TEXTS: &str = "/text";

/// The nodes of a cluster.
pub(crate) const CLUSTER: &str = "/cluster";

/// What the server counts, for Prometheus; there and on the admin socket.
pub(crate) const METRICS: &str = "/metrics";

/// What the admin socket tells and takes.
pub(crate) const ACCESS: &str = "/admin/access";

/// What each user used.
pub(crate) const USAGE: &str = "/admin/usage";

/// What runs now.
pub(crate) const QUERIES: &str = "/queries";

/// One of those.
pub(crate) const QUERY: &str = "/queries/{id}";

/// Of graphs.
pub(crate) const GRAPH_METHODS: &str = "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS";

pub(crate) const READ: &str = "GET, HEAD, OPTIONS";

pub(crate) const ASK: &str = "GET, HEAD, POST, OPTIONS";

pub(crate) const DO: &str = "POST, OPTIONS";

const MAKE: &str = "GET, HEAD, POST, DELETE, OPTIONS";

const END: &str = "DELETE, OPTIONS";

/// Of the server as a whole, for `OPTIONS *`.
const ALL: &str = "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS";

/// The methods of a path; None where there is nothing.
pub(crate) fn methods_of(path: &str) -> Option<&'static str> {
    match path {
        "/" | "/console.js" | "/console.css" | "/changes" | HEALTH | READY | METRICS => Some(READ),
        "/sparql" | "/sparql/" | "/explain" | "/prefixes" => Some(ASK),
        "/checkpoint" | "/compact" | "/sql" => Some(DO),
        TEXTS | CLUSTER => Some(MAKE),
        "*" => Some(ALL),
        path => {
            let rest = path.strip_prefix(GRAPHS)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(GRAPH_METHODS)
        }
    }
}

/// A path without what is different in each request, for traces; None where there is nothing.
pub(crate) fn route_of(path: &str) -> Option<&str> {
    match path {
        path if path.starts_with("/graphs/") => Some("/graphs/{graph}"),
        path if methods_of(path).is_some() => Some(path),
        _ => None,
    }
}

/// The same of the admin socket.
pub(crate) fn admin_methods_of(path: &str) -> Option<&'static str> {
    match path {
        ACCESS | "*" => Some(ASK),
        USAGE | QUERIES | METRICS => Some(READ),
        path => {
            let number = path.strip_prefix(QUERIES)?.strip_prefix('/')?;
            (!number.is_empty() && !number.contains('/')).then_some(END)
        }
    }
}

pub(crate) fn method_not_allowed(method: &Method, path: &str) -> ServiceError {
    let allowed = methods_of(path).or_else(|| admin_methods_of(path));
    ServiceError::MethodNotAllowed {
        method: method.to_string(),
        allowed: allowed.unwrap_or(READ),
    }
}
