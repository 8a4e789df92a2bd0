//! The paths of the server, and the methods that each has.

use crate::errors::ServerError;
use axum::http::Method;

/// Where the graph store protocol is spoken.
pub(crate) const GRAPHS: &str = "/graphs";

/// Of graphs.
pub(crate) const GRAPH_METHODS: &str = "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS";

pub(crate) const READ: &str = "GET, HEAD, OPTIONS";

pub(crate) const ASK: &str = "GET, HEAD, POST, OPTIONS";

pub(crate) const DO: &str = "POST, OPTIONS";

/// Of the server as a whole, for `OPTIONS *`.
const ALL: &str = "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS";

/// The methods of a path; None where there is nothing.
pub(crate) fn methods_of(path: &str) -> Option<&'static str> {
    match path {
        "/" | "/console.js" | "/console.css" | "/health" | "/changes" => Some(READ),
        "/sparql" | "/sparql/" | "/explain" | "/prefixes" => Some(ASK),
        "/checkpoint" | "/compact" | "/sql" => Some(DO),
        "*" => Some(ALL),
        path => {
            let rest = path.strip_prefix(GRAPHS)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(GRAPH_METHODS)
        }
    }
}

pub(crate) fn method_not_allowed(method: &Method, path: &str) -> ServerError {
    ServerError::MethodNotAllowed {
        method: method.to_string(),
        allowed: methods_of(path).unwrap_or(READ),
    }
}
