//! How a client shows that it knows a password (SCRAM-SHA-256, RFC 7677): the one of a server, or that of a user of the database.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use orrery_service::ports::users::ScramKeys;
use pgwire::api::auth::sasl::scram::{
    SCRAM_ITERATIONS, ScramAuth, ScramSecret, gen_salted_password,
};
use pgwire::api::auth::{AuthSource, LoginInfo};
use pgwire::error::{PgWireError, PgWireResult};

/// Salt of a password.
const SALT_BYTES: usize = 16;

/// A password, as what SCRAM keeps of it: neither it nor what a client would send can be told from that.
#[derive(Clone)]
pub struct Password {
    salt: Vec<u8>,
    salted: Vec<u8>,
}

impl Password {
    /// What is kept of a text; none of an empty one.
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let salt = rand::random::<[u8; SALT_BYTES]>().to_vec();
        let salted = gen_salted_password(text, &salt, SCRAM_ITERATIONS);
        Some(Self { salt, salted })
    }

    /// What a proof is held against.
    pub(crate) fn verifier(&self) -> Verifier {
        Verifier(Kept::OfServer(self.clone()))
    }
}

/// What a client's proof is held against.
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
    /// The exchange. With a certificate it is bound to the connection that has that, if the client knows how.
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
