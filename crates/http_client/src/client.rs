//! The client of one request with its redirects.
//!
//! Each hop is checked like the first one. reqwest connects only to addresses that
//! [`CheckedResolver`] gives it; a URL with an address instead of a name never reaches the
//! resolver and is decided by [`AllowList`] alone. What was really connected to is looked at again
//! when the answer comes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, redirect};
use url::{Host, Url};

use crate::allow::AllowList;
use crate::body::{Body, BodyLimits};
use crate::error::{Error, with_causes};

/// Bytes of a failure's text that are shown.
const MESSAGE_BYTES_MAX: usize = 300;
/// Connections kept open to one host.
const IDLE_CONNECTIONS: usize = 4;
/// How long they are kept.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// What may be asked. Default: nothing.
    pub allow: AllowList,
    /// How long a request may take, from connecting to the last byte, redirects included; time in
    /// which the caller does not ask for more bytes is not counted. Default: 60 s.
    pub timeout: Duration,
    /// How long connecting may take. Default: 10 s.
    pub connect_timeout: Duration,
    /// Most bytes of an answer as they come over the network. Default: 1 GiB.
    pub received_bytes_max: u64,
    /// Most bytes of an answer after decompression. Default: 4 GiB.
    pub decoded_bytes_max: u64,
    /// Most redirects that are followed. Default: 5.
    pub redirects_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            allow: AllowList::default(),
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            received_bytes_max: 1 << 30,
            decoded_bytes_max: 4 << 30,
            redirects_max: 5,
        }
    }
}

/// What to ask.
#[derive(Clone, Debug)]
pub struct Request {
    url: String,
    accept: String,
    body: Option<(Bytes, &'static str)>,
}

impl Request {
    /// `GET`, with the media types that are accepted in answer.
    pub fn get(url: impl Into<String>, accept: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            accept: accept.into(),
            body: None,
        }
    }

    /// `POST`, with a body of the given media type.
    pub fn post(
        url: impl Into<String>,
        accept: impl Into<String>,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            url: url.into(),
            accept: accept.into(),
            body: Some((body.into(), content_type)),
        }
    }
}

/// An answer with a status of success.
#[derive(Debug)]
pub struct Response {
    /// Where it came from, after redirects, without fragment: the base of relative IRIs in it.
    pub url: Url,
    /// The media type as sent, with its parameters.
    pub content_type: Option<String>,
    /// The bytes.
    pub body: Body,
}

