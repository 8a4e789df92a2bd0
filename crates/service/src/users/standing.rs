//! Who sent a request, asked again while it goes on: users are locked, keys expire and rules change during a feed or a load.
//!
//! ```text
//! head of the request -> Standing: its credentials -> asked(): known? may do what? as of now, as for a new request
//! ```

use orrery_tls::PeerNames;
use std::sync::Arc;

use crate::errors::ServiceError;
use crate::users::authentication::{Asked, Authentication};

/// The credentials of a request.
#[derive(Debug, Clone)]
pub struct Standing {
    authentication: Arc<Authentication>,
    /// The values of `Authorization`; none where one is no text.
    authorization: Vec<Option<String>>,
    certificate: Option<PeerNames>,
}

impl Standing {
    /// Of a request with these values of `Authorization`, by a connection with this certificate.
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

    /// What whoever sent it may do now.
    ///
    /// # Errors
    /// When they would not be let in any more.
    pub async fn asked(&self) -> Result<Asked, ServiceError> {
        let authorization = self.authorization.iter().map(Option::as_deref);
        let certificate = self.certificate.as_ref();
        self.authentication.asked(authorization, certificate).await
    }
}
