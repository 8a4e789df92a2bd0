//! The edge, a middleware around every request: its host, its user, OPTIONS, browser headers, tags
//! of compressed answers.
//!
//! It stands inside the access log, so that its refusals are logged, and outside of compression.

use crate::answer::error_response::ErrorResponse as _;
use crate::edge::doorway::Doorway;
use crate::edge::guard::HostRule;
use crate::request::conditions::mark_compressed;
use crate::route::Resources;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use orrery_access::{Name, UserId};
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

/// Answers to the preflight requests of browsers for pages of another origin (CORS).
const PREFLIGHT_METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const PREFLIGHT_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Content-Type, Content-Encoding, If-Match, If-None-Match, If-Unmodified-Since",
);
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("86400");
/// Headers that pages of other origins may read beside the standard ones.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Allow, ETag, Location, Orrery-Cost, Orrery-Partial, Orrery-Tag, Orrery-Warning, Retry-After, Server-Timing",
);

/// What the edge of one server needs: its rules, users, logs and routes.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) hosts: HostRule,
    pub(crate) allow_any_origin: bool,
    /// None where the database has no users.
    pub(crate) authentication: Option<Arc<Authentication>>,
    /// The audit log, which records denied requests.
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// The token that a scraper of `/metrics` may send in place of a user's credentials.
    pub(crate) metrics_token: Option<MetricsToken>,
    /// The routes of this server.
    pub(crate) resources: &'static Resources,
    /// The waiting and forwarding of requests; none where the server does neither.
    pub(crate) doorway: Option<Arc<Doorway>>,
}

/// The asker of a request, and the graphs they may see; nothing outside of [`around`].
pub(crate) fn scope(parts: &Parts) -> ReadScope {
    let scope = parts.extensions.get::<ReadScope>().cloned();
    scope.unwrap_or_else(|| ReadScope::only(Asker::Anonymous, GraphNames::default()))
}

/// The values of `Authorization`; none for a value that is no text.
pub(crate) fn authorization(headers: &HeaderMap) -> impl Iterator<Item = Option<&str>> {
    let values = headers.get_all(header::AUTHORIZATION).iter();
    values.map(|value| value.to_str().ok())
}

/// The credentials of a request, to be checked again while it runs; none where the database has no
/// users.
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

/// Marks a request to `/metrics` that has its token.
#[derive(Debug, Clone, Copy)]
struct Scraper;

/// Refuses who may not read the metrics: with users, all but administrators and the scraper.
///
/// `needs_token`: there is a token, which then is required without users, too.
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

/// The snapshot that a request reads by default, if rules by query apply to its sender.
pub(crate) fn ruled_state(parts: &Parts) -> Option<&Arc<Snapshot>> {
    ruled(parts).map(|ruled| &ruled.state)
}

/// The graphs that rules by query found for the sender of a request, where there are such rules.
///
/// The sender sees them in the snapshot of the rules, not in a later one where they may see less.
pub(crate) fn ruled(parts: &Parts) -> Option<&Ruled> {
    parts.extensions.get()
}

/// The graphs that a change may read and write.
///
/// # Errors
/// When the sender may change nothing, before anything of the request is read or fetched.
pub(crate) fn update_options(parts: &Parts) -> Result<UpdateOptions, ServiceError> {
    require_changes(parts)?;
    let mut options = UpdateOptions::of(scope(parts));
    if let Some(rights) = rights(parts) {
        options.writes = rights.writes.clone();
    }
    Ok(options)
}

/// Refuses a sender who may change nothing, before anything of the request is read.
pub(crate) fn require_changes(parts: &Parts) -> Result<(), ServiceError> {
    match rights(parts) {
        Some(rights) if rights.writes.is_none() => Err(rights.refusal("change any graph")),
        Some(_) => Ok(()),
        None => Ok(scope(parts).require_all_graphs("change data")?),
    }
}

/// The user who sends a request that needs one; `what` they want, such as "change who may do what",
/// is for the refusal.
pub(crate) fn require_user(parts: &Parts, what: &str) -> Result<UserId, ServiceError> {
    let rights = rights(parts).ok_or_else(|| {
        ServiceError::forbidden("the database has no users; start the server with --auth")
    })?;
    rights.id.ok_or_else(|| rights.refusal(what))
}

/// Refuses a sender who may not change all graphs, for changes to the database as a whole.
pub(crate) fn require_all_graphs(parts: &Parts) -> Result<(), ServiceError> {
    let options = update_options(parts)?;
    match rights(parts) {
        Some(rights) if !options.writes.is_all() => Err(rights.refusal("change all graphs")),
        _ => Ok(()),
    }
}

/// The rights of a user; `None` where the database has no users, and everyone has all rights.
pub(crate) fn rights(parts: &Parts) -> Option<&Rights> {
    parts.extensions.get::<Rights>()
}

/// Refuses all but administrators; `what` they want is for the refusal: "compact the database".
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
                // Other users get other answers at the same address.
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

/// Authenticates a request that asks for a commit, and waits for that commit.
///
/// Unknown senders do not wait, and do not learn which commit is here.
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
        // Checking a password takes time and counts as a guess: once for each snapshot that has
        // users.
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

/// The audit log's facts about a request, should it be denied.
struct Knock {
    audit: Arc<AuditLog>,
    user: Option<Name>,
    client: Option<IpAddr>,
    method: Method,
    path: String,
}

impl Knock {
    /// Reads them from a request, admitted or not.
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

    /// Logs a denied request: 401, 403, and 429 for guessed passwords and used-up budgets.
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

/// Whether everyone gets the same answer to this request.
fn sees_all(request: &Request) -> bool {
    let extensions = request.extensions();
    let scope = extensions.get::<ReadScope>();
    extensions.get::<Rights>().is_none() && scope.is_some_and(|scope| scope.graphs().is_none())
}

impl Edge {
    /// Checks the host and the credentials of a request; notes the user and their scope with it.
    async fn admit(&self, request: &mut Request) -> Result<(), ServiceError> {
        self.hosts.check(request)?;
        // Browsers send OPTIONS without credentials, and so do monitors that ask for the health.
        let is_for_all =
            request.method() == Method::OPTIONS || self.resources.asks_nobody(request.uri().path());
        let is_scraper = self.resources.is_scraped(request.uri().path())
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
                    // Boxed: large, and rare.
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
            // No user is known, and everyone may see all, unless the embedder of the router has set
            // a scope.
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

    /// Answers OPTIONS: the methods of a path (RFC 9110, 9.3.7), and those for other origins
    /// (CORS).
    fn options(&self, request: &Request) -> Response {
        let path = request.uri().path();
        let Some((resource, _)) = self.resources.find(path) else {
            let path = path.to_owned();
            return ServiceError::NotFound { path }.into_response_for(request.headers());
        };
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        if let Ok(methods) = HeaderValue::from_str(resource.allowed()) {
            headers.insert(header::ALLOW, methods);
        }
        if resource.has(&Method::PATCH) {
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

    /// Adds the security headers for browsers, and those of CORS if wanted.
    fn complete(&self, headers: &mut HeaderMap) {
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        // The console sets its own policy; data is never a page.
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
