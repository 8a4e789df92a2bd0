//! Password authentication by SCRAM-SHA-256 (RFC 7677): with the server's one password, or a
//! user's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use orrery_service::ports::users::ScramKeys;
use pgwire::api::auth::sasl::scram::{
    SCRAM_ITERATIONS, ScramAuth, ScramSecret, gen_salted_password,
};
use pgwire::api::auth::{AuthSource, LoginInfo};
use pgwire::error::{PgWireError, PgWireResult};

/// Bytes of a password's salt.
const SALT_BYTES: usize = 16;

/// A password as SCRAM stores it: neither the password nor a client's proof can be derived from it.
#[derive(Clone)]
pub struct Password {
    salt: Vec<u8>,
    salted: Vec<u8>,
}

impl Password {
    /// Hashes a password; none for an empty text.
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let salt = rand::random::<[u8; SALT_BYTES]>().to_vec();
        let salted = gen_salted_password(text, &salt, SCRAM_ITERATIONS);
        Some(Self { salt, salted })
    }

    /// The verifier of this password.
    pub(crate) fn verifier(&self) -> Verifier {
        Verifier(Kept::OfServer(self.clone()))
    }
}

/// Verifies a client's proof.
pub(crate) struct Verifier(Kept);

enum Kept {
    OfServer(Password),
    OfUser(ScramKeys),
}

impl From<ScramKeys> for Verifier {
    fn from(keys: ScramKeys) -> Self {
        Self(Kept::OfUser(keys))
    }
}

impl Verifier {
    /// Begins the exchange. With a certificate it is bound to that connection, if the client
    /// supports it.
    pub(crate) fn exchange(self, certificate: Option<&[u8]>) -> PgWireResult<ScramAuth> {
        let mut exchange = ScramAuth::new(Arc::new(self));
        if let Some(certificate) = certificate {
            exchange.configure_certificate(certificate)?;
        }
        Ok(exchange)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

#[async_trait]
impl AuthSource for Verifier {
    async fn get_password(&self, _: &LoginInfo) -> PgWireResult<pgwire::api::auth::Password> {
        // Only other exchanges than SCRAM ask for it.
        Err(PgWireError::InvalidPassword(String::new()))
    }

    async fn get_scram_secret(&self, _: &LoginInfo) -> PgWireResult<(ScramSecret, Option<()>)> {
        let secret = match &self.0 {
            Kept::OfServer(password) => ScramSecret::verifier_from_salted_password(
                password.salt.clone(),
                password.salted.clone(),
                SCRAM_ITERATIONS,
            ),
            Kept::OfUser(keys) => ScramSecret::Verifier {
                salt: keys.salt.clone(),
                iterations: usize::try_from(keys.iterations).unwrap_or(usize::MAX),
                stored_key: keys.stored_key.to_vec(),
                server_key: keys.server_key.to_vec(),
            },
        };
        Ok((secret, None))
    }
}
