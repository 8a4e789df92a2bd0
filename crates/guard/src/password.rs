//! Passwords, as what is kept of them.
//!
//! What is kept is Argon2id's (RFC 9106) with OWASP's least parameters: 19 MiB, two passes. Neither the password nor anything that a client would send can be
//! told from it. To check one takes some 20 milliseconds of a core on purpose; so whoever checks many at a time, as HTTP's Basic does
//! with each request, keeps what it has found ([`Known`](crate::Known)).

use std::fmt;

use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Bytes of a password at least. No other rule makes passwords better.
pub const PASSWORD_BYTES_MIN: usize = 8;
/// And at most, so that nobody has the server hash for long.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Letters and digits that are not taken for one another.
const LETTERS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// Letters of a password that is made: 5.8 bits each.
const MADE_LETTERS: usize = 20;

/// What is kept of a password: the text form of password hashes (PHC), with algorithm, parameters and salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptPassword(String);

impl KeptPassword {
    /// What is kept of a password, with a new salt.
    ///
    /// # Errors
    /// When it is shorter than [`PASSWORD_BYTES_MIN`], or longer than [`PASSWORD_BYTES_MAX`].
    pub fn new(password: &str) -> Result<Self> {
        if !(PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&password.len()) {
            return Err(Error::Password {
                why: format!("it has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes"),
            });
        }
        let kept = Argon2::default().hash_password(password.as_bytes());
        let kept = kept.map_err(|error| Error::Password {
            why: error.to_string(),
        })?;
        Ok(Self(kept.to_string()))
    }

    /// What is kept.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is this password. Takes as long whether it is or not.
    pub fn is(&self, password: &str) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let Ok(kept) = PasswordHash::new(&self.0) else {
            return false;
        };
        let argon2 = Argon2::default();
        argon2.verify_password(password.as_bytes(), &kept).is_ok()
    }
}

impl fmt::Debug for KeptPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptPassword")
    }
}

/// A password that nobody has guessed.
pub fn new_password() -> String {
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    (0..MADE_LETTERS).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_what_is_kept_and_not_told_by_it() {
        let kept = KeptPassword::new("correct horse").unwrap();
        assert!(kept.is("correct horse"));
        assert!(!kept.is("correct horsf"));
        assert!(!kept.is(""));
        assert_ne!(kept, KeptPassword::new("correct horse").unwrap());
        let json = serde_json::to_string(&kept).unwrap();
        assert!(
            json.starts_with("\"$argon2id$v=19$m=19456,t=2,p=1$"),
            "{json}"
        );
        let read: KeptPassword = serde_json::from_str(&json).unwrap();
        assert!(read.is("correct horse"));
        assert_eq!(format!("{kept:?}"), "KeptPassword");
    }

    #[test]
    fn short_and_very_long_ones_are_refused() {
        for length in [0, 7, PASSWORD_BYTES_MAX + 1] {
            assert!(KeptPassword::new(&"x".repeat(length)).is_err(), "{length}");
        }
        let broken: KeptPassword = serde_json::from_str("\"nonsense\"").unwrap();
        assert!(!broken.is("nonsense"));
    }

    #[test]
    fn passwords_that_are_made_differ() {
        let made = new_password();
        assert_eq!(made.len(), MADE_LETTERS);
        assert_ne!(made, new_password());
    }
}
