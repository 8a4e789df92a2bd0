//! The server's one password. Clients send it in clear (HTTP's Basic), and get a token for further
//! calls.

use std::fmt;

use sha2::{Digest, Sha256};

/// A password, as a salted digest, from which it cannot be derived.
#[derive(Clone)]
pub struct Password {
    salt: [u8; 32],
    digest: [u8; 32],
}

impl Password {
    /// Hashes a password; none for an empty text.
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let salt = rand::random();
        Some(Self {
            digest: digest(&salt, text),
            salt,
        })
    }

    /// Whether a text is the password, in constant time.
    pub(crate) fn is(&self, text: &str) -> bool {
        same(&self.digest, &digest(&self.salt, text))
    }
}

fn digest(salt: &[u8; 32], text: &str) -> [u8; 32] {
    let digest = Sha256::new().chain_update(salt).chain_update(text);
    digest.finalize().into()
}

/// Whether two texts of the same length are equal, in constant time.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_and_another_is_not() {
        let password = Password::new("secret ä").unwrap();
        assert!(password.is("secret ä"));
        assert!(!password.is("secret a") && !password.is("") && !password.is("secret ä "));
        assert!(Password::new("").is_none());
        assert_ne!(
            password.digest,
            Password::new("secret ä").unwrap().digest,
            "each has its own salt"
        );
    }
}
