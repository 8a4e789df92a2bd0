//! Hashes of passwords.
//!
//! The hash is Argon2id's (RFC 9106) with OWASP's minimal parameters: 19 MiB, two passes. Neither
//! the password nor anything that a client would send can be told from it. To check one takes some
//! 20 milliseconds of a core on purpose; so whoever checks many at a time, as HTTP's Basic does
//! with each request, keeps what it has found ([`Known`](crate::Known)).
//!
//! Beside it stands what clients of PostgreSQL are known by, who do not send their password
//! ([`ScramVerifier`]). Passwords that were set before there was such a thing have none, and are
//! read all the same.

use std::fmt;

use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::scram::ScramVerifier;

/// Bytes of a password at least. No other rule makes passwords better.
pub const PASSWORD_BYTES_MIN: usize = 8;
/// And at most, so that nobody has the server hash for long.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Letters and digits that are not taken for one another.
const LETTERS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// Letters of a password that is made: 5.8 bits each.
const MADE_LETTERS: usize = 20;

/// The stored hash of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct KeptPassword {
    /// The text form of password hashes (PHC), with algorithm, parameters and salt.
    hash: String,
    /// None of a password that was set before these were kept.
    scram: Option<ScramVerifier>,
}

/// The same in the catalog's table.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Hash(String),
    Both {
        argon2id: String,
        scram: ScramVerifier,
    },
}

impl From<Written> for KeptPassword {
    fn from(written: Written) -> Self {
        match written {
            Written::Hash(hash) => Self { hash, scram: None },
            Written::Both { argon2id, scram } => Self {
                hash: argon2id,
                scram: Some(scram),
            },
        }
    }
}

impl From<KeptPassword> for Written {
    fn from(kept: KeptPassword) -> Self {
        match kept.scram {
            None => Self::Hash(kept.hash),
            Some(scram) => Self::Both {
                argon2id: kept.hash,
                scram,
            },
        }
    }
}

impl KeptPassword {
    /// Hashes a password with a new salt.
    ///
    /// # Errors
    /// When it is shorter than [`PASSWORD_BYTES_MIN`], or longer than [`PASSWORD_BYTES_MAX`].
    pub fn new(password: &str) -> Result<Self> {
        if !(PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&password.len()) {
            return Err(Error::Password {
                why: format!("it has {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes"),
            });
        }
        Ok(Self {
            scram: Some(ScramVerifier::new(password)),
            ..Self::hashed(password)?
        })
    }

    /// The hash of an unknown password, checked where there is no user, so that timing reveals
    /// nothing.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn decoy() -> Result<Self> {
        Self::hashed(&new_password())
    }

    fn hashed(password: &str) -> Result<Self> {
        let hash = Argon2::default().hash_password(password.as_bytes());
        let hash = hash.map_err(|error| Error::Password {
            why: error.to_string(),
        })?;
        Ok(Self {
            hash: hash.to_string(),
            scram: None,
        })
    }

    /// The hash for passwords that are sent in clear.
    pub fn text(&self) -> &str {
        &self.hash
    }

    /// The verifier for SCRAM.
    pub fn scram(&self) -> Option<&ScramVerifier> {
        self.scram.as_ref()
    }

    /// Whether it is this password. Takes as long whether it is or not.
    pub fn is(&self, password: &str) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let Ok(kept) = PasswordHash::new(&self.hash) else {
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
            json.starts_with(r#"{"argon2id":"$argon2id$v=19$m=19456,t=2,p=1$"#),
            "{json}"
        );
        let read: KeptPassword = serde_json::from_str(&json).unwrap();
        assert!(read.is("correct horse"));
        assert_eq!(read, kept);
        assert_eq!(format!("{kept:?}"), "KeptPassword");
    }

    #[test]
    fn one_that_was_set_before_scram_is_read_and_written_as_it_was() {
        let kept = KeptPassword::new("correct horse").unwrap();
        assert!(kept.scram().is_some());
        let before = serde_json::to_string(kept.text()).unwrap();
        let read: KeptPassword = serde_json::from_str(&before).unwrap();
        assert!(read.is("correct horse") && read.scram().is_none());
        assert_eq!(serde_json::to_string(&read).unwrap(), before);
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
