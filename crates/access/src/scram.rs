//! SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), for logins at PostgreSQL's port.
//!
//! ```text
//! salted password = PBKDF2(password, salt, iterations)      computed by the client, and here once, when the password is set
//! client key      = HMAC(salted password, "Client Key")     what a client proves to have; not kept
//! stored key      = SHA-256(client key)                     kept: by it a proof is checked
//! server key      = HMAC(salted password, "Server Key")     kept: by it the server shows that it knows the password, too
//! ```
//!
//! Neither the password nor the client key can be computed from what is kept: who steals it has to
//! guess. It stands in PostgreSQL's form, `SCRAM-SHA-256$100000:salt$stored key:server key`.
//!
//! Names without a user go through the same exchange: what they show is made of the name and a
//! secret of the database ([`DecoySecret`]), so that it is the same each time and after each start
//! of a server, and no password is right for it.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{hmac, pbkdf2};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Rounds of PBKDF2: as many as drivers take without being told to take more (decision 0046).
pub const SCRAM_ITERATIONS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
const SALT_BYTES: usize = 16;
const MARK: &str = "SCRAM-SHA-256";

type Key = [u8; 32];

/// See the module.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScramVerifier {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    stored_key: Key,
    server_key: Key,
}

/// The secret from which decoy verifiers are derived.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecoySecret(Key);

/// A text that is none.
#[derive(Debug, thiserror::Error)]
#[error("the stored SCRAM verifier of a password is damaged; set the password anew")]
pub struct NotKept;

impl ScramVerifier {
    /// Of a password, with a new salt.
    pub(crate) fn new(password: &str) -> Self {
        let salt: [u8; SALT_BYTES] = rand::random();
        Self::of(password, &salt, SCRAM_ITERATIONS)
    }

    fn of(password: &str, salt: &[u8], iterations: NonZeroU32) -> Self {
        // As PostgreSQL and its drivers: what cannot be prepared is taken as it is.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = Key::default();
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(
            algorithm,
            iterations,
            salt,
            prepared.as_bytes(),
            &mut salted,
        );
        let client_key = mac(&salted, &[b"Client Key"]);
        Self {
            salt: salt.to_vec(),
            iterations,
            stored_key: Sha256::digest(client_key).into(),
            server_key: mac(&salted, &[b"Server Key"]),
        }
    }

    /// What a name shows that has none: no password is right for it.
    pub(crate) fn decoy(secret: &DecoySecret, name: &str) -> Self {
        let part = |what: &[u8]| mac(&secret.0, &[what, name.as_bytes()]);
        Self {
            salt: part(b"salt ")[..SALT_BYTES].to_vec(),
            iterations: SCRAM_ITERATIONS,
            stored_key: part(b"stored key "),
            server_key: part(b"server key "),
        }
    }

    /// The same to look at, with the keys of a decoy: no password is right for it.
    pub(crate) fn shut(&self, decoy: Self) -> Self {
        Self {
            salt: self.salt.clone(),
            iterations: self.iterations,
            ..decoy
        }
    }

    /// The salt.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// Rounds of PBKDF2.
    pub fn iterations(&self) -> u32 {
        self.iterations.get()
    }

    /// The stored key, by which a proof is checked.
    pub fn stored_key(&self) -> &[u8; 32] {
        &self.stored_key
    }

    /// The server key, by which the server proves that it knows the password.
    pub fn server_key(&self) -> &[u8; 32] {
        &self.server_key
    }
}

impl DecoySecret {
    /// A new one.
    pub fn new() -> Self {
        Self(rand::random())
    }
}

impl Default for DecoySecret {
    fn default() -> Self {
        Self::new()
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    let mut made = Key::default();
    made.copy_from_slice(context.sign().as_ref());
    made
}

impl From<ScramVerifier> for String {
    fn from(kept: ScramVerifier) -> Self {
        format!(
            "{MARK}${}:{}${}:{}",
            kept.iterations,
            STANDARD.encode(&kept.salt),
            STANDARD.encode(kept.stored_key),
            STANDARD.encode(kept.server_key)
        )
    }
}

impl TryFrom<String> for ScramVerifier {
    type Error = NotKept;

    fn try_from(text: String) -> Result<Self, NotKept> {
        let parts = || {
            let (mark, rest) = text.split_once('$')?;
            let (made_with, keys) = rest.split_once('$')?;
            let (iterations, salt) = made_with.split_once(':')?;
            let (stored_key, server_key) = keys.split_once(':')?;
            let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
            let kept = Self {
                salt: STANDARD.decode(salt).ok()?,
                iterations: iterations.parse().ok()?,
                stored_key: key(stored_key)?,
                server_key: key(server_key)?,
            };
            (mark == MARK).then_some(kept)
        };
        parts().ok_or(NotKept)
    }
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramVerifier")
    }
}

