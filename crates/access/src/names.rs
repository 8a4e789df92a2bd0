//! Names of users and groups.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of a name at most.
pub const NAME_BYTES_MAX: usize = 128;
/// What rules call those who are no user or group of their own.
const RESERVED: &[&str] = &["anyone", "anonymous", "authenticated", "process"];

/// A text that cannot be a name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is no name of a user or group: {why}")]
pub struct NameError {
    /// What was given, cut off where it is long.
    name: String,
    /// What names are.
    why: String,
}

/// The name of a user or a group, as it may stand in a header, an address and a log.
///
/// Letters and digits of any script, and `.`, `_`, `-`, `@` and `+`; capital letters are others
/// than small ones.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty or too long, has a character that names have not, or is one of the words
    /// that rules know.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let wrong = |why: String| {
            Err(NameError {
                name: text.chars().take(NAME_BYTES_MAX).collect(),
                why,
            })
        };
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return wrong(format!("a name has 1 to {NAME_BYTES_MAX} bytes"));
        }
        let is_allowed = |it: char| it.is_alphanumeric() || ".-_@+".contains(it);
        if let Some(other) = text.chars().find(|it| !is_allowed(*it)) {
            return wrong(format!(
                "{other:?} is not allowed; letters, digits and . _ - @ + are"
            ));
        }
        if RESERVED.contains(&text.to_lowercase().as_str()) {
            return wrong("it has another meaning in rules".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_headers_and_logs_can_show() {
        for name in [
            "alice",
            "Ålice.B-2",
            "a@example.org",
            "x+y",
            &"n".repeat(NAME_BYTES_MAX),
        ] {
            assert_eq!(Name::new(name).map(String::from), Ok(name.to_owned()));
        }
        for name in [
            "",
            "a b",
            "a:b",
            "a/b",
            "a\nb",
            "a\"",
            "Anyone",
            "process",
            &"n".repeat(NAME_BYTES_MAX + 1),
        ] {
            assert!(Name::new(name).is_err(), "{name:?}");
        }
    }
}
