//! What stands around every request: whom it is addressed to, OPTIONS, headers for browsers, tags of compressed answers.
//!
//! It comes after the access log, so that what is refused here is logged, and before compression.

use crate::answer::error_response::ErrorResponse as _;
use crate::edge::doorway::Doorway;
use crate::edge::guard::HostRule;
use crate::paths;
use crate::request::conditions::mark_compressed;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use orrery_access::Name;
use orrery_service::audit::{AuditLog, Denied};
use orrery_service::errors::ServiceError;
use orrery_service::metrics::MetricsToken;
use orrery_service::query_log::Peer;
use orrery_service::users::authentication::{Asked, Authentication, Rights, Ruled};
use orrery_service::users::standing::Standing;
use orrery_sparql::UpdateOptions;
use orrery_storage::{Asker, GraphNames, ReadScope, Snapshot};
use orrery_tls::PeerNames;
use std::net::IpAddr;
use std::sync::Arc;

/// What a browser asks before it lets a page of another origin send more than a simple request.
const PREFLIGHT_METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const PREFLIGHT_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Content-Type, Content-Encoding, If-Match, If-None-Match, If-Unmodified-Since",
);
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("86400");
/// What pages of other origins may read of an answer's head beside what they always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Allow, ETag, Location, Orrery-Cost, Orrery-Partial, Orrery-Tag, Orrery-Warning, Retry-After, Server-Timing",
);

/// The rules of one server.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) hosts: HostRule,
    pub(crate) allow_any_origin: bool,
    /// None where the database has no users.
    pub(crate) authentication: Option<Arc<Authentication>>,
    /// Where it is written down who was denied something.
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// What a scraper of `/metrics` may say instead of who it is.
    pub(crate) metrics_token: Option<MetricsToken>,
    /// The methods of a path.
    pub(crate) methods_of: fn(&str) -> Option<&'static str>,
    /// What requests pass that are waiting for a state, or for another server; none where there are none of these.
    pub(crate) doorway: Option<Arc<Doorway>>,
}

/// Who asks, and what they may see; nothing where a request did not come through [`around`].
pub(crate) fn scope(parts: &Parts) -> ReadScope {
    let scope = parts.extensions.get::<ReadScope>().cloned();
    scope.unwrap_or_else(|| ReadScope::only(Asker::Anonymous, GraphNames::default()))
}

/// The values of `Authorization`; none for one that is no text.
pub(crate) fn authorization(headers: &HeaderMap) -> impl Iterator<Item = Option<&str>> {
    let values = headers.get_all(header::AUTHORIZATION).iter();
    values.map(|value| value.to_str().ok())
}

/// The credentials of a request, to be asked again while it goes on; none where the database has no users.
pub(crate) fn standing(
    authentication: Option<&Arc<Authentication>>,
    parts: &Parts,
) -> Option<Standing> {
    let certificate = parts.extensions.get().cloned();
    let values = authorization(&parts.headers);
    Some(Standing::new(authentication?, values, certificate))
}

fn has_token(token: &MetricsToken, headers: &HeaderMap) -> bool {
    let sent = authorization(headers).next().flatten();
    sent.is_some_and(|sent| token.is_in(sent))
}

/// Stands with a request to `/metrics` that has the token for it, and with no other.
#[derive(Debug, Clone, Copy)]
struct Scraper;

/// Refuses who may not read what the server counts: `needs_token` where there is a token for it, which others than administrators need.
pub(crate) fn require_metrics(parts: &Parts, needs_token: bool) -> Result<(), ServiceError> {
    if parts.extensions.get::<Scraper>().is_some() {
        return Ok(());
    }
    match rights(parts) {
        Some(_) => require_administrator(parts, "read what the server counts"),
        None if needs_token => Err(ServiceError::unknown_asker(
            "what the server counts is for who has the token of --metrics-token-file; send it (Bearer)",
        )),
        None => Ok(()),
    }
}

/// The state that a request reads that names none, where rules by query are about who sends it.
pub(crate) fn ruled_state(parts: &Parts) -> Option<&Arc<Snapshot>> {
    ruled(parts).map(|ruled| &ruled.state)
}

/// How rules by query found graphs for who sends a request, where there are such rules: what they see is in the state of these, not in a later one in which they may
/// see less.
pub(crate) fn ruled(parts: &Parts) -> Option<&Ruled> {
    parts.extensions.get()
}

/// What a request that would change data may see and change.
///
/// # Errors
/// When it may change nothing, which is found before anything of the request is read or fetched.
pub(crate) fn update_options(parts: &Parts) -> Result<UpdateOptions, ServiceError> {
    let mut options = UpdateOptions::of(scope(parts));
    if let Some(rights) = rights(parts) {
        if rights.writes.is_none() {
            return Err(rights.refusal("change any graph"));
        }
        options.writes = rights.writes.clone();
    } else {
        options.query.scope.require_all_graphs("change data")?;
    }
    Ok(options)
}

/// Refuses who may not change all graphs: what changes the database as a whole does not ask of which graph it is.
pub(crate) fn require_all_graphs(parts: &Parts) -> Result<(), ServiceError> {
    let options = update_options(parts)?;
    match rights(parts) {
        Some(rights) if !options.writes.is_all() => Err(rights.refusal("change all graphs")),
        _ => Ok(()),
    }
}

/// What a user has a right to; `None` where the database has no users, and everybody has.
pub(crate) fn rights(parts: &Parts) -> Option<&Rights> {
    parts.extensions.get::<Rights>()
}

/// Refuses what only who administers the database may do, such as "compact the database".
pub(crate) fn require_administrator(parts: &Parts, what: &str) -> Result<(), ServiceError> {
    match rights(parts) {
        Some(rights) if !rights.administers => Err(rights.refusal(what)),
        _ => Ok(()),
    }
}

