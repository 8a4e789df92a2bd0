//! The doorway: the last step before the handler, where a request waits for a commit or goes to the
//! writer.
//!
//! ```text
//! edge: host, user -> commit asked for? -> user, as of that commit -> doorway -> handler, or writer
//! ```
//!
//! Nothing waits and nothing is forwarded before the user is known. Nearly all requests are for
//! this server and its newest snapshot; that check comes first and costs a few look-ups. The
//! doorway is no layer of its own around the router.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use orrery_sparql::Engine;
use orrery_storage::Snapshot;

use crate::edge::forward::Forward;
use crate::edge::guard::{HostRule, WriteRule};
use crate::request::min_commit::{asked, is_asked};
use crate::route::Resources;
use orrery_service::errors::ServiceError;
use orrery_service::writes::freshness::Freshness;
use orrery_service::writes::seat::Seat;

/// The waiting for commits and the forwarding of one server.
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
        resources: &'static Resources,
    ) -> Self {
        let freshness = Arc::new(Freshness::new(engine.database()));
        let forward = Forward::new(engine, seat, &freshness, rules, authorities, resources);
        Self { freshness, forward }
    }

    /// The commit that a request asks for, if it is not here yet.
    ///
    /// # Errors
    /// When it asks for something that is no commit.
    pub(crate) fn missing_commit(&self, request: &Request) -> Result<Option<u64>, ServiceError> {
        if !is_asked(request) {
            return Ok(None);
        }
        let commit = asked(request)?;
        Ok(commit.filter(|&commit| !self.freshness.is_here(commit)))
    }

    /// The newest snapshot of this server.
    pub(crate) fn newest(&self) -> Arc<Snapshot> {
        self.freshness.newest()
    }

    /// Looks once for a newer snapshot: it may know a user who was added elsewhere a moment ago.
    pub(crate) async fn look_for(&self, commit: u64) {
        self.freshness.look_for(commit).await;
    }

    /// Waits until the commit is here.
    ///
    /// # Errors
    /// When it does not come in time.
    pub(crate) async fn wait_for(&self, commit: u64) -> Result<(), ServiceError> {
        self.freshness.wait_for(commit).await
    }

    /// Lets a request pass, or sends it to the writer.
    pub(crate) async fn pass(&self, request: Request, next: Next) -> Response {
        match self.forward.address_for(&request) {
            None => next.run(request).await,
            // Boxed: large, and rare.
            Some(address) => Box::pin(self.forward.to_the_writer(&address, request, next)).await,
        }
    }
}
