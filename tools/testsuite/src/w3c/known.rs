//! The list of known failures, each with its reason.
//!
//! One test a line: its name, a space, the reason. `#` begins a comment line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Tests that are known to fail, with reasons.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures {
    reasons: BTreeMap<String, String>,
}

/// Where the list is kept.
pub fn known_failures_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("w3c-known-failures.txt")
}

impl KnownFailures {
    /// Reads the list; fails if an entry has no reason.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut reasons = BTreeMap::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (test, reason) = line
                .split_once(' ')
                .ok_or_else(|| format!("{line}: no reason beside it"))?;
            if reasons
                .insert(test.to_owned(), reason.trim().to_owned())
                .is_some()
            {
                return Err(format!("{test} is listed twice"));
            }
        }
        Ok(Self { reasons })
    }

    /// Why a test is known to fail, if it is.
    pub fn reason(&self, test: &str) -> Option<&str> {
        self.reasons.get(test).map(String::as_str)
    }

    /// All entries: test and reason.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.reasons
            .iter()
            .map(|(test, reason)| (test.as_str(), reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_reason() {
        let known = KnownFailures::parse("# why\na#b the reason\n\n").unwrap();
        assert_eq!(known.reason("a#b"), Some("the reason"));
        assert_eq!(known.reason("a#c"), None);
        assert!(KnownFailures::parse("a#b").is_err());
        assert!(KnownFailures::parse("a#b x\na#b y").is_err());
    }
}
