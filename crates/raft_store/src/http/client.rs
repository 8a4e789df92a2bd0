//! Requests to other nodes over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::http::signature::{BODY, NODE, NONCE, SIGNATURE, Secret, TIME, digest_of};
use crate::transport::Transport;
use crate::types::NodeId;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// Connections to a node that are kept.
const CONNECTIONS_KEPT: usize = 16;

/// What makes connections to other nodes and keeps them.
fn connections() -> Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIME)
        .pool_max_idle_per_host(CONNECTIONS_KEPT)
        .build()
        .map_err(|error| {
            Error::Configuration(format!("no client for requests between nodes: {error}"))
        })
}

/// What requests are sent and signed with.
pub(crate) struct Signer {
    pub(crate) client: reqwest::Client,
    pub(crate) secret: Secret,
    pub(crate) now_us: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) unique: Arc<dyn Fn() -> Result<u128> + Send + Sync>,
}

impl Signer {
    /// With connections of its own.
    pub(crate) fn new(
        secret: Secret,
        now_us: Arc<dyn Fn() -> u64 + Send + Sync>,
        unique: Arc<dyn Fn() -> Result<u128> + Send + Sync>,
    ) -> Result<Self> {
        Ok(Self {
            client: connections()?,
            secret,
            now_us,
            unique,
        })
    }

    /// The time of a request, in milliseconds.
    pub(crate) fn time_ms(&self) -> u64 {
        (self.now_us)() / 1_000
    }

    /// The nonce of a request.
    pub(crate) fn nonce(&self) -> Result<String> {
        Ok(format!("{:032x}", (self.unique)()?))
    }
}

/// Sends signed requests.
pub(crate) struct HttpTransport(pub(crate) Signer);

#[async_trait]
impl Transport for HttpTransport {
    async fn call(
        &self,
        node: NodeId,
        address: &str,
        path: &'static str,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes> {
        let unreachable = |detail: String| Error::Unreachable {
            node,
            address: address.to_owned(),
            detail,
        };
        let (nonce, time_ms) = (self.0.nonce()?, self.0.time_ms());
        let digest = digest_of(&body);
        let secret = &self.0.secret;
        let signature = secret.request_with(path, node, time_ms, &nonce, &digest);
        let request = self
            .0
            .client
            .post(format!("http://{address}{path}"))
            .timeout(timeout)
            .header(NODE, node)
            .header(TIME, time_ms)
            .header(NONCE, &nonce)
            .header(BODY, digest)
            .header(SIGNATURE, signature)
            .body(body);
        let answer = request
            .send()
            .await
            .map_err(|error| unreachable(chain(&error)))?;
        let status = answer.status();
        let signature = answer
            .headers()
            .get(SIGNATURE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let body = answer
            .bytes()
            .await
            .map_err(|error| unreachable(chain(&error)))?;
        let text = || String::from_utf8_lossy(&body[..body.len().min(1_000)]).into_owned();
        if !self
            .0
            .secret
            .is_answer(&signature, &nonce, status.as_u16(), &body)
        {
            let detail = format!(
                "{status}: {} (the answer is not signed with this cluster's secret)",
                text()
            );
            return Err(Error::Refused { node, detail });
        }
        if !status.is_success() {
            return Err(Error::Refused {
                node,
                detail: text(),
            });
        }
        Ok(body)
    }
}

/// An error with those below it.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(error) = below {
        text.push_str(": ");
        text.push_str(&error.to_string());
        below = error.source();
    }
    text
}