/// Middleware: answers what needs no handler, and completes the heads of all answers.
pub(crate) async fn around(edge: Edge, mut request: Request, next: Next) -> Response {
    let admitted = edge.admit(&mut request).await;
    let knock = edge.audit.as_ref().map(|audit| Knock::of(audit, &request));
    let mut response = match admitted {
        Err(error) => error.into_response_for(request.headers()),
        Ok(()) if request.method() == Method::OPTIONS => edge.options(&request),
        Ok(()) => {
            let sees_all = sees_all(&request);
            let mut response = match &edge.doorway {
                Some(doorway) => doorway.pass(request, next).await,
                None => next.run(request).await,
            };
            if !sees_all {
                let private = HeaderValue::from_static("private, no-cache");
                let headers = response.headers_mut();
                // The same address has other answers for others.
                headers.entry(header::CACHE_CONTROL).or_insert(private);
            }
            response
        }
    };
    if let Some(knock) = knock {
        knock.answered(response.status());
    }
    edge.complete(response.headers_mut());
    response
}

/// Who sends a request that asks for a state, and what they may do in that. Who is not known does not wait, and is not told which state is here.
async fn asked_in_time(
    doorway: &Doorway,
    authentication: &Authentication,
    headers: HeaderMap,
    certificate: Option<PeerNames>,
    commit: u64,
) -> Result<Asked, ServiceError> {
    let asked = || authentication.asked(authorization(&headers), certificate.as_ref());
    let state = doorway.newest();
    match asked().await {
        // A password costs time to check, and counts as a guess: once for each state that knows users.
        Err(unknown @ ServiceError::UnknownAsker { .. }) => {
            doorway.look_for(commit).await;
            if Arc::ptr_eq(&state, &doorway.newest()) {
                return Err(unknown);
            }
            asked().await?;
        }
        known => drop(known?),
    }
    doorway.wait_for(commit).await?;
    asked().await
}

/// What the audit log has of a request that is denied.
struct Knock {
    audit: Arc<AuditLog>,
    user: Option<Name>,
    client: Option<IpAddr>,
    method: Method,
    path: String,
}

impl Knock {
    /// Of a request that was admitted or not.
    fn of(audit: &Arc<AuditLog>, request: &Request) -> Self {
        let extensions = request.extensions();
        let rights = extensions.get::<Rights>();
        Self {
            audit: Arc::clone(audit),
            user: rights.and_then(|rights| rights.user.clone()),
            client: extensions.get().map(|&Peer(address)| address),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
        }
    }

    /// Writes it down if it was denied: 401 and 403, and 429 to who guesses at passwords or has used up what they may.
    fn answered(&self, status: StatusCode) {
        let is_denied = matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
        );
        if is_denied {
            self.audit.denied(&Denied {
                user: self.user.as_ref().map(Name::as_str),
                client: self.client,
                method: self.method.as_str(),
                path: &self.path,
                status: status.as_u16(),
            });
        }
    }
}

/// Whether everybody gets the answer that this request gets.
fn sees_all(request: &Request) -> bool {
    let extensions = request.extensions();
    let scope = extensions.get::<ReadScope>();
    extensions.get::<Rights>().is_none() && scope.is_some_and(|scope| scope.graphs().is_none())
}

impl Edge {
    /// Notes with a request whom it is addressed to, who asks, and what they may see.
    async fn admit(&self, request: &mut Request) -> Result<(), ServiceError> {
        self.hosts.check(request)?;
        // A browser asks what it may do without saying for whom, and whoever looks after servers whether this one is up.
        let is_for_all = request.method() == Method::OPTIONS
            || [paths::HEALTH, paths::READY].contains(&request.uri().path());
        let is_scraper = request.uri().path() == paths::METRICS
            && self
                .metrics_token
                .as_ref()
                .is_some_and(|token| has_token(token, request.headers()));
        if is_scraper {
            request.extensions_mut().insert(Scraper);
        }
        let doorway = self.doorway.as_ref();
        let doorway = doorway.filter(|_| !is_for_all && !is_scraper);
        let waits = match doorway {
            Some(doorway) => doorway
                .missing_commit(request)?
                .map(|commit| (doorway, commit)),
            None => None,
        };
        match &self.authentication {
            Some(authentication) if !is_for_all && !is_scraper => {
                let asked = match waits {
                    None => {
                        authentication
                            .asked(authorization(request.headers()), request.extensions().get())
                            .await?
                    }
                    // Large, and rare.
                    Some((doorway, commit)) => {
                        let headers = request.headers().clone();
                        let certificate = request.extensions().get().cloned();
                        let asked =
                            asked_in_time(doorway, authentication, headers, certificate, commit);
                        Box::pin(asked).await?
                    }
                };
                request.extensions_mut().insert(asked.scope);
                request.extensions_mut().insert(asked.rights);
                if let Some(ruled) = asked.ruled {
                    request.extensions_mut().insert(ruled);
                }
            }
            // Nobody is known, and all may see all, unless whoever serves the router knows better.
            _ => {
                if let Some((doorway, commit)) = waits {
                    doorway.wait_for(commit).await?;
                }
                let extensions = request.extensions_mut();
                extensions.get_or_insert_with(|| ReadScope::all_graphs(Asker::Anonymous));
            }
        }
        Ok(())
    }

    /// OPTIONS: what may be done (RFC 9110, 9.3.7), and what a page of another origin may.
    fn options(&self, request: &Request) -> Response {
        let path = request.uri().path();
        let Some(methods) = (self.methods_of)(path) else {
            let path = path.to_owned();
            return ServiceError::NotFound { path }.into_response_for(request.headers());
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
