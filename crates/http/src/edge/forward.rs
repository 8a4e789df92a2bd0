//! Forwards changes from a server that does not write to the one that does.
//!
//! ```text
//! PUT, PATCH, DELETE; POST to paths that only change ── as they come ─────────────> the writer
//! POST /sql, POST /sparql unless a plain query ── held ── handler ── "not here" ──> the writer
//! ```
//!
//! A request is forwarded once its user is known and its source may change data. It keeps its
//! credentials, which the writer checks again. What its head says of proxies is replaced by the
//! address that this server knows it came from: the writer believes that if this server is one of
//! its `--trust-proxy`. The writer's answer is passed on when this server has the commit, too, so
//! that a client that goes on reading here sees its own change. No request is forwarded twice.

use crate::answer::error_response::ErrorResponse as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use orrery_sparql::Engine;
use tokio::time::Instant;

use crate::answer::error_response::NotHere;
use crate::answer::streamed::streamed;
use crate::edge::guard::{HostRule, WriteRule};
use crate::edge::proxies::X_FORWARDED_FOR;
use crate::request::body::{BodyMemory, UploadPace, client_times};
use crate::request::media_type;
use crate::route::{Forwarding, Resources};
use orrery_service::errors::ServiceError;
use orrery_service::query_log::Peer;
use orrery_service::writes::freshness::Freshness;
use orrery_service::writes::seat::Seat;

/// Marks a request as forwarded by a server.
const FORWARDED: HeaderName = HeaderName::from_static("orrery-forwarded");
/// Headers of one connection, RFC 9110, 7.6.1.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// How long an answer waits for its commit to arrive here.
const OWN_COMMIT_WAIT: Duration = Duration::from_secs(2);
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// How often a pending forward checks that its target still writes, and how many checks in a row
/// may fail before it is given up: the target may hang, and its connections never end.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOKS_MAX: u32 = 4;
/// Most bytes of a body that are held in case it has to be sent twice.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Forwards requests to the writer.
#[derive(Debug)]
pub(crate) struct Forward {
    seat: Arc<Seat>,
    freshness: Arc<Freshness>,
    engine: Arc<Engine>,
    /// The rules about where changes may come from.
    rules: (WriteRule, HostRule),
    /// Certificate authorities for the writer, beside the public ones.
    authorities: Vec<reqwest::Certificate>,
    /// The routes of this server.
    resources: &'static Resources,
    client: OnceLock<reqwest::Client>,
}

