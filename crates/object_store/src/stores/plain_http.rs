//! The HTTP client for stores without TLS, which skips loading the system's certificates (10 ms).

use std::time::Duration;

use object_store::client::{ClientOptions, HttpClient, HttpConnector};
use object_store::{Error, Result};

/// As `object_store` has it.
const REQUEST_MAX: Duration = Duration::from_secs(30);
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// Makes the client.
#[derive(Debug)]
pub(crate) struct PlainHttp;

impl HttpConnector for PlainHttp {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let client = reqwest::Client::builder()
            .tls_built_in_root_certs(false)
            .timeout(REQUEST_MAX)
            .connect_timeout(CONNECTION_MAX)
            .http1_only()
            .build();
        let client = client.map_err(|source| Error::Generic {
            store: "S3",
            source: Box::new(source),
        })?;
        Ok(HttpClient::new(client))
    }
}
