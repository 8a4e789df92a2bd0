//! Who sent a request, asked again while it goes on: users are locked, keys expire and rules change during a feed or a load.
//!
//! ```text
//! head of the request -> Standing: its credentials -> asked(): known? may do what? as of now, as for a new request
//! ```

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use orrery_tls::PeerNames;
use std::sync::Arc;

use crate::authentication::{Asked, Authentication};
use crate::errors::ServerError;

/// The credentials of a request.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    authentication: Arc<Authentication>,
    /// `Authorization` alone.
    headers: HeaderMap,
    certificate: Option<PeerNames>,
}

impl Standing {
    /// Of a request; none where the database has no users.
    pub(crate) fn of(authentication: Option<&Arc<Authentication>>, parts: &Parts) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for value in parts.headers.get_all(header::AUTHORIZATION) {
            headers.append(header::AUTHORIZATION, value.clone());
        }
        Some(Self {
            authentication: Arc::clone(authentication?),
            headers,
            certificate: parts.extensions.get().cloned(),
        })
    }

    /// What whoever sent it may do now.
    ///
    /// # Errors
    /// When they would not be let in any more.
    pub(crate) async fn asked(&self) -> Result<Asked, ServerError> {
        let certificate = self.certificate.as_ref();
        self.authentication.asked(&self.headers, certificate).await
    }
}