impl Forward {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        seat: &Arc<Seat>,
        freshness: &Arc<Freshness>,
        rules: (WriteRule, HostRule),
        authorities: Vec<reqwest::Certificate>,
        resources: &'static Resources,
    ) -> Self {
        Self {
            seat: Arc::clone(seat),
            freshness: Arc::clone(freshness),
            engine: Arc::clone(engine),
            rules,
            authorities,
            resources,
            client: OnceLock::new(),
        }
    }

    /// The client of the writer, made at first use: most servers never forward anything.
    fn client(&self) -> reqwest::Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_WAIT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let authorities = self.authorities.iter().cloned();
        let client = authorities.fold(client, reqwest::ClientBuilder::add_root_certificate);
        let client = client.build()?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The address of the writer, if it is another server and the request was not forwarded yet.
    pub(crate) fn address_for(&self, request: &Request) -> Option<String> {
        let is_for_here = || request.headers().contains_key(FORWARDED);
        self.seat.address().filter(|_| !is_for_here())
    }

    /// Runs a request here if it only reads, and forwards it to the writer if not.
    pub(crate) async fn to_the_writer(
        &self,
        address: &str,
        request: Request,
        next: Next,
    ) -> Response {
        match kind(self.resources, &request) {
            Kind::Read => next.run(request).await,
            Kind::Change => {
                let (parts, body) = request.into_parts();
                self.send_rest(address, parts, Bytes::new(), body.into_data_stream())
                    .await
            }
            Kind::Perhaps => {
                let (parts, body) = request.into_parts();
                let (held, rest, _memory) = match self.held(&parts, body).await {
                    Ok(held) => held,
                    Err(error) => return error.into_response_for(&parts.headers),
                };
                if let Some(rest) = rest {
                    // Long texts are mostly changes, and the writer can read as well.
                    return self.send_rest(address, parts, held, rest).await;
                }
                let mut first = Request::new(Body::from(held.clone()));
                first.method_mut().clone_from(&parts.method);
                first.uri_mut().clone_from(&parts.uri);
                *first.version_mut() = parts.version;
                first.headers_mut().clone_from(&parts.headers);
                first.extensions_mut().clone_from(&parts.extensions);
                let answer = next.run(first).await;
                match answer.extensions().get::<NotHere>() {
                    None => answer,
                    Some(NotHere) => self.send(address, parts, held.into()).await,
                }
            }
        }
    }

    /// Forwards the held part of a body, and the rest as it comes, if its source may change data.
    async fn send_rest(
        &self,
        address: &str,
        parts: Parts,
        held: Bytes,
        rest: BodyDataStream,
    ) -> Response {
        let (writes, hosts) = &self.rules;
        if let Err(error) = writes.check(&parts, hosts) {
            return error.into_response_for(&parts.headers);
        }
        let first = futures::stream::iter((!held.is_empty()).then_some(Ok(held)));
        let rest = futures::stream::unfold(
            Some((rest, UploadPace::new(client_times(&parts)))),
            paced(client_times(&parts).body_max),
        );
        let body = reqwest::Body::wrap_stream(first.chain(rest));
        self.send(address, parts, body).await
    }

    /// Reads the beginning of a body within its time; returns it with the rest, if any, and its
    /// memory.
    async fn held(
        &self,
        parts: &Parts,
        body: Body,
    ) -> Result<(Bytes, Option<BodyDataStream>, BodyMemory), ServiceError> {
        let limit = client_times(parts).body_max;
        let deadline = Instant::now() + limit;
        let mut memory = BodyMemory::new(&self.engine);
        let mut rest = body.into_data_stream();
        let mut held = BytesMut::new();
        while held.len() <= HELD_BYTES_MAX {
            let next = tokio::time::timeout_at(deadline, rest.try_next()).await;
            match next.map_err(|_elapsed| ServiceError::BodyTooSlow { limit })? {
                Ok(Some(more)) => {
                    memory.resize(held.len() + more.len())?;
                    held.extend_from_slice(&more);
                }
                Ok(None) => return Ok((held.freeze(), None, memory)),
                Err(error) => {
                    return Err(ServiceError::bad_request(format!(
                        "the request's body broke off: {error}"
                    )));
                }
            }
        }
        Ok((held.freeze(), Some(rest), memory))
    }

    async fn send(&self, address: &str, parts: Parts, body: reqwest::Body) -> Response {
        match self.answer(address, &parts, body).await {
            Ok(response) => response,
            Err(error) => error.into_response_for(&parts.headers),
        }
    }

    async fn answer(
        &self,
        address: &str,
        parts: &Parts,
        body: reqwest::Body,
    ) -> Result<Response, ServiceError> {
        let failed = |error: reqwest::Error| ServiceError::WriterAway {
            address: address.to_owned(),
            reason: root_cause(&error),
        };
        let mut headers = parts.headers.clone();
        leave_out_connection(&mut headers);
        headers.insert(FORWARDED, HeaderValue::from_static("1"));
        say_client(&mut headers, parts.extensions.get().map(|&Peer(it)| it));
        let client = self.client().map_err(failed)?;
        let request = client
            .request(parts.method.clone(), url(address, &parts.uri))
            .headers(headers)
            .body(body);
        let mut sent = std::pin::pin!(request.send());
        let mut looks = 0;
        let answer = loop {
            if let Ok(answer) = tokio::time::timeout(LOOK_EVERY, sent.as_mut()).await {
                break answer.map_err(failed)?;
            }
            looks = match self.seat.address() {
                Some(now) if now == address => 0,
                _ => looks + 1,
            };
            if looks >= LOOKS_MAX {
                return Err(ServiceError::WriterAway {
                    address: address.to_owned(),
                    reason: "it does not write any more, and has not answered".to_owned(),
                });
            }
        };
        if let Some(commit) = commit_of(answer.headers()) {
            // The change stands even if its commit is late here.
            let here = self.freshness.wait_for(commit);
            let _ignored = tokio::time::timeout(OWN_COMMIT_WAIT, here).await;
        }
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
            leave_out_connection(headers);
        }
        let body = streamed(answer.bytes_stream().map_err(std::io::Error::other));
        response.body(body).map_err(|error| ServiceError::Internal {
            message: error.to_string(),
        })
    }
}

/// The rest of a body, and the pace at which it has come.
type Rest = Option<(BodyDataStream, UploadPace)>;

/// Passes a body on as it comes, which may be slow but not stall.
fn paced(
    stall_max: Duration,
) -> impl FnMut(Rest) -> BoxFuture<'static, Option<(std::io::Result<Bytes>, Rest)>> {
    move |rest| {
        async move {
            let (mut chunks, mut pace) = rest?;
            let asked = Instant::now();
            let broken =
                |error: ServiceError| Some((Err(std::io::Error::other(error.line())), None));
            let next = tokio::time::timeout(stall_max, chunks.next()).await;
            match next {
                Err(_elapsed) => broken(ServiceError::BodyTooSlow { limit: stall_max }),
                Ok(None) => None,
                Ok(Some(Err(error))) => Some((Err(std::io::Error::other(error)), None)),
                Ok(Some(Ok(chunk))) => match pace.came(chunk.len(), asked.elapsed()) {
                    Ok(()) => Some((Ok(chunk), Some((chunks, pace)))),
                    Err(error) => broken(error),
                },
            }
        }
        .boxed()
    }
}

