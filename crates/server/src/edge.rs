//! What stands around every request: whom it is addressed to, OPTIONS, headers for browsers, tags of compressed answers.
//!
//! It comes after the access log, so that what is refused here is logged, and before compression.

use crate::conditions::mark_compressed;
use crate::errors::ServerError;
use crate::guard::HostRule;
use crate::paths::{self, methods_of};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use orrery_sparql::check_may_write;
use orrery_storage::{Asker, GraphNames, ReadScope};

/// What a browser asks before it lets a page of another origin send more than a simple request.
const PREFLIGHT_METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const PREFLIGHT_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Content-Type, Content-Encoding, If-Match, If-None-Match, If-Unmodified-Since",
);
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("86400");
/// What pages of other origins may read of an answer's head beside what they always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Allow, ETag, Location, Orrery-Tag, Orrery-Warning, Retry-After, Server-Timing",
);

/// The rules of one server.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) hosts: HostRule,
    pub(crate) allow_any_origin: bool,
}

/// Who asks, and what they may see; nothing where a request did not come through [`around`].
pub(crate) fn scope(parts: &Parts) -> ReadScope {
    let scope = parts.extensions.get::<ReadScope>().cloned();
    scope.unwrap_or_else(|| ReadScope::only(Asker::Anonymous, GraphNames::default()))
}

/// The scope of a request that would change data.
///
/// # Errors
/// When it may not, which is found before anything of the request is read or fetched.
pub(crate) fn writing_scope(parts: &Parts) -> Result<ReadScope, ServerError> {
    let scope = scope(parts);
    check_may_write(&scope)?;
    Ok(scope)
}

/// Middleware: answers what needs no handler, and completes the heads of all answers.
pub(crate) async fn around(edge: Edge, mut request: Request, next: Next) -> Response {
    // There is no access control yet: nobody is known, and all may see all, unless whoever serves the router knows better.
    let extensions = request.extensions_mut();
    extensions.get_or_insert_with(|| ReadScope::all_graphs(Asker::Anonymous));
    let sees_all = extensions
        .get::<ReadScope>()
        .is_some_and(|scope| scope.graphs().is_none());
    let mut response = match edge.hosts.check(&mut request) {
        Err(error) => error.into_response_for(request.headers()),
        Ok(()) if request.method() == Method::OPTIONS => edge.options(&request),
        Ok(()) => next.run(request).await,
    };
    if !sees_all {
        // The same address has other answers for others.
        let private = HeaderValue::from_static("private, no-cache");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, private);
    }
    edge.complete(response.headers_mut());
    response
}

impl Edge {
    /// OPTIONS: what may be done (RFC 9110, 9.3.7), and what a page of another origin may.
    fn options(&self, request: &Request) -> Response {
        let path = request.uri().path();
        let Some(methods) = methods_of(path) else {
            let path = path.to_owned();
            return ServerError::NotFound { path }.into_response_for(request.headers());
        };
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, HeaderValue::from_static(methods));
        if methods == paths::GRAPH_METHODS {
            headers.insert(
                "accept-patch",
                HeaderValue::from_static("application/sparql-update"),
            );
        }
        let is_preflight = request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if self.allow_any_origin && is_preflight {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, PREFLIGHT_METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, PREFLIGHT_HEADERS);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS);
        }
        response
    }

    /// Headers that keep a browser from making more of an answer than it is, and CORS if wanted.
    fn complete(&self, headers: &mut HeaderMap) {
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        // The console brings its own policy; data is never a page.
        headers
            .entry(header::CONTENT_SECURITY_POLICY)
            .or_insert(HeaderValue::from_static("default-src 'none'; sandbox"));
        if self.allow_any_origin {
            headers.insert(
                header::ACCESS_CONTROL_ALLOW_ORIGIN,
                HeaderValue::from_static("*"),
            );
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
        mark_compressed(headers);
    }
}
