//! The identity of a database: a random name that its files carry for ever.
//!
//! By it a backup target knows whose backups it holds. A copy of the directory and a restored
//! backup keep it, for they go on where the original was; two databases that were made apart never
//! share it. It stands in the manifest. A database from before there were identities gets one from
//! the next writer.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The identity of a database: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatabaseIdentity(String);

impl DatabaseIdentity {
    /// One that no other database has.
    pub(crate) fn random() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.map_or(0, |since| since.as_nanos());
        // Each has keys of its own, which the standard library takes from the system's source of
        // randomness.
        let word = || {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u128(now_ns);
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        Self(format!("{:016x}{:016x}", word(), word()))
    }
}

impl fmt::Display for DatabaseIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ() {
        let identities: std::collections::HashSet<_> =
            (0..1000).map(|_| DatabaseIdentity::random()).collect();
        assert_eq!(identities.len(), 1000);
        assert!(identities.iter().all(|one| one.to_string().len() == 32));
    }
}