/// Writes the client's address into a request's head, in place of what the client has written
/// there.
fn say_client(headers: &mut HeaderMap, client: Option<IpAddr>) {
    headers.remove(header::FORWARDED);
    headers.remove(X_FORWARDED_FOR);
    let client = client.and_then(|it| HeaderValue::try_from(it.to_string()).ok());
    if let Some(client) = client {
        headers.insert(X_FORWARDED_FOR, client);
    }
}

/// What a request may do, as far as its head says.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
    Perhaps,
}

fn kind(resources: &Resources, request: &Request) -> Kind {
    let resource = resources.find(request.uri().path());
    match resource.map(|(resource, _)| resource.forwarding(request.method())) {
        // An unknown path is refused here.
        None | Some(Forwarding::Here) => Kind::Read,
        Some(Forwarding::Writer) => Kind::Change,
        Some(Forwarding::ByText) => {
            let is = |essence| media_type::is_body(request.headers(), essence);
            match () {
                () if is("application/sparql-query") => Kind::Read,
                () if is("application/sparql-update") => Kind::Change,
                () => Kind::Perhaps,
            }
        }
    }
}

fn url(address: &str, uri: &Uri) -> String {
    let rest = uri.path_and_query().map_or("/", |rest| rest.as_str());
    format!("{}{rest}", address.trim_end_matches('/'))
}

fn leave_out_connection(headers: &mut HeaderMap) {
    for name in &OF_CONNECTION {
        headers.remove(name);
    }
}

/// The commit that the answer to a change names.
fn commit_of(headers: &HeaderMap) -> Option<u64> {
    let tag = headers.get(header::ETAG)?.to_str().ok()?;
    tag.trim_matches('"').parse().ok()
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;

    fn of(method: Method, address: &str, content_type: &str) -> Kind {
        let request = Request::builder()
            .method(method)
            .uri(address)
            .header(header::CONTENT_TYPE, content_type);
        kind(
            crate::routes::PUBLIC.resources(),
            &request.body(Body::empty()).unwrap(),
        )
    }

    #[test]
    fn what_only_reads_stays_and_what_only_changes_goes() {
        let form = "application/x-www-form-urlencoded";
        for (method, address, content_type, expected) in [
            (Method::GET, "/sparql?query=x", "", Kind::Read),
            (
                Method::POST,
                "/sparql",
                "application/sparql-query",
                Kind::Read,
            ),
            (
                Method::POST,
                "/sparql?min-commit=3",
                "application/sparql-update; charset=utf-8",
                Kind::Change,
            ),
            (Method::POST, "/sparql/", form, Kind::Perhaps),
            (Method::POST, "/explain", form, Kind::Read),
            (Method::POST, "/sql", "application/sql", Kind::Perhaps),
            (Method::PUT, "/graphs/a/b", "text/turtle", Kind::Change),
            (Method::GET, "/graphs/a/b", "", Kind::Read),
            (Method::DELETE, "/text", "", Kind::Change),
            (Method::POST, "/compact", "", Kind::Change),
            (Method::POST, "/cluster?node=4", "", Kind::Read),
            (Method::POST, "/nowhere", "", Kind::Read),
        ] {
            let found = of(method.clone(), address, content_type);
            assert_eq!(found, expected, "{method} {address} {content_type}");
        }
    }

    #[test]
    fn the_writer_hears_whose_a_request_is_from_the_server_and_not_from_its_client() {
        let told = |client: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                (X_FORWARDED_FOR, "198.51.100.7"),
                (X_FORWARDED_FOR, "127.0.0.1"),
                (header::FORWARDED, "for=127.0.0.1"),
            ] {
                headers.append(name, HeaderValue::from_static(value));
            }
            say_client(&mut headers, client.map(|it| it.parse().unwrap()));
            assert!(!headers.contains_key(header::FORWARDED));
            let lines = headers.get_all(X_FORWARDED_FOR).iter();
            let lines = lines.map(|line| line.to_str().unwrap().to_owned());
            lines.collect::<Vec<_>>()
        };
        assert_eq!(told(Some("203.0.113.5")), ["203.0.113.5"]);
        assert_eq!(told(Some("2001:db8::7")), ["2001:db8::7"]);
        assert!(told(None).is_empty());
    }

    #[test]
    fn the_commit_of_an_answer_is_that_of_a_change() {
        let of = |tag: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ETAG, HeaderValue::from_static(tag));
            commit_of(&headers)
        };
        assert_eq!(of("\"17\""), Some(17));
        assert_eq!(of("\"17-turtle-62a\""), None);
    }
}
