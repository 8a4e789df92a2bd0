//! The requests to endpoints that an update needs, sent without the writer lock
//! ([`services`](super::services)).

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

use super::ParsedUpdate;
use super::services::{Noted, REQUESTS_MAX, failed, forbidden};
use crate::engine::Engine;
use crate::error::QueryError;

impl Engine {
    /// Sends the requests to other endpoints that [`Engine::apply`] lacked when it returned
    /// [`QueryError::AskFirst`]. The caller then begins another transaction, as it holds none
    /// meanwhile, and applies the update again. `timeout` is for all requests together.
    pub fn ask<'a>(
        &'a self,
        update: &'a ParsedUpdate,
        timeout: Option<Duration>,
    ) -> BoxFuture<'a, Result<(), QueryError>> {
        Box::pin(async move {
            let Some(services) = &update.services else {
                return Ok(());
            };
            let memory_bytes = self.options().memory_bytes;
            let asking = stream::iter(services.take_noted())
                .map(Ok)
                .try_for_each_concurrent(
                    REQUESTS_MAX,
                    |(request, Noted { accept, held })| async move {
                        let answer = services.fetch(&request, accept, &held).await;
                        let answer = answer
                            .map_err(|error| QueryError::from_datafusion(error, memory_bytes))?;
                        if let Some(failure) = forbidden(&answer) {
                            return Err(failed(&request.0, failure));
                        }
                        services.keep(request, answer, held);
                        Ok(())
                    },
                );
            match self.limits(timeout).timeout {
                Some(limit) => tokio::time::timeout(limit, asking)
                    .await
                    .unwrap_or(Err(QueryError::Timeout { limit })),
                None => asking.await,
            }
        })
    }
}
