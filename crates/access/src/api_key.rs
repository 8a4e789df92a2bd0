//! API keys of programs: long random texts, each of one user, revocable and with an expiry date.
//!
//! ```text
//! orr_K7fJ2mQx9bTd_...43 letters...      mark, number of the key, secret
//! ```
//!
//! The mark makes one that stands in a log or a repository easy to find. What is kept is the number
//! and SHA-256 of the whole: a secret of 256 random bits needs no slow hash, and so no request
//! waits for one.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::users::UserId;

/// Bytes of what a key is for.
pub(crate) const NOTE_BYTES_MAX: usize = 1024;
const MARK: &str = "orr";
const ID_LETTERS: usize = 12;
const SECRET_LETTERS: usize = 43;
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The stored part of an API key.
#[derive(Clone, Eq, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its number, which stands in its text.
    pub id: String,
    /// Whose it is.
    pub user: UserId,
    /// What it is for, in its owner's words.
    pub note: String,
    /// When it was made, seconds of the Unix epoch.
    pub made: u64,
    /// From when on it is nobody's any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<u64>,
    /// SHA-256 of its text.
    digest: [u8; 32],
}

/// A key as its owner has it, seen once.
#[derive(Clone, Eq, PartialEq)]
pub struct KeyText(String);

impl ApiKey {
    /// A new key, and its text.
    pub fn new(user: UserId, note: &str, made: u64, ends: Option<u64>) -> (Self, KeyText) {
        let id = random_letters(ID_LETTERS);
        let text = format!("{MARK}_{id}_{}", random_letters(SECRET_LETTERS));
        let key = Self {
            id,
            user,
            note: note.to_owned(),
            made,
            ends,
            digest: Sha256::digest(&text).into(),
        };
        (key, KeyText(text))
    }

    /// Whether this is its text, at a time. Takes as long whether it is or not.
    pub fn is(&self, text: &str, now: u64) -> bool {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let differing = digest.iter().zip(&self.digest);
        let differing = differing.fold(0, |all, (one, other)| all | (one ^ other));
        differing == 0 && self.ends.is_none_or(|ends| now < ends)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("id", &self.id)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl KeyText {
    /// The text, for its owner.
    pub fn show(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText")
    }
}

/// The number of the key that a text may be of; none where it has not the form of one.
pub(crate) fn id_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(MARK)?.strip_prefix('_')?;
    let (id, secret) = rest.split_once('_')?;
    let is_of = |text: &str, letters: usize| {
        text.len() == letters && text.bytes().all(|it| LETTERS.contains(&it))
    };
    (is_of(id, ID_LETTERS) && is_of(secret, SECRET_LETTERS)).then_some(id)
}

fn random_letters(count: usize) -> String {
    let letter = |_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]);
    (0..count).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: UserId = UserId(7);

    #[test]
    fn a_key_is_known_by_its_text_until_it_ends() {
        let (key, text) = ApiKey::new(USER, "nightly load", 100, Some(200));
        assert_eq!(id_of(text.show()), Some(key.id.as_str()));
        assert!(key.is(text.show(), 199));
        assert!(!key.is(text.show(), 200));
        let (other, of_other) = ApiKey::new(USER, "", 100, None);
        assert!(other.is(of_other.show(), u64::MAX));
        assert!(!key.is(of_other.show(), 150));
        let json = serde_json::to_string(&key).unwrap();
        assert!(!json.contains(text.show()), "{json}");
        assert_eq!(serde_json::from_str::<ApiKey>(&json).unwrap(), key);
        assert!(!format!("{key:?}{text:?}").contains(text.show()));
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_of_none() {
        let (_, text) = ApiKey::new(USER, "", 0, None);
        let text = text.show();
        let bad = [
            "",
            "orr",
            "orr_",
            "orr__",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}x"),
            &text.replace('_', "-"),
            &format!("{}é{}", &text[..20], &text[22..]),
        ];
        for text in bad {
            assert_eq!(id_of(text), None, "{text:?}");
        }
    }
}
