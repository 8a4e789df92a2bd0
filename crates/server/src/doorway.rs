//! What comes before everything else of a request: the state that it waits for, and the server that it is for.
//!
//! Nearly all requests are for this server and its newest state, so that is found out first, and costs them a few look-ups; no layer of its own
//! stands around the router.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use orrery_storage::Database;

use crate::forward::Forward;
use crate::freshness::{Freshness, asked, is_asked};
use crate::seat::Seat;

/// What requests of HTTP pass first.
#[derive(Debug)]
pub(crate) struct Doorway {
    freshness: Arc<Freshness>,
    forward: Forward,
}

impl Doorway {
    pub(crate) fn new(
        database: &Arc<Database>,
        seat: &Arc<Seat>,
        authorities: Vec<reqwest::Certificate>,
    ) -> Self {
        let freshness = Arc::new(Freshness::new(database));
        let forward = Forward::new(seat, &freshness, authorities);
        Self { freshness, forward }
    }

    /// Lets a request pass once the state is there that it asks for, or sends it to the writer.
    pub(crate) async fn pass(&self, request: Request, next: Next) -> Response {
        let waits = is_asked(&request);
        match (waits, self.forward.address_for(&request)) {
            (false, None) => next.run(request).await,
            // Large, and rare.
            (_, address) => Box::pin(self.pass_by_the_way(request, next, waits, address)).await,
        }
    }

    async fn pass_by_the_way(
        &self,
        request: Request,
        next: Next,
        waits: bool,
        address: Option<String>,
    ) -> Response {
        if waits {
            // Not while the request is looked at: its body is for one thread at a time.
            let waited = match asked(&request) {
                Ok(Some(commit)) => self.freshness.wait_for(commit).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = waited {
                return error.into_response_for(request.headers());
            }
        }
        match address {
            None => next.run(request).await,
            Some(address) => self.forward.to_the_writer(&address, request, next).await,
        }
    }
}
