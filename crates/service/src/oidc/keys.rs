//! The public keys of an OpenID provider (RFC 7517), and the verification of signatures with them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::token::{Algorithm, Token};

/// Maximum of keys read from a provider.
const KEYS_MAX: usize = 64;
/// First byte of an uncompressed point, followed by both coordinates (SEC 1, 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// The keys that a provider signs with.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    public: Public,
}

/// A public key, by algorithm.
#[derive(Debug)]
enum Public {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The result of verifying a token's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signed {
    Yes,
    No,
    /// The key that the token names is not known.
    ByUnknown,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Parses a key set. Keys for other uses or of other kinds are skipped.
    pub(super) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let set: JwkSet = serde_json::from_slice(json)?;
        let keys = set.keys.into_iter().take(KEYS_MAX);
        let keys = keys.filter_map(|key| Key::of(serde_json::from_value(key).ok()?));
        Ok(Self(keys.collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Verifies the signature of a token.
    pub(super) fn signed(&self, token: &Token<'_>) -> Signed {
        let of_kind = |key: &&Key| key.public.algorithm() == token.algorithm;
        let mut keys = self.0.iter().filter(of_kind);
        let Some(id) = token.key_id.as_deref() else {
            // Tries all keys. If none fits, the provider may have a new key by now.
            return match keys.any(|key| key.public.has_signed(token)) {
                true => Signed::Yes,
                false => Signed::ByUnknown,
            };
        };
        let mut named = keys.filter(|key| key.id.as_deref() == Some(id)).peekable();
        if named.peek().is_none() {
            return Signed::ByUnknown;
        }
        match named.any(|key| key.public.has_signed(token)) {
            true => Signed::Yes,
            false => Signed::No,
        }
    }
}

impl Key {
    fn of(jwk: Jwk) -> Option<Self> {
        if jwk.used_for.as_deref().is_some_and(|it| it != "sig") {
            return None;
        }
        let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let public = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Public::Rsa {
                n: bytes(&jwk.n)?,
                e: bytes(&jwk.e)?,
            },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Public::P256([&[UNCOMPRESSED], x.as_slice(), y.as_slice()].concat())
            }
            ("OKP", Some("Ed25519")) => Public::Ed25519(bytes(&jwk.x)?),
            _ => return None,
        };
        let is_for = match public.algorithm() {
            Algorithm::Rs256 => &["RS256"][..],
            Algorithm::Es256 => &["ES256"],
            Algorithm::EdDsa => &["EdDSA", "Ed25519"],
        };
        let is_ours = jwk.alg.as_deref().is_none_or(|alg| is_for.contains(&alg));
        is_ours.then_some(Self {
            id: jwk.kid,
            public,
        })
    }
}

impl Public {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn has_signed(&self, token: &Token<'_>) -> bool {
        let (text, signature) = (token.signed.as_bytes(), token.signature.as_slice());
        let verified = match self {
            Self::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature)
            }
            Self::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point).verify(text, signature),
        };
        verified.is_ok()
    }
}
