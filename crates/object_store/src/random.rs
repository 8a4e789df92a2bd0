//! Random words for unique names and jittered waits.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// A word that nobody can guess to be another's: the standard library takes keys from the system's
/// source of randomness.
pub(crate) fn word() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// A name that is given once: 32 hexadecimal digits.
pub(crate) fn name() -> String {
    format!("{:016x}{:016x}", word(), word())
}
