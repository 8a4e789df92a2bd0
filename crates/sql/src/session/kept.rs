//! The named prepared statements of a session, from PREPARE and from PostgreSQL's protocol alike.
//! They share one list, so that DEALLOCATE and DISCARD forget both.
//!
//! What their trees and plans take is held by each statement ([`Prepared`]); their names and types
//! here.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::plan::prepared::Prepared;
use crate::{Error, Result, SqlState};

/// Statements that a session may keep.
const KEPT_MAX: usize = 10_000;
/// Bytes that their names and texts may have together.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// A place in the map, which doubles, and what else there is of a statement that is none.
const ENTRY_BYTES: usize = 512;

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
    by_name: HashMap<String, Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    kept: Kept,
    _memory: MemoryReservation,
}

impl KeptStatements {
    pub(crate) fn get(&self, name: &str) -> Option<&Kept> {
        self.by_name.get(name).map(|held| &held.kept)
    }

    /// Keeps one, in the place of another of the same name.
    pub(crate) fn insert(
        &mut self,
        name: &str,
        kept: Kept,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<()> {
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
        let memory = MemoryConsumer::new("a prepared statement").register(pool);
        let grown = memory.try_grow(ENTRY_BYTES + bytes - text_bytes(&kept));
        grown.map_err(|error| Error::of_run(&error).with_hint("DEALLOCATE some of them."))?;
        self.bytes = self.bytes - freed + bytes;
        let held = Held {
            kept,
            _memory: memory,
        };
        self.by_name.insert(name.to_owned(), held);
        Ok(())
    }

    /// Whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        match self.by_name.remove(name) {
            Some(held) => {
                self.bytes -= bytes_of(name, &held.kept);
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
    let types = kept.types.as_ref().map_or(0, |types| types.len() * 4);
    size_of::<Kept>() + name.len() + text_bytes(kept) + types
}

/// Of the text, which is held with the statement's tree.
fn text_bytes(kept: &Kept) -> usize {
    kept.prepared.as_ref().map_or(0, |it| it.text().len())
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    use super::*;

    #[test]
    fn names_and_places_are_held() {
        let empty = Kept {
            prepared: None,
            types: None,
        };
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let mut kept = KeptStatements::default();
        let refused = (0..KEPT_MAX).find_map(|place| {
            let done = kept.insert(&place.to_string(), empty.clone(), &pool);
            done.err()
        });
        assert_eq!(refused.unwrap().state, SqlState::OutOfMemory);
        kept.clear();
        assert_eq!(pool.reserved(), 0);
        assert!(
            kept.insert(&"n".repeat(1 << 20), empty.clone(), &pool)
                .is_err()
        );
        kept.insert(&"n".repeat(1 << 19), empty.clone(), &pool)
            .unwrap();
        kept.remove(&"n".repeat(1 << 19));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn statements_are_counted_and_so_are_their_bytes() {
        let empty = Kept {
            prepared: None,
            types: None,
        };
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut kept = KeptStatements::default();
        for place in 0..KEPT_MAX {
            kept.insert(&place.to_string(), empty.clone(), &pool)
                .unwrap();
        }
        kept.insert("0", empty.clone(), &pool).unwrap();
        let refused = kept.insert("one more", empty.clone(), &pool).unwrap_err();
        assert_eq!(refused.state, SqlState::ProgramLimitExceeded);
        assert!(kept.remove("7") && !kept.remove("7"));
        kept.insert("one more", empty.clone(), &pool).unwrap();
        kept.clear();
        assert_eq!(kept.bytes, 0);
        let long = "n".repeat(KEPT_BYTES_MAX / 2);
        kept.insert(&long, empty.clone(), &pool).unwrap();
        assert!(
            kept.insert(&format!("{long}x"), empty.clone(), &pool)
                .is_err()
        );
        assert!(kept.remove(&long));
        assert_eq!(kept.bytes, 0);
    }
}
