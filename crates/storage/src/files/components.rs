//! Components: the lists of files in directories that a manifest names.
//!
//! ```text
//! "segment": { "name": "segment-000007", "components": [
//!   { "kind": "terms", "version": 1, "need": "required", "files": [ ... ] },
//!   { "kind": "permutation", "order": "psog", "version": 1, "need": "required", "files": [ ... ] } ] }
//! ```
//!
//! Each says what kind it is, in which version, and whether the data mean something else without
//! it. An unknown optional one is passed over: it stays in the manifest as it is, its files stay,
//! and backups copy them. Unknown fields of what is known are kept as long as the entry that they
//! stand in. An unknown required component refuses the database, and is named. A load or a
//! compaction writes another directory, with the components that it knows. Ids are ranks in the
//! directory's dictionary and change then: a derived index is written anew, or brought over by
//! `renumbering`, or has ordinals of its own.
//!
//! Until format version 3 a directory was a list of files, whose names say of which component they
//! are; no other has ever been written.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::quads::dictionary::{LARGE_FILE, TERMS_FILE};
use crate::quads::index::Permutation;
use crate::quads::statistics::STATISTICS_FILE;
use crate::{Error, Result};

/// Name of the file with the terms of a flushed delta.
pub(crate) const DELTA_TERMS_FILE: &str = "terms.delta";

/// The version in which this program writes each of its components.
const VERSION: u32 = 1;

const TERMS: &str = "terms";
const PERMUTATION: &str = "permutation";
const STATISTICS: &str = "statistics";
const NEW_TERMS: &str = "new-terms";
const CHANGES: &str = "changes";
const ROWS: &str = "rows";
const TABLE_CHANGES: &str = "table-changes";
const TEXTS: &str = "texts";

/// Name of the file with the index of texts.
pub(crate) const TEXT_FILE: &str = "text.index";

/// Ends the names of files with the rows of a projection of a table.
const ROWS_SUFFIX: &str = ".rows";
/// Ends the names of files with the changes of a table.
const TABLE_CHANGES_SUFFIX: &str = ".changes";

/// Name of a permutation's file.
pub(crate) fn index_file(permutation: Permutation) -> String {
    format!("{}.col", permutation.name())
}

/// Name of the file with a permutation's changes.
pub(crate) fn delta_file(permutation: Permutation) -> String {
    format!("{}.delta", permutation.name())
}

/// Whether a program that does not know something may use the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// The data mean something else without it.
    Required,
    /// It is passed over, and kept.
    Optional,
}

/// A directory of files that are never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ReadDirectory")]
pub struct DirectoryComponents {
    /// Name of the directory within the database's.
    pub name: String,
    /// What it holds.
    pub components: Vec<ComponentEntry>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// A part of a directory, in files of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentEntry {
    /// What it is.
    pub kind: String,
    /// Of a permutation, or of changes: in which order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// In which version its files are.
    pub version: u32,
    /// Whether it may be passed over.
    pub need: Need,
    /// Its files.
    pub files: Vec<FileEntry>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// A file of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name within the directory.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// CRC32C of the block file's footer, which holds the checksums of all blocks.
    pub crc32c: u32,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

impl FileEntry {
    /// A file of which nothing else is said.
    pub(crate) fn new(name: String, bytes: u64, crc32c: u32) -> Self {
        Self {
            name,
            bytes,
            crc32c,
            further: BTreeMap::new(),
        }
    }
}

/// The components that this program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// The dictionary of a base.
    Terms,
    /// All quads of a base, in one order.
    Permutation(Permutation),
    /// The statistics of a base.
    Statistics,
    /// The terms that came after a base.
    NewTerms,
    /// What changed after a base, in the order of a permutation.
    Changes(Permutation),
    /// What has a directory of its own, beside those of bases and flushed deltas.
    Apart(ComponentApart),
}

/// The components that have directories of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentApart {
    /// The rows of a table, by its key or an index.
    Rows,
    /// What changed in tables after their rows were written.
    TableChanges,
    /// An index of the texts of a base.
    Texts,
}

/// A directory in any version of the format.
#[derive(Deserialize)]
struct ReadDirectory {
    name: String,
    #[serde(default)]
    components: Vec<ComponentEntry>,
    #[serde(default)]
    files: Vec<FileEntry>,
    #[serde(flatten)]
    further: BTreeMap<String, serde_json::Value>,
}

impl From<ReadDirectory> for DirectoryComponents {
    fn from(read: ReadDirectory) -> Self {
        let mut entry = Self::of_files(read.name, read.files);
        entry.components.extend(read.components);
        entry.further = read.further;
        entry
    }
}

