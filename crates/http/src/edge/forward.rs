//! Changes that come to a server which does not write go to the one that does.
//!
//! ```text
//! PUT, PATCH, DELETE; POST to paths that only change ── as they come ──────────────> the writer
//! POST /sql, POST /sparql that is no plain query ── held ── handler ── "not here" ──> the writer
//! ```
//!
//! A request is sent on when it is known here who asks, and that changes are taken from where it comes; it goes on as it came, with its credentials: the writer asks who asks,
//! too. What its head says of proxies is replaced by the address that it came from, as this server knows it: the writer believes it where this server is one of its
//! `--trust-proxy`. What it answers is given back once this server has the commit, too, so
//! that who goes on reading here sees what they wrote. A request that was forwarded once is not forwarded again.

use crate::answer::error_response::ErrorResponse as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
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
use crate::paths;
use crate::request::body::{BodyMemory, UploadPace, client_times};
use crate::request::media_type;
use orrery_service::errors::ServiceError;
use orrery_service::query_log::Peer;
use orrery_service::writes::freshness::Freshness;
use orrery_service::writes::seat::Seat;

/// Says that a request comes from a server, not from its client.
const FORWARDED: HeaderName = HeaderName::from_static("orrery-forwarded");
/// What concerns one connection, RFC 9110, 7.6.1.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// How long an answer waits for its commit to come here.
const OWN_COMMIT_WAIT: Duration = Duration::from_secs(2);
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// How often it is looked whether the one that was asked still writes, and how often another has to be found in its place before nobody waits for it any more: it may be
/// a machine that hangs, whose connections never end.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOKS_MAX: u32 = 4;
/// So much of a body is held, in case it has to be sent twice.
const HELD_BYTES_MAX: usize = 1 << 20;

/// What forwards.
#[derive(Debug)]
pub(crate) struct Forward {
    seat: Arc<Seat>,
    freshness: Arc<Freshness>,
    engine: Arc<Engine>,
    /// From where changes are taken.
    rules: (WriteRule, HostRule),
    /// Who vouches for the writer, beside those that the world knows.
    authorities: Vec<reqwest::Certificate>,
    client: OnceLock<reqwest::Client>,
}

impl Forward {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        seat: &Arc<Seat>,
        freshness: &Arc<Freshness>,
        rules: (WriteRule, HostRule),
        authorities: Vec<reqwest::Certificate>,
    ) -> Self {
        Self {
            seat: Arc::clone(seat),
            freshness: Arc::clone(freshness),
            engine: Arc::clone(engine),
            rules,
            authorities,
            client: OnceLock::new(),
        }
    }

    /// Made at the first need: most servers never forward anything.
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

    /// Where a request has to go that may change something, if it is not to this server.
    pub(crate) fn address_for(&self, request: &Request) -> Option<String> {
        let is_for_here = || request.headers().contains_key(FORWARDED);
        self.seat.address().filter(|_| !is_for_here())
    }

    /// Lets a request pass that is for this server, and sends it to the writer if it is not.
    pub(crate) async fn to_the_writer(
        &self,
        address: &str,
        request: Request,
        next: Next,
    ) -> Response {
        match kind(&request) {
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

    /// Sends what was held of a body, and the rest as it comes, if changes are taken from where it comes from.
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

    /// The beginning of a body, what follows where that is not all, and the memory that is held for it. All of it has to come in time.
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
            // That it is not here in time does the change no harm.
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

/// What is left of a body, and how fast it has come.
type Rest = Option<(BodyDataStream, UploadPace)>;

/// Gives a body on as it comes, which may be slow but not stand still.
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

/// Says in the head of a request whose it is, in place of whatever its client has written there.
fn say_client(headers: &mut HeaderMap, client: Option<IpAddr>) {
    headers.remove(header::FORWARDED);
    headers.remove(X_FORWARDED_FOR);
    let client = client.and_then(|it| HeaderValue::try_from(it.to_string()).ok());
    if let Some(client) = client {
        headers.insert(X_FORWARDED_FOR, client);
    }
}

/// What a request is, as far as its head says.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
    Perhaps,
}

fn kind(request: &Request) -> Kind {
    let path = request.uri().path();
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS => Kind::Read,
        // Each node reaches the others by itself.
        _ if path == paths::CLUSTER => Kind::Read,
        Method::POST if path == "/explain" => Kind::Read,
        Method::POST if path == "/sql" => Kind::Perhaps,
        Method::POST if path == "/sparql" || path == "/sparql/" => {
            let is = |essence| media_type::is_body(request.headers(), essence);
            match () {
                () if is("application/sparql-query") => Kind::Read,
                () if is("application/sparql-update") => Kind::Change,
                () => Kind::Perhaps,
            }
        }
        _ if paths::methods_of(path).is_none() => Kind::Read,
        _ => Kind::Change,
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

/// The commit that an answer to a change names.
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

    fn of(method: Method, address: &str, content_type: &str) -> Kind {
        let request = Request::builder()
            .method(method)
            .uri(address)
            .header(header::CONTENT_TYPE, content_type);
        kind(&request.body(Body::empty()).unwrap())
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
