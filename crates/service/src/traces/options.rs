//! Settings of traces: the collector, and the fraction that is sent.

use orrery_http_client::{AllowList, EntryError, Url};
use std::net::IpAddr;

/// The path that is added to an endpoint without one.
const PATH: &str = "v1/traces";

/// Settings of traces: the collector, and the fraction that is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpOptions {
    /// The collector, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// Fraction of new traces that is sent, from 0 to 1. Traces of clients are sent if the client
    /// says so.
    pub ratio: f64,
    /// The server's name in traces (`service.name`).
    pub service: String,
}

impl OtlpOptions {
    /// Sends all traces to a collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            ratio: 1.0,
            service: "orrery".to_owned(),
        }
    }

    /// The URL that traces are posted to.
    pub(super) fn url(&self) -> Result<Url, OtlpError> {
        let wrong = |reason: &str| OtlpError::Endpoint {
            endpoint: self.endpoint.clone(),
            reason: reason.to_owned(),
        };
        let mut url = Url::parse(&self.endpoint).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("traces are sent by http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a user name or password is not used"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if !path.ends_with(PATH) {
            url.set_path(&format!("{path}/{PATH}"));
        }
        Ok(url)
    }

    /// An allow-list of the collector, at any address: the operator chose it, not a query.
    pub(super) fn allow_list(url: &Url) -> Result<AllowList, OtlpError> {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_matches(['[', ']']);
        let listed = match bare.parse::<IpAddr>() {
            Ok(_) => bare.to_owned(),
            Err(_) => format!("{host}:{}", url.port_or_known_default().unwrap_or_default()),
        };
        let all = ["0.0.0.0/0".to_owned(), "::/0".to_owned()];
        Ok(AllowList::parse(all.into_iter().chain([listed]))?)
    }
}

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The endpoint is not a valid URL of a collector.
    #[error("traces cannot be sent to {endpoint}: {reason}")]
    Endpoint {
        /// The endpoint given.
        endpoint: String,
        /// The reason.
        reason: String,
    },
    /// The HTTP client could not be set up.
    #[error("traces cannot be sent: {0}")]
    Client(#[from] orrery_http_client::Error),
    /// The collector's host is not a valid entry of an allow-list.
    #[error("traces cannot be sent: {0}")]
    Host(#[from] EntryError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_base_or_the_whole_address() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://x.example/otlp", "https://x.example/otlp/v1/traces"),
            (
                "https://x.example/otlp/v1/traces",
                "https://x.example/otlp/v1/traces",
            ),
        ] {
            assert_eq!(OtlpOptions::new(endpoint).url().unwrap().as_str(), expected);
        }
        for wrong in [
            "",
            "127.0.0.1:4318",
            "ftp://x.example",
            "http://me:secret@x.example",
        ] {
            assert!(OtlpOptions::new(wrong).url().is_err(), "{wrong}");
        }
    }
}