impl DirectoryComponents {
    /// A directory of files whose names say of which component they are. Of a file with another
    /// name nobody knows what it is needed for.
    pub(crate) fn of_files(name: String, files: Vec<FileEntry>) -> Self {
        let mut components: Vec<ComponentEntry> = Vec::new();
        for file in files {
            let (kind, order) = match Component::of_file(&file.name) {
                Some(component) => component.names(),
                None => (file.name.as_str(), None),
            };
            let is_same =
                |other: &ComponentEntry| other.kind == kind && other.order.as_deref() == order;
            match components.iter().position(is_same) {
                Some(at) => components[at].files.push(file),
                None => components.push(ComponentEntry {
                    kind: kind.to_owned(),
                    order: order.map(str::to_owned),
                    version: VERSION,
                    need: Need::Required,
                    files: vec![file],
                    further: BTreeMap::new(),
                }),
            }
        }
        Self {
            name,
            components,
            further: BTreeMap::new(),
        }
    }

    /// All files, also those of components that this program does not know.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.components
            .iter()
            .flat_map(|component| &component.files)
    }

    /// The components that this program knows.
    pub(crate) fn known(&self) -> impl Iterator<Item = (Component, &ComponentEntry)> {
        let components = self.components.iter();
        components.filter_map(|entry| Some((entry.component()?, entry)))
    }

    /// The files of these, each with what it is of.
    pub(crate) fn known_files(&self) -> impl Iterator<Item = (Component, &FileEntry)> {
        self.known()
            .flat_map(|(component, entry)| entry.files.iter().map(move |file| (component, file)))
    }

    /// The files, to be completed.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut FileEntry> {
        self.components
            .iter_mut()
            .flat_map(|component| &mut component.files)
    }

    /// Bytes of all files, also of those that nothing here reads.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }

    /// Fails if the manifest at `path` names a component here that must be understood and is not.
    pub(crate) fn check_known(&self, path: &Path) -> Result<()> {
        let unknown = self
            .components
            .iter()
            .find(|entry| entry.need == Need::Required && entry.component().is_none());
        match unknown {
            None => Ok(()),
            Some(entry) => Err(Error::UnknownPart {
                path: path.to_path_buf(),
                what: format!(
                    "the component '{}' of version {} in {}",
                    entry.kind, entry.version, self.name
                ),
            }),
        }
    }
}

impl ComponentEntry {
    /// What it is, if this program knows it in this version.
    pub(crate) fn component(&self) -> Option<Component> {
        if self.version != VERSION {
            return None;
        }
        let order = || {
            let name = self.order.as_deref()?;
            Permutation::ALL.into_iter().find(|it| it.name() == name)
        };
        match self.kind.as_str() {
            TERMS => Some(Component::Terms),
            PERMUTATION => order().map(Component::Permutation),
            STATISTICS => Some(Component::Statistics),
            NEW_TERMS => Some(Component::NewTerms),
            CHANGES => order().map(Component::Changes),
            ROWS => Some(Component::Apart(ComponentApart::Rows)),
            TABLE_CHANGES => Some(Component::Apart(ComponentApart::TableChanges)),
            TEXTS => Some(Component::Apart(ComponentApart::Texts)),
            _ => None,
        }
    }
}

impl Component {
    /// The component that a file of this name belongs to.
    fn of_file(name: &str) -> Option<Self> {
        let mut all = Permutation::ALL.into_iter();
        match name {
            TERMS_FILE | LARGE_FILE => Some(Self::Terms),
            STATISTICS_FILE => Some(Self::Statistics),
            DELTA_TERMS_FILE => Some(Self::NewTerms),
            TEXT_FILE => Some(Self::Apart(ComponentApart::Texts)),
            _ if name.ends_with(ROWS_SUFFIX) => Some(Self::Apart(ComponentApart::Rows)),
            _ if name.ends_with(TABLE_CHANGES_SUFFIX) => {
                Some(Self::Apart(ComponentApart::TableChanges))
            }
            _ => all.find_map(|permutation| {
                if name == index_file(permutation) {
                    return Some(Self::Permutation(permutation));
                }
                (name == delta_file(permutation)).then_some(Self::Changes(permutation))
            }),
        }
    }

    /// Kind and order.
    fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Terms => (TERMS, None),
            Self::Permutation(permutation) => (PERMUTATION, Some(permutation.name())),
            Self::Statistics => (STATISTICS, None),
            Self::NewTerms => (NEW_TERMS, None),
            Self::Changes(permutation) => (CHANGES, Some(permutation.name())),
            Self::Apart(ComponentApart::Rows) => (ROWS, None),
            Self::Apart(ComponentApart::TableChanges) => (TABLE_CHANGES, None),
            Self::Apart(ComponentApart::Texts) => (TEXTS, None),
        }
    }
}
