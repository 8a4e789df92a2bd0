//! The parser of OpenID tokens, and the checks of their claims.
//!
//! ```text
//! base64url(header) . base64url(claims) . base64url(signature)        RFC 7515, 3.1
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::options::{OidcOptions, UserClaim};

/// Size limit of a token.
pub(super) const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Tolerated difference between clocks.
const LEEWAY_S: f64 = 60.0;
/// Maximum of groups read from a token.
const GROUPS_MAX: usize = 256;

/// The signature algorithms that are accepted: neither `none`, nor one with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// A token that is parsed but not verified: its claims are not to be trusted before its signature
/// is checked.
pub(super) struct Token<'a> {
    pub(super) algorithm: Algorithm,
    /// The id of the signing key.
    pub(super) key_id: Option<String>,
    /// The signed part of the text.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    claims: Claims,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that must be understood; we understand none (RFC 7515, 4.1.11).
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    exp: f64,
    nbf: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Some(Vec<String>),
}

/// Whether a text looks like a token; our own keys never do.
pub fn has_form_of_token(text: &str) -> bool {
    text.bytes().filter(|it| *it == b'.').count() == 2
}

impl<'a> Token<'a> {
    /// Splits and decodes a token. The error is the reason, for the log.
    pub(super) fn parse(text: &'a str) -> Result<Self, &'static str> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err("it is too long");
        }
        let (signed, signature) = text.rsplit_once('.').ok_or("it has not three parts")?;
        let (header, claims) = signed.split_once('.').ok_or("it has not three parts")?;
        let decoded = |part: &str| {
            let decoded = URL_SAFE_NO_PAD.decode(part);
            decoded.map_err(|_error| "a part is not in base64url")
        };
        let header: Header = serde_json::from_slice(&decoded(header)?)
            .map_err(|_error| "its header is not that of a token")?;
        if header.crit.is_some() {
            return Err("its header wants something to be understood that is not");
        }
        if !header.typ.as_deref().is_none_or(is_known_type) {
            return Err("it is a token for something else (`typ`)");
        }
        let algorithm = match header.alg.as_str() {
            "RS256" => Algorithm::Rs256,
            "ES256" => Algorithm::Es256,
            "EdDSA" | "Ed25519" => Algorithm::EdDsa,
            _ => return Err("its algorithm is none of RS256, ES256 and EdDSA"),
        };
        Ok(Self {
            algorithm,
            key_id: header.kid,
            signed,
            signature: decoded(signature)?,
            claims: serde_json::from_slice(&decoded(claims)?)
                .map_err(|_error| "its claims lack `iss`, `aud` or `exp`, or are none")?,
        })
    }

    /// Checks issuer, audience and validity at a time in seconds of the Unix epoch.
    pub(super) fn check(&self, options: &OidcOptions, now: f64) -> Result<(), &'static str> {
        if self.claims.iss != options.issuer {
            return Err("it is another issuer's");
        }
        let is_ours = match &self.claims.aud {
            Audience::One(audience) => *audience == options.audience,
            Audience::Some(audiences) => audiences.contains(&options.audience),
        };
        if !is_ours {
            return Err("it is meant for another audience");
        }
        // In this form a time that is NaN is refused, too.
        let is_alive = now < self.claims.exp + LEEWAY_S;
        if !is_alive {
            return Err("it has expired");
        }
        let has_begun = self.claims.nbf.is_none_or(|from| now + LEEWAY_S >= from);
        match has_begun {
            true => Ok(()),
            false => Err("it is not valid yet"),
        }
    }

    /// The provider's name of the user.
    pub(super) fn user(&self, claim: UserClaim) -> Result<&str, &'static str> {
        let others = &self.claims.others;
        if claim == UserClaim::Email {
            // Some providers write the flag as text.
            let is_verified = match others.get("email_verified") {
                Some(Value::Bool(is_verified)) => *is_verified,
                Some(Value::String(text)) => text == "true",
                _ => false,
            };
            if !is_verified {
                return Err("its issuer has not checked the address (`email_verified`)");
            }
        }
        let name = others.get(claim.name()).and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty());
        name.ok_or("it lacks the claim that says who somebody is")
    }

    /// The provider's names of the user's groups.
    pub(super) fn groups(&self, claim: &str) -> impl Iterator<Item = &str> {
        let (one, some) = match self.claims.others.get(claim) {
            Some(Value::String(group)) => (Some(group.as_str()), &[][..]),
            Some(Value::Array(groups)) => (None, groups.as_slice()),
            _ => (None, &[][..]),
        };
        let some = some.iter().filter_map(Value::as_str);
        one.into_iter().chain(some).take(GROUPS_MAX)
    }
}

/// Access tokens and identity tokens are accepted; not, for example, logout tokens.
fn is_known_type(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("application/").unwrap_or(&name);
    matches!(name, "jwt" | "at+jwt")
}
