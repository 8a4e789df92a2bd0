//! External identities of users: the WebID of a certificate, or the issuer and claim of a token.
//!
//! ```text
//! https://ann.example/card#me            a URI in the subject alternative name of a certificate
//! https://login.example.org#248289761    issuer, #, claim
//! ```
//!
//! A user has an identity because an administrator has said so. No name is one: whoever runs a
//! provider names its users as they like, and would else be whoever they name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of an identity at most.
pub const IDENTITY_BYTES_MAX: usize = 2048;
/// Identities of a user or a group at most.
pub const IDENTITIES_MAX: usize = 64;

/// A text that cannot be an identity.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{identity}` is no identity: {why}")]
pub struct IdentityError {
    /// What was given, cut off where it is long.
    identity: String,
    /// What identities are.
    why: &'static str,
}

/// See the module. Compared letter by letter.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identity(String);

impl Identity {
    /// Checks an identity.
    ///
    /// # Errors
    /// When it is no absolute IRI (any printable character may stand behind its scheme, as
    /// providers call users what they like), or too long.
    pub fn new(text: &str) -> Result<Self, IdentityError> {
        let wrong = |why: &'static str| {
            Err(IdentityError {
                identity: text.chars().take(100).collect(),
                why,
            })
        };
        if text.len() > IDENTITY_BYTES_MAX {
            return wrong("it is too long");
        }
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|it: char| it.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
        };
        match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) && !rest.is_empty() => {}
            _ => return wrong("it is no absolute IRI, such as https://example.org/card#me"),
        }
        if text.contains(|it: char| it.is_whitespace() || it.is_control()) {
            return wrong("it has a space or a control character");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Identity {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        Self::new(&text)
    }
}

impl From<Identity> for String {
    fn from(identity: Identity) -> Self {
        identity.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_absolute_and_printable() {
        for text in [
            "https://ann.example/card#me",
            "https://login.example.org#auth0|248289761",
            "https://login.example.org/realms/a#ann@example.org",
            "urn:uuid:1",
        ] {
            assert_eq!(Identity::new(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "ann",
            "card#me",
            "1x:a",
            "x:",
            ":a",
            "x:a b",
            "x:a\n",
            "x:\u{7f}",
            &format!("x:{}", "a".repeat(IDENTITY_BYTES_MAX)),
        ] {
            assert!(Identity::new(text).is_err(), "{text:?}");
        }
    }
}
