//! What comes before the handler of a request of which is known who asks: the state that it waits for, and the server that it is for.
//!
//! ```text
//! edge: host, who asks -> the state that is asked for? -> who asks, in that state -> doorway -> the handler, or the writer
//! ```
//!
//! Nobody is waited for, and nothing is sent on, before it is known who asks. Nearly all requests are for this server and its newest state, so that is found out first,
//! and costs them a few look-ups; no layer of its own stands around the router.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use orrery_sparql::Engine;
use orrery_storage::Snapshot;

use crate::edge::forward::Forward;
use crate::edge::guard::{HostRule, WriteRule};
use crate::request::min_commit::{asked, is_asked};
use orrery_service::errors::ServiceError;
use orrery_service::writes::freshness::Freshness;
use orrery_service::writes::seat::Seat;

/// What requests of HTTP pass first.
#[derive(Debug)]
pub(crate) struct Doorway {
    freshness: Arc<Freshness>,
    forward: Forward,
}

impl Doorway {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        seat: &Arc<Seat>,
        rules: (WriteRule, HostRule),
        authorities: Vec<reqwest::Certificate>,
    ) -> Self {
        let freshness = Arc::new(Freshness::new(engine.database()));
        let forward = Forward::new(engine, seat, &freshness, rules, authorities);
        Self { freshness, forward }
    }

    /// The commit that a request asks for, if it is not here yet.
    ///
    /// # Errors
    /// When it asks for something else.
    pub(crate) fn missing_commit(&self, request: &Request) -> Result<Option<u64>, ServiceError> {
        if !is_asked(request) {
            return Ok(None);
        }
        let commit = asked(request)?;
        Ok(commit.filter(|&commit| !self.freshness.is_here(commit)))
    }

    /// The newest state that is here.
    pub(crate) fn newest(&self) -> Arc<Snapshot> {
        self.freshness.newest()
    }

    /// Looks once whether there is a newer state: whoever was made known elsewhere a moment ago is known in it.
    pub(crate) async fn look_for(&self, commit: u64) {
        self.freshness.look_for(commit).await;
    }

    /// Waits until the state is there.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) async fn wait_for(&self, commit: u64) -> Result<(), ServiceError> {
        self.freshness.wait_for(commit).await
    }

    /// Lets a request pass, or sends it to the writer.
    pub(crate) async fn pass(&self, request: Request, next: Next) -> Response {
        match self.forward.address_for(&request) {
            None => next.run(request).await,
            // Large, and rare.
            Some(address) => Box::pin(self.forward.to_the_writer(&address, request, next)).await,
        }
    }
}
