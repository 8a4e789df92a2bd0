//! Command tags of PostgreSQL's protocol, such as `INSERT 0 2`.

use std::collections::BTreeSet;
use std::fmt;

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize};

/// Words of the program, or of another process that has the same.
type KnownWords = &'static str;

/// The command tag of a statement, as PostgreSQL has it: `INSERT 0 5`, `CREATE TABLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tag {
    /// So many rows were read.
    Select(u64),
    /// So many rows came.
    Insert(u64),
    /// So many rows were changed.
    Update(u64),
    /// So many rows went.
    Delete(u64),
    /// So many rows were read from a file or a client, or written to one.
    Copy(u64),
    /// So many quads of a mapped graph came.
    Materialize(u64),
    /// So many rows were taken from a cursor.
    Fetch(u64),
    /// Something that is not counted.
    Words(#[serde(deserialize_with = "known_words")] KnownWords),
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Select(rows) => write!(f, "SELECT {rows}"),
            Self::Insert(rows) => write!(f, "INSERT 0 {rows}"),
            Self::Update(rows) => write!(f, "UPDATE {rows}"),
            Self::Delete(rows) => write!(f, "DELETE {rows}"),
            Self::Copy(rows) => write!(f, "COPY {rows}"),
            Self::Materialize(quads) => write!(f, "MATERIALIZE {quads}"),
            Self::Fetch(rows) => write!(f, "FETCH {rows}"),
            Self::Words(words) => f.write_str(words),
        }
    }
}

/// As they are for as long as the process lives: there are a few dozen.
fn known_words<'de, D: Deserializer<'de>>(words: D) -> Result<KnownWords, D::Error> {
    static KNOWN: Mutex<BTreeSet<KnownWords>> = Mutex::new(BTreeSet::new());
    let words = String::deserialize(words)?;
    let mut known = KNOWN.lock();
    if let Some(words) = known.get(words.as_str()) {
        return Ok(words);
    }
    let words: KnownWords = words.leak();
    known.insert(words);
    Ok(words)
}
