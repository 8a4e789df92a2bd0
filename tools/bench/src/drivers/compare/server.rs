//! A store under comparison, restarted when it does not answer.

use std::time::Duration;

use super::super::BenchError;
use super::super::binary::ServerProcess;
use super::super::peer::PeerServer;
use crate::http_client::{HttpClient, QueryEncoding};

/// A running server, which ends with this value.
pub(super) trait Serving {
    /// The address of its SPARQL endpoint.
    fn endpoint(&self) -> &str;
}

impl Serving for ServerProcess {
    fn endpoint(&self) -> &str {
        ServerProcess::endpoint(self)
    }
}

impl Serving for PeerServer {
    fn endpoint(&self) -> &str {
        PeerServer::endpoint(self)
    }
}

type Start<'s> = &'s dyn Fn() -> Result<Box<dyn Serving>, BenchError>;

/// A server and how to start it again.
pub(super) struct Server<'s> {
    start: Start<'s>,
    /// `None` only while it is started again.
    running: Option<Box<dyn Serving>>,
    endpoint: String,
    /// How long a question may take.
    limit: Duration,
}

impl<'s> Server<'s> {
    pub(super) fn start(start: Start<'s>, limit: Duration) -> Result<Self, BenchError> {
        let running = start()?;
        Ok(Self {
            start,
            endpoint: running.endpoint().to_owned(),
            running: Some(running),
            limit,
        })
    }

    /// Ends the server, whatever it is doing, and starts it again on the same data.
    pub(super) fn restart(&mut self) -> Result<(), BenchError> {
        // First the end: both would listen on the same port and lock the same files.
        self.running = None;
        let running = (self.start)()?;
        running.endpoint().clone_into(&mut self.endpoint);
        self.running = Some(running);
        Ok(())
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// A client that waits as long as a question may take.
    pub(super) fn client(&self) -> Result<HttpClient, BenchError> {
        Ok(HttpClient::new(&self.endpoint)?
            .with_encoding(QueryEncoding::Form)
            .with_silence_max(self.limit))
    }
}
