//! The token that lets a scraper read `/metrics` and nothing else, so that Prometheus needs no
//! administrator's key.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The shortest token: 16 letters of 64 are 96 bits.
const TOKEN_BYTES_MIN: usize = 16;

/// A token for reading `/metrics`, sent as `Authorization: Bearer`. Only its hash is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct MetricsToken([u8; 32]);

impl fmt::Debug for MetricsToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricsToken")
    }
}

impl MetricsToken {
    /// None if the text is too short, or has characters that a header cannot carry.
    pub fn new(text: &str) -> Option<Self> {
        let is_token =
            text.len() >= TOKEN_BYTES_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self(digest(text)))
    }

    /// Whether a value of `Authorization` has this token. The time of the comparison depends on
    /// hashes, not on the token.
    pub fn is_in(&self, authorization: &str) -> bool {
        let Some((scheme, token)) = authorization.split_once(' ') else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && digest(token.trim()) == self.0
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_is_taken() {
        let token = MetricsToken::new("0123456789abcdef").unwrap();
        let is_in = |text: &str| token.is_in(text);
        assert!(is_in("Bearer 0123456789abcdef"));
        assert!(is_in("bearer  0123456789abcdef"));
        assert!(!is_in("Bearer 0123456789abcdeF"));
        assert!(!is_in("Bearer 0123456789abcdef0"));
        assert!(!is_in("Basic 0123456789abcdef"));
        assert!(!is_in("Bearer"));
        assert_eq!(MetricsToken::new("short"), None);
        assert_eq!(MetricsToken::new("0123456789 abcdef"), None);
        assert_eq!(format!("{token:?}"), "MetricsToken");
    }
}
