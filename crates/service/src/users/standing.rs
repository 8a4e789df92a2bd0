//! Repeated checks of a request's credentials: users are locked, keys expire and rules change
//! during a feed or a load.
//!
//! ```text
//! head of the request -> Standing: its credentials -> asked(): the current rights
//! ```

use orrery_tls::PeerNames;
use std::sync::Arc;

use crate::errors::ServiceError;
use crate::users::authentication::{Asked, Authentication};

/// The credentials of a request.
#[derive(Debug, Clone)]
pub struct Standing {
    authentication: Arc<Authentication>,
    /// The values of `Authorization`; `None` for a value that is not text.
    authorization: Vec<Option<String>>,
    certificate: Option<PeerNames>,
}

impl Standing {
    /// Takes the credentials of a request: its values of `Authorization`, its connection's
    /// certificate.
    pub fn new<'a>(
        authentication: &Arc<Authentication>,
        authorization: impl Iterator<Item = Option<&'a str>>,
        certificate: Option<PeerNames>,
    ) -> Self {
        Self {
            authentication: Arc::clone(authentication),
            authorization: authorization.map(|it| it.map(str::to_owned)).collect(),
            certificate,
        }
    }

    /// The sender's current rights.
    ///
    /// # Errors
    /// When a new request with these credentials would be refused.
    pub async fn asked(&self) -> Result<Asked, ServiceError> {
        let authorization = self.authorization.iter().map(Option::as_deref);
        let certificate = self.certificate.as_ref();
        self.authentication.asked(authorization, certificate).await
    }
}