/// Asks other machines, within its allow-list. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    options: Arc<ClientOptions>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client with these settings.
    pub fn new(options: ClientOptions) -> Result<Self, Error> {
        Self::with_lookup(options, Arc::new(SystemLookup))
    }

    fn with_lookup(options: ClientOptions, lookup: Arc<dyn Lookup>) -> Result<Self, Error> {
        let options = Arc::new(options);
        let resolver = CheckedResolver {
            options: Arc::clone(&options),
            lookup,
        };
        let http = reqwest::Client::builder()
            .user_agent(concat!("orrery/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .dns_resolver(Arc::new(resolver))
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIME)
            .build()
            .map_err(|error| Error::Setup {
                message: with_causes(&error),
            })?;
        Ok(Self { http, options })
    }

    /// The settings.
    pub fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Sends a request and follows redirects. Gives the answer as soon as its headers are there;
    /// any status but success is an error.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let mut url = Url::parse(&request.url).map_err(|error| Error::Url {
            url: request.url.clone(),
            reason: error.to_string(),
        })?;
        let accept = HeaderValue::from_str(&request.accept).map_err(|error| Error::Url {
            url: request.url.clone(),
            reason: format!("the accepted types are no header: {error}"),
        })?;
        let mut body = request.body;
        let mut remaining = self.options.timeout;
        for _ in 0..=self.options.redirects_max {
            url.set_fragment(None);
            self.check(&url)?;
            let started = Instant::now();
            let hop = self.hop(&url, &accept, body.clone());
            let response = tokio::time::timeout(remaining, hop).await;
            remaining = remaining.saturating_sub(started.elapsed());
            let response = response.map_err(|_| Error::TimedOut {
                url: url.to_string(),
                limit: self.options.timeout,
            })??;
            let status = response.status();
            let Some(next) = redirect_of(&url, status, response.headers())? else {
                return self.answer(url, response, remaining).await;
            };
            if status == StatusCode::SEE_OTHER {
                // RFC 9110, 15.4.4: another resource, that is to be read.
                body = None;
            }
            url = next;
        }
        Err(Error::Redirect {
            url: url.to_string(),
            reason: format!("more than {} times", self.options.redirects_max),
        })
    }

    fn check(&self, url: &Url) -> Result<(), Error> {
        self.options
            .allow
            .check_url(url)
            .map_err(|reason| Error::NotAllowed {
                url: url.to_string(),
                reason,
            })
    }

    async fn hop(
        &self,
        url: &Url,
        accept: &HeaderValue,
        body: Option<(Bytes, &'static str)>,
    ) -> Result<reqwest::Response, Error> {
        let method = if body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let mut request = self
            .http
            .request(method, url.clone())
            .header(ACCEPT, accept.clone())
            .header(ACCEPT_ENCODING, "gzip");
        if let Some((bytes, content_type)) = body {
            request = request.header(CONTENT_TYPE, content_type).body(bytes);
        }
        let response = request.send().await.map_err(|error| failure(url, error))?;
        if let (Some(address), Some(Host::Domain(name))) = (response.remote_addr(), url.host()) {
            let address = address.ip();
            self.options
                .allow
                .check_address(name, address)
                .map_err(|reason| Error::NotAllowed {
                    url: url.to_string(),
                    reason,
                })?;
        }
        Ok(response)
    }

    async fn answer(
        &self,
        url: Url,
        response: reqwest::Response,
        remaining: Duration,
    ) -> Result<Response, Error> {
        let status = response.status();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let limits = BodyLimits {
            received_bytes_max: self.options.received_bytes_max,
            decoded_bytes_max: self.options.decoded_bytes_max,
            timeout: self.options.timeout,
        };
        let mut body = Body::new(url.to_string(), response, limits, remaining)?;
        if status.is_success() {
            return Ok(Response {
                url,
                content_type,
                body,
            });
        }
        let text = body.beginning(MESSAGE_BYTES_MAX).await;
        Err(Error::Status {
            url: url.to_string(),
            status: status.as_u16(),
            message: one_line(&text),
        })
    }
}

/// Text of a stranger for a line of ours.
fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

/// Where an answer redirects to, if it does.
fn redirect_of(url: &Url, status: StatusCode, headers: &HeaderMap) -> Result<Option<Url>, Error> {
    // 300 and 304 are no redirects that could be followed; they end as failures.
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let wrong = |reason: String| Error::Redirect {
        url: url.to_string(),
        reason,
    };
    let location = headers
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(|| wrong("without saying where to".to_owned()))?;
    let next = url
        .join(location)
        .map_err(|error| wrong(format!("to '{location}', which is no URL: {error}")))?;
    Ok(Some(next))
}

fn failure(url: &Url, error: reqwest::Error) -> Error {
    let url = url.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(Refused(reason)) = error.downcast_ref::<Refused>() {
            let reason = reason.clone();
            return Error::NotAllowed { url, reason };
        }
        cause = error.source();
    }
    Error::Unreachable {
        url,
        message: with_causes(&error.without_url()),
    }
}

/// Names to addresses; tests put another one here.
trait Lookup: Send + Sync {
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

/// Gives only addresses that may be connected to.
struct CheckedResolver {
    options: Arc<ClientOptions>,
    lookup: Arc<dyn Lookup>,
}

/// No address of the name passed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let options = Arc::clone(&self.options);
        let addresses = self.lookup.lookup(name.clone());
        Box::pin(async move {
            let (mut passed, mut refused) = (Vec::new(), None);
            for address in addresses.await? {
                match options.allow.check_address(&name, address) {
                    Ok(()) => passed.push(SocketAddr::new(address, 0)),
                    Err(reason) => refused = Some(Refused(reason)),
                }
            }
            match refused {
                Some(refused) if passed.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(passed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
