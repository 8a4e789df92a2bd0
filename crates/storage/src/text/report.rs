//! The report about a full-text index, for the command line and servers.

use serde::{Deserialize, Serialize};

use super::{TextReader, TextRules};
use crate::{Database, Result};

/// The rules of an index, and how much is in it. Its fields are the names that programs read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextReport {
    /// See [`TextRules::predicates`].
    pub properties: Vec<String>,
    /// See [`TextRules::classes`].
    pub classes: Vec<String>,
    /// See [`TextRules::graphs`].
    pub graphs: Vec<String>,
    /// See [`TextRules::languages`].
    pub languages: Vec<String>,
    /// See [`TextRules::grams`].
    pub grams: bool,
    /// Texts of the base.
    pub texts: u64,
    /// Texts that commits brought since.
    pub texts_since: u64,
    /// Length of the file.
    pub bytes: u64,
    /// What the texts since take in memory.
    pub memory_bytes: u64,
}

impl TextReport {
    /// The report of the newest state; none where it has no index.
    ///
    /// # Errors
    /// When the index, or the changes since, cannot be read.
    pub fn of(database: &Database) -> Result<Option<Self>> {
        let view = database.view_of_process();
        let Some(reader) = TextReader::new(&view)? else {
            return Ok(None);
        };
        let rules = reader.rules().cloned().unwrap_or_default();
        let (texts, texts_since) = reader.documents()?;
        let (bytes, memory_bytes) = view.snapshot().text_bytes().unwrap_or_default();
        let TextRules {
            predicates,
            languages,
            classes,
            graphs,
            grams,
        } = rules;
        Ok(Some(Self {
            properties: predicates,
            classes,
            graphs,
            languages,
            grams,
            texts,
            texts_since,
            bytes,
            memory_bytes,
        }))
    }
}
