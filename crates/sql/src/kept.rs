//! Statements that a session keeps under names: of PREPARE, and of the messages of PostgreSQL's protocol. There is one list of them, so that DEALLOCATE and
//! DISCARD forget both.

use std::collections::HashMap;
use std::sync::Arc;

use crate::prepared::Prepared;
use crate::{Error, Result, SqlState};

/// Statements that a session may keep.
const KEPT_MAX: usize = 10_000;
/// Bytes that their names and texts may have together.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// A statement that is kept.
#[derive(Debug, Clone)]
pub struct Kept {
    /// None of a text without a statement.
    pub prepared: Option<Arc<Prepared>>,
    /// What the types of its parameters are to the client that has sent it; none of PREPARE.
    pub types: Option<Arc<[u32]>>,
}

/// All that a session keeps.
#[derive(Debug, Default)]
pub(crate) struct KeptStatements {
    by_name: HashMap<String, Kept>,
    bytes: usize,
}

impl KeptStatements {
    pub(crate) fn get(&self, name: &str) -> Option<&Kept> {
        self.by_name.get(name)
    }

    /// Keeps one, in the place of another of the same name.
    pub(crate) fn insert(&mut self, name: &str, kept: Kept) -> Result<()> {
        let bytes = bytes_of(name, &kept);
        let freed = self.get(name).map_or(0, |kept| bytes_of(name, kept));
        let count = self.by_name.len() + usize::from(freed == 0);
        if count > KEPT_MAX || self.bytes - freed + bytes > KEPT_BYTES_MAX {
            return Err(Error::new(
                SqlState::ProgramLimitExceeded,
                format!(
                    "a session keeps {KEPT_MAX} prepared statements of {} MB together",
                    KEPT_BYTES_MAX >> 20
                ),
            )
            .with_hint("DEALLOCATE some of them."));
        }
        self.bytes = self.bytes - freed + bytes;
        self.by_name.insert(name.to_owned(), kept);
        Ok(())
    }

    /// Whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        match self.by_name.remove(name) {
            Some(kept) => {
                self.bytes -= bytes_of(name, &kept);
                true
            }
            None => false,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// More than nothing, also of an empty text without a name.
fn bytes_of(name: &str, kept: &Kept) -> usize {
    let text = kept.prepared.as_ref().map_or(0, |it| it.text().len());
    let types = kept.types.as_ref().map_or(0, |types| types.len() * 4);
    size_of::<Kept>() + name.len() + text + types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_and_so_are_their_bytes() {
        let empty = Kept {
            prepared: None,
            types: None,
        };
        let mut kept = KeptStatements::default();
        for place in 0..KEPT_MAX {
            kept.insert(&place.to_string(), empty.clone()).unwrap();
        }
        kept.insert("0", empty.clone()).unwrap();
        let refused = kept.insert("one more", empty.clone()).unwrap_err();
        assert_eq!(refused.state, SqlState::ProgramLimitExceeded);
        assert!(kept.remove("7") && !kept.remove("7"));
        kept.insert("one more", empty.clone()).unwrap();
        kept.clear();
        assert_eq!(kept.bytes, 0);
        let long = "n".repeat(KEPT_BYTES_MAX / 2);
        kept.insert(&long, empty.clone()).unwrap();
        assert!(kept.insert(&format!("{long}x"), empty.clone()).is_err());
        assert!(kept.remove(&long));
        assert_eq!(kept.bytes, 0);
    }
}
