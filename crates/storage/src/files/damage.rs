//! The findings of a verification.

use std::path::{Path, PathBuf};

use crate::Error;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where the damage lies: its block's first byte, or more exactly.
    pub offset: u64,
    /// What was found.
    pub what: String,
}

/// Something that need not be damage, and what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: PathBuf,
    /// What was seen, what the next writer does about it, and what cannot be known.
    pub what: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// What is damaged.
    pub damages: Vec<Damage>,
    /// What may be.
    pub notes: Vec<Note>,
}

impl Verified {
    /// Whether there is no damage.
    pub fn is_empty(&self) -> bool {
        self.damages.is_empty()
    }

    pub(crate) fn note(&mut self, file: &Path, what: &str) {
        self.notes.push(Note {
            file: file.to_path_buf(),
            what: what.to_owned(),
        });
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} at byte {}: {}",
            self.file.display(),
            self.offset,
            self.what
        )
    }
}

/// An error of a file, as damage.
pub(crate) fn damage_of(error: Error, path: &Path) -> Damage {
    match error {
        Error::Corrupt { path, offset, what } => Damage {
            file: path,
            offset,
            what,
        },
        other => Damage {
            file: path.to_path_buf(),
            offset: 0,
            what: other.to_string(),
        },
    }
}
