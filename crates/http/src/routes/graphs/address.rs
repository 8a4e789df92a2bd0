//! Parses the address of a graph store request: its graph, and its other parameters.

use crate::edge::around;
use crate::edge::guard::{host_of, scheme_of};
use crate::request::parameters::checked_iri;
use crate::request::parameters::{flag, unknown, url_parameters};
use crate::request::protocol::parse_durability;
use crate::routes::updates::CommitRequest;
use axum::http::request::Parts;
use orrery_service::errors::ServiceError;

/// The path of the protocol.
pub(super) const GRAPHS: &str = "/graphs";

/// The name of the body in messages about errors in its data.
pub(super) const BODY_NAME: &str = "the request's body";

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The default graph, or a graph with a name.
    Graph(Option<String>),
    /// No graph was named.
    Store,
}

/// The target and the other parameters of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) target: Target,
    /// None if the address has no such parameter.
    pub(super) is_relaxed: Option<bool>,
    pub(super) format: Option<String>,
    pub(super) at: Option<String>,
    /// Whether a bulk load may give up old snapshots that are retained.
    pub(super) forgets_history: bool,
}

impl Address {
    pub(super) fn parse(parts: &Parts) -> Result<Self, ServiceError> {
        let mut address = Self {
            target: Target::Store,
            is_relaxed: None,
            format: None,
            at: None,
            forgets_history: false,
        };
        let mut named = 0;
        for (name, value) in url_parameters(parts.uri.query())? {
            match name.as_str() {
                "default" => {
                    named += 1;
                    address.target = Target::Graph(None);
                }
                "graph" => {
                    named += 1;
                    address.target = Target::Graph(Some(checked_iri("graph", value)?));
                }
                "durability" => address.is_relaxed = Some(parse_durability(&value)?),
                "format" | "output" => address.format = Some(value),
                "at" => address.at = Some(value),
                "forget-history" => address.forgets_history = flag(&name, &value)?,
                name => return Err(unknown(name, KNOWN)),
            }
        }
        let path = parts.uri.path();
        let rest = path.strip_prefix(GRAPHS).unwrap_or_default();
        if !rest.trim_start_matches('/').is_empty() {
            named += 1;
            let host = host_of(parts)?;
            address.target = Target::Graph(Some(graph_of_path(format!(
                "{}://{host}{path}",
                scheme_of(parts)
            ))?));
        }
        if named > 1 {
            return Err(ServiceError::bad_request(
                "the request names more than one graph; name it once, by ?graph=, ?default or the path",
            ));
        }
        Ok(address)
    }

    /// The commit options of a change.
    pub(super) fn commit_request(&self, parts: &Parts) -> Result<CommitRequest, ServiceError> {
        let mut request = CommitRequest::new(&parts.headers, self.is_relaxed.unwrap_or(false))?;
        if self.forgets_history {
            around::require_administrator(parts, "give up old states")?;
            request.forgets_history = true;
        }
        Ok(request)
    }

    /// The graph, where the method needs one.
    pub(super) fn graph(&self) -> Result<Option<&str>, ServiceError> {
        match &self.target {
            Target::Graph(name) => Ok(name.as_deref()),
            Target::Store => Err(ServiceError::bad_request(
                "the request names no graph; add ?graph=IRI or ?default",
            )),
        }
    }
}

pub(super) fn graph_of_path(iri: String) -> Result<String, ServiceError> {
    match oxrdf::NamedNode::new(&iri) {
        Ok(_) => Ok(iri),
        Err(error) => Err(ServiceError::bad_request(format!(
            "`{iri}` is no graph's IRI: {error}"
        ))),
    }
}

const KNOWN: &str = "graph, default, format, at for reading; graph, default, durability, forget-history for changes";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::error_response::ErrorResponse as _;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::http::StatusCode;

    fn address(uri: &str) -> Result<Target, StatusCode> {
        let request = Request::builder().uri(uri).header("host", "localhost:7878");
        let mut request = request.body(Body::empty()).unwrap();
        let hosts =
            crate::edge::guard::HostRule::new("127.0.0.1:7878".parse().unwrap(), false, &[]);
        hosts.check(&mut request).unwrap();
        Address::parse(&request.into_parts().0)
            .map(|address| address.target)
            .map_err(|error| error.status())
    }

    #[test]
    fn a_graph_is_named_once() {
        let named = |iri: &str| Ok(Target::Graph(Some(iri.to_owned())));
        assert_eq!(address("/graphs"), Ok(Target::Store));
        assert_eq!(address("/graphs/"), Ok(Target::Store));
        assert_eq!(address("/graphs?default"), Ok(Target::Graph(None)));
        assert_eq!(address("/graphs?default="), Ok(Target::Graph(None)));
        assert_eq!(address("/graphs?graph=http://e/g"), named("http://e/g"));
        assert_eq!(
            address("/graphs?graph=http%3A%2F%2Fe%2Fg"),
            named("http://e/g")
        );
        assert_eq!(
            address("/graphs?graph=http://e/%2531"),
            named("http://e/%31")
        );
        assert_eq!(
            address("/graphs/a/1.ttl"),
            named("http://localhost:7878/graphs/a/1.ttl")
        );
        for bad in [
            "/graphs?graph=relative",
            "/graphs?graph=",
            "/graphs?graph=http://e/%3E%20x",
            "/graphs?graph=http://e/g&default",
            "/graphs?graph=http://e/g&graph=http://e/g",
            "/graphs/a?graph=http://e/g",
            "/graphs?default&garph=http://e/g",
            "/graphs?graph=http://e/%zz",
        ] {
            assert_eq!(address(bad), Err(StatusCode::BAD_REQUEST), "{bad}");
        }
    }
}