impl fmt::Debug for DecoySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecoySecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(base64: &str) -> Vec<u8> {
        STANDARD.decode(base64).unwrap()
    }

    /// Whether a client's proof is right, and the server's answer to it (RFC 5802, 3).
    fn checked(kept: &ScramVerifier, message: &str, proof: &str) -> (bool, String) {
        let signature = mac(&kept.stored_key, &[message.as_bytes()]);
        let proof = bytes(proof);
        let client_key = proof.iter().zip(&signature).map(|(one, other)| one ^ other);
        let client_key: Vec<u8> = client_key.collect();
        let is_right = Sha256::digest(client_key).as_slice() == kept.stored_key;
        let answer = mac(&kept.server_key, &[message.as_bytes()]);
        (is_right, STANDARD.encode(answer))
    }

    #[test]
    fn the_exchange_of_rfc_7677_is_understood() {
        // RFC 7677, 3.
        let first = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let message = format!("{first},{server},{last}");
        let proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let salt = bytes("W22ZaJ0SNY7soEsUEjb6gQ==");
        let iterations = NonZeroU32::new(4096).unwrap();
        let kept = ScramVerifier::of("pencil", &salt, iterations);
        let (is_right, answer) = checked(&kept, &message, proof);
        assert!(is_right);
        assert_eq!(answer, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let other = ScramVerifier::of("pencils", &salt, iterations);
        assert!(!checked(&other, &message, proof).0);
        let shut = kept.shut(ScramVerifier::decoy(&DecoySecret::new(), "user"));
        assert!(!checked(&shut, &message, proof).0);
        assert_eq!((shut.salt(), shut.iterations()), (kept.salt(), 4096));
    }

    #[test]
    fn what_is_kept_is_read_again_and_shows_nothing() {
        let kept = ScramVerifier::new("long enough");
        assert_ne!(kept, ScramVerifier::new("long enough"));
        let text = String::from(kept.clone());
        assert!(text.starts_with("SCRAM-SHA-256$100000:"), "{text}");
        assert_eq!(ScramVerifier::try_from(text.clone()).unwrap(), kept);
        for wrong in [
            "",
            "SCRAM-SHA-256",
            &text[..text.len() - 5],
            &text.replace("100000", "0"),
            &text.replace("256", "512"),
        ] {
            assert!(
                ScramVerifier::try_from(wrong.to_owned()).is_err(),
                "{wrong}"
            );
        }
        assert_eq!(format!("{kept:?}"), "ScramVerifier");
    }

    #[test]
    fn passwords_are_prepared_as_drivers_prepare_them() {
        let of = |password| ScramVerifier::of(password, b"salt", NonZeroU32::MIN);
        // RFC 4013, 3: a soft hyphen is nothing, a ligature is its letters.
        assert_eq!(of("I\u{ad}X"), of("IX"));
        assert_eq!(of("\u{2168}"), of("IX"));
        // What is prohibited is taken as it is.
        assert_ne!(of("a\u{7}"), of("a"));
    }

    #[test]
    fn names_without_a_user_show_the_same_each_time() {
        let secret = DecoySecret::new();
        let shown = |name| ScramVerifier::decoy(&secret, name);
        assert_eq!(shown("nobody"), shown("nobody"));
        assert_ne!(shown("nobody").salt(), shown("somebody").salt());
        let other = ScramVerifier::decoy(&DecoySecret::new(), "nobody");
        assert_ne!(shown("nobody").salt(), other.salt());
        let real = ScramVerifier::new("long enough");
        assert_eq!(shown("nobody").salt().len(), real.salt().len());
        assert_eq!(shown("nobody").iterations(), real.iterations());
        let json = serde_json::to_string(&secret).unwrap();
        assert_eq!(serde_json::from_str::<DecoySecret>(&json).unwrap(), secret);
    }

    #[test]
    #[ignore = "it measures, for decision 0046"]
    fn what_a_guess_costs() {
        let kept = crate::KeptPassword::new("long enough").unwrap();
        let ms = |work: &dyn Fn()| {
            let began = std::time::Instant::now();
            (0..5).for_each(|_| work());
            began.elapsed().as_secs_f64() * 1000.0 / 5.0
        };
        let argon2id = ms(&|| assert!(!kept.is("a guess")));
        println!("Argon2id: {argon2id:.1} ms");
        for rounds in [4_096, 100_000, 600_000] {
            let rounds = NonZeroU32::new(rounds).unwrap();
            let scram = ms(&|| drop(ScramVerifier::of("a guess", b"sixteen bytes ..", rounds)));
            println!("PBKDF2, {rounds} rounds: {scram:.1} ms");
        }
    }
}
