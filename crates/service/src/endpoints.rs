//! Remote SPARQL endpoints over HTTP, for `SERVICE`.
//!
//! Queries go out as POST forms of the SPARQL protocol, through the client of `orrery-http-client`,
//! which checks every address against the allow-list and bounds time and bytes.

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use orrery_http_client::{AllowList, Client, ClientOptions, Error, Request, form_encoded};
use orrery_sparql::service::{RemoteAnswer, RemoteEndpoints, RemoteFailure, ServiceOptions};
use std::sync::Arc;
use std::time::Duration;

/// The endpoints that `SERVICE` may ask, and the limits of requests to them.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// The endpoints that may be asked. Default: none.
    pub allow: AllowList,
    /// Time limit of one request. Default: 30 s.
    pub timeout: Duration,
    /// Most bytes of one answer, received and after decompression. Default: 256 MiB.
    pub answer_bytes_max: u64,
    /// Most solutions of one answer. Default: 1,000,000.
    pub answer_rows_max: usize,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            allow: AllowList::default(),
            timeout: Duration::from_secs(30),
            answer_bytes_max: 256 << 20,
            answer_rows_max: 1_000_000,
        }
    }
}

impl EndpointOptions {
    /// The engine's `SERVICE` options; none if no endpoint is allowed.
    pub fn service(&self) -> Result<Option<ServiceOptions>, Error> {
        if self.allow.is_empty() {
            return Ok(None);
        }
        let client = Client::new(ClientOptions {
            allow: self.allow.clone(),
            timeout: self.timeout,
            received_bytes_max: self.answer_bytes_max,
            decoded_bytes_max: self.answer_bytes_max,
            ..ClientOptions::default()
        })?;
        let mut options = ServiceOptions::new(Arc::new(HttpEndpoints { client }));
        options.answer_rows_max = self.answer_rows_max;
        Ok(Some(options))
    }
}

#[derive(Debug)]
struct HttpEndpoints {
    client: Client,
}

impl RemoteEndpoints for HttpEndpoints {
    fn ask(
        &self,
        endpoint: &str,
        query: String,
        accept: &'static str,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let client = self.client.clone();
        let mut form = String::with_capacity(query.len() + query.len() / 2);
        form.push_str("query=");
        form.extend(form_encoded(&query));
        let request = Request::post(endpoint, accept, "application/x-www-form-urlencoded", form);
        async move {
            let response = client.send(request).await.map_err(failure)?;
            let body = response.body.into_stream();
            Ok(RemoteAnswer {
                content_type: response.content_type,
                body: body.map(|chunk| chunk.map_err(failure)).boxed(),
            })
        }
        .boxed()
    }
}

fn failure(error: Error) -> RemoteFailure {
    RemoteFailure {
        is_timeout: matches!(error, Error::TimedOut { .. }),
        is_forbidden: matches!(error, Error::NotAllowed { .. }),
        message: error.to_string(),
    }
}
