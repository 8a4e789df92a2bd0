//! The manifest: the list of files that make up the database.
//!
//! `DIR/MANIFEST` is JSON for people to read, followed by a line with the checksum of all
//! bytes before it:
//!
//! ```text
//! {
//!   "format_version": 4,
//!   "generation": 7,
//!   "identity": "5b0c...",
//!   ...
//! }
//! crc32c 0a1b2c3d
//! ```
//!
//! It is replaced by writing `MANIFEST.new`, syncing it, renaming it over the old one and syncing
//! the directory: after a power cut there is the old manifest or the new, and the old one's files
//! are removed only after that. Later versions of the format keep `format_version` and the last
//! line, so that this program can say that it is too old.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use orrery_term::{PrefixChange, Prefixes};
use serde::{Deserialize, Serialize};

use crate::files::components::{DirectoryComponents, Need};
use crate::files::identity::DatabaseIdentity;
use crate::files::io::FileSystem;
use crate::quads::graph_set::GraphSet;
use crate::table::TablesEntry;
use crate::text::{TextEntry, TextRules};
use crate::{Error, Result};

/// The database format that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 4;
/// The format before components, features and language tags, and sections in the log. Read, never
/// written.
const FORMAT_VERSION_3: u32 = 3;
/// The format before graphs could be cleared as a whole: no such records in the log, nothing
/// cleared in a delta. Read, never written.
const FORMAT_VERSION_2: u32 = 2;
/// The format before there were updates: one segment and nothing else. Read, never written.
const FORMAT_VERSION_1: u32 = 1;

/// A flushed delta says which graphs of its base are cleared: without that they would be back.
const CLEARED_GRAPHS: &str = "cleared-graphs";
/// It is noted how language tags are written.
const LANGUAGE_TAGS: &str = "language-tags";
/// The database has prefixes of its own.
const PREFIXES: &str = "prefixes";
/// There are tables, or schemas.
const TABLES: &str = "tables";
/// There is an index of texts: a program that does not know of it would leave its files behind, and
/// out of backups.
const TEXT: &str = "text";
/// Classes or graphs say which texts: a program that does not know of these would index others at
/// the next load.
const TEXT_SELECTION: &str = "text-by-class-and-graph";

const MANIFEST_FILE: &str = "MANIFEST";
const MANIFEST_NEW_FILE: &str = "MANIFEST.new";
const CHECKSUM_LINE_BYTES: usize = "crc32c 01234567\n".len();

/// The content of a manifest.
///
/// A state of the database is a *base* (a segment with all quads of a commit), changed by at most
/// one *delta* relative to it, and by the commits that the *log* files hold after that. The last
/// base with its last delta and all its log files after it is the present state; what stands before
/// is kept so that older commits can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the database format.
    pub format_version: u32,
    /// Counts the manifests of this database: each publish adds one.
    pub generation: u64,
    /// Who the database is; missing until the first writer that knows of identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<DatabaseIdentity>,
    /// What the database makes use of beside its components.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, Need>,
    /// The oldest first; never empty.
    pub bases: Vec<BaseEntry>,
    /// The language tags of the terms, as they are written; the dictionaries have them in lower
    /// case. Those that came with commits in the last log stand in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub language_tags: Vec<String>,
    /// The prefixes of the database beside the well-known ones. Those that changed with commits in
    /// the last log stand in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<PrefixEntry>,
    /// Which literals a new base gets an index of their texts for, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRules>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// The names that a manifest lists in the database's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestNames {
    /// Directories with files that are never changed.
    pub directories: BTreeSet<String>,
    /// Log files, within [`LOG_DIRECTORY`](crate::files::log::LOG_DIRECTORY).
    pub logs: BTreeSet<String>,
}

/// A prefix of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixEntry {
    /// Its name, without the colon.
    pub name: String,
    /// What it stands for.
    pub iri: String,
    /// Whether somebody gave it; else a loaded file declares it.
    #[serde(default)]
    pub is_given: bool,
}

impl PrefixEntry {
    /// All that a table has.
    pub(crate) fn all_of(prefixes: &Prefixes) -> Vec<Self> {
        let entry = |change| match change {
            PrefixChange::Loaded { name, iri } => Some((name, iri, false)),
            PrefixChange::Given { name, iri } => Some((name, iri, true)),
            PrefixChange::Removed { .. } => None,
        };
        let entries = prefixes.own().filter_map(entry);
        entries
            .map(|(name, iri, is_given)| Self {
                name,
                iri,
                is_given,
            })
            .collect()
    }

    fn as_change(&self) -> PrefixChange {
        let (name, iri) = (self.name.clone(), self.iri.clone());
        match self.is_given {
            true => PrefixChange::Given { name, iri },
            false => PrefixChange::Loaded { name, iri },
        }
    }
}

/// A segment with all quads of one commit, and what was changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseEntry {
    /// The commit whose quads the segment holds.
    pub commit: u64,
    /// When that commit was made, in microseconds since 1970.
    pub time_us: i64,
    /// Number of quads of the segment.
    pub quad_count: u64,
    /// Number of terms in its dictionary.
    pub term_count: u64,
    /// The number that the next new blank node gets at that commit.
    pub next_blank_node: u64,
    /// What the commit changed, if it was a bulk load.
    #[serde(default)]
    pub loaded: Option<Loaded>,
    /// Generation of the manifest that brought the segment.
    pub generation: u64,
    /// The segment's files.
    pub segment: DirectoryComponents,
    /// Flushed changes relative to the segment, each complete by itself; the oldest first.
    pub deltas: Vec<FlushedEntry>,
    /// The log files, the oldest first; each goes on where the one before ends.
    pub logs: Vec<LogEntry>,
    /// The tables at that commit, if there ever were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesEntry>,
    /// The index of the texts of the segment's literals, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextEntry>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

impl BaseEntry {
    /// The directory with the index of its texts, if there is one.
    pub(crate) fn directory_of_texts(&self) -> Option<&DirectoryComponents> {
        self.text.as_ref().map(|text| &text.directory)
    }

    /// The directories of all its indices.
    pub(crate) fn directories_of_indices(&self) -> impl Iterator<Item = &DirectoryComponents> {
        self.directory_of_texts().into_iter()
    }

    /// What it and its deltas say of tables.
    fn all_tables(&self) -> impl Iterator<Item = &TablesEntry> {
        let deltas = self.deltas.iter().filter_map(|delta| delta.tables.as_ref());
        self.tables.iter().chain(deltas)
    }

    /// All directories with files of tables, some of them more than once.
    pub(crate) fn directories_of_tables(&self) -> impl Iterator<Item = &DirectoryComponents> {
        let of_logs = self.logs.iter().flat_map(|log| &log.tables);
        self.all_tables()
            .flat_map(TablesEntry::directories)
            .chain(of_logs)
    }
}

/// The changes of a bulk load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Number of quads that it added.
    pub added: u64,
    /// Number of quads that it removed.
    pub removed: u64,
}

/// The entry of a flushed delta: all changes between a base and a later commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushedEntry {
    /// The commit that base and delta make up.
    pub commit: u64,
    /// When that commit was made, in microseconds since 1970.
    pub time_us: i64,
    /// Number of quads of base and delta.
    pub quad_count: u64,
    /// Number of terms in the delta's dictionary.
    pub term_count: u64,
    /// The number that the next new blank node gets at that commit.
    pub next_blank_node: u64,
    /// Whether there are, or were, quads outside the default graph.
    pub has_named_graphs: bool,
    /// Graphs that were cleared as a whole: the base's quads of these do not belong to the state,
    /// and the delta is relative to the others.
    #[serde(default)]
    pub cleared: GraphSet,
    /// The delta's files.
    #[serde(alias = "segment")]
    pub delta: DirectoryComponents,
    /// The tables at that commit, if there ever were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesEntry>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// A log file in `DIR/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Name of the file.
    pub name: String,
    /// The number of the first commit that is, or will be, in it.
    pub first_commit: u64,
    /// Files of tables that commits in it name; perhaps some of a commit that never came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<DirectoryComponents>,
    /// What a newer program says of it.
    #[serde(flatten)]
    pub further: BTreeMap<String, serde_json::Value>,
}

/// As much as every version of the format has.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

/// The features of every version that this program reads: a required one may change the shape of
/// all else.
#[derive(Deserialize)]
struct FeaturesOnly {
    #[serde(default)]
    features: BTreeMap<String, Need>,
}

/// The manifest of format version 1.
#[derive(Deserialize)]
struct ManifestVersion1 {
    generation: u64,
    quad_count: u64,
    term_count: u64,
    next_blank_node: u64,
    segment: DirectoryComponents,
}

impl From<ManifestVersion1> for Manifest {
    fn from(old: ManifestVersion1) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            generation: old.generation,
            identity: None,
            features: BTreeMap::new(),
            bases: vec![BaseEntry {
                // The first manifest was that of the empty database; each load made another.
                commit: old.generation.saturating_sub(1),
                time_us: 0,
                quad_count: old.quad_count,
                term_count: old.term_count,
                next_blank_node: old.next_blank_node,
                loaded: None,
                generation: old.generation,
                segment: old.segment,
                deltas: Vec::new(),
                logs: Vec::new(),
                tables: None,
                text: None,
                further: BTreeMap::new(),
            }],
            language_tags: Vec::new(),
            prefixes: Vec::new(),
            text: None,
            further: BTreeMap::new(),
        }
    }
}

impl Manifest {
    /// The base of the present state.
    ///
    /// # Panics
    ///
    /// If there is none, which `Self::read` refuses.
    pub fn present(&self) -> &BaseEntry {
        let Some(base) = self.bases.last() else {
            unreachable!("a manifest without a base was accepted");
        };
        base
    }

    /// The same, to be changed.
    pub(crate) fn present_mut(&mut self) -> &mut BaseEntry {
        let Some(base) = self.bases.last_mut() else {
            unreachable!("a manifest without a base was accepted");
        };
        base
    }

    /// Gives the database an identity if it has none; whether it had none.
    pub(crate) fn identify(&mut self) -> bool {
        let is_new = self.identity.is_none();
        self.identity.get_or_insert_with(DatabaseIdentity::random);
        is_new
    }

    /// The prefixes of the database.
    pub(crate) fn prefix_table(&self) -> Prefixes {
        self.prefixes.iter().map(PrefixEntry::as_change).collect()
    }

    /// Names of all segments and deltas that are in use, and of the directories of tables and
    /// indices.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &str> {
        self.bases.iter().flat_map(|base| {
            let deltas = base.deltas.iter().map(|delta| delta.delta.name.as_str());
            let others = base.directories_of_tables();
            let others = others.chain(base.directories_of_indices());
            deltas
                .chain([base.segment.name.as_str()])
                .chain(others.map(|directory| directory.name.as_str()))
        })
    }

    /// Names of all log files that are in use.
    pub(crate) fn log_names(&self) -> impl Iterator<Item = &str> {
        let logs = self.bases.iter().flat_map(|base| &base.logs);
        logs.map(|log| log.name.as_str())
    }

    /// The names in a manifest's bytes, for a file system that keeps what it names. Fails where it
    /// cannot be read.
    pub fn names_in(bytes: &[u8]) -> Result<ManifestNames> {
        let manifest = Self::parse(bytes, Path::new(MANIFEST_FILE))?;
        Ok(ManifestNames {
            directories: manifest.directories().map(str::to_owned).collect(),
            logs: manifest.log_names().map(str::to_owned).collect(),
        })
    }

    /// Where the manifest of a database stands.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join(MANIFEST_FILE)
    }

    /// Reads and checks the manifest; says what is wrong with a directory that has none.
    pub(crate) fn read(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let path = Self::path(directory);
        match file_system.metadata(directory)? {
            None => {
                return Err(Error::NotFound {
                    path: directory.to_path_buf(),
                    operation: "open the database",
                });
            }
            Some(found) if !found.is_directory => {
                return Err(Error::NotADirectory {
                    path: directory.to_path_buf(),
                    operation: "open the database",
                });
            }
            Some(_) => {}
        }
        if file_system.metadata(&path)?.is_none() {
            let what = match file_system.list(directory)?.is_empty() {
                true => "the directory is empty",
                false => "there is no MANIFEST in it",
            };
            return Err(Error::NotADatabase {
                path: directory.to_path_buf(),
                what: what.to_owned(),
            });
        }
        Self::parse(&file_system.read(&path)?, &path)
    }

    /// Makes this the manifest of the database; when it returns, it is on the disk.
    ///
    /// After [`Error::WritingStopped`] nobody knows which manifest a power cut would leave: no file
    /// that either of them names may be removed, and no commit acknowledged, until the database is
    /// opened anew. After any other error the one before is in place.
    pub(crate) fn publish(&self, file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
        let new_path = directory.join(MANIFEST_NEW_FILE);
        let bytes = self.to_bytes(&new_path)?;
        let mut file = file_system.create(&new_path)?;
        file.append(&bytes)?;
        file.sync()?;
        drop(file);
        let path = Self::path(directory);
        file_system.rename(&new_path, &path)?;
        file_system
            .sync_dir(directory)
            .map_err(|error| Error::WritingStopped {
                path,
                what: error.to_string(),
            })
    }

    pub(crate) fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let mut written = self.clone();
        written.state_features();
        let mut bytes = serde_json::to_vec_pretty(&written)
            .map_err(|error| Error::invalid_input(path, error.to_string()))?;
        bytes.push(b'\n');
        let line = checksum_line(&bytes);
        bytes.extend_from_slice(line.as_bytes());
        Ok(bytes)
    }

    /// Says which features are in use; those that this program does not know stay as they are.
    fn state_features(&mut self) {
        let deltas = || self.bases.iter().flat_map(|base| &base.deltas);
        let has_cleared = deltas().any(|delta| !delta.cleared.is_empty());
        let has_tables = self
            .bases
            .iter()
            .any(|base| base.all_tables().next().is_some());
        let has_text = self.text.is_some() || self.bases.iter().any(|base| base.text.is_some());
        let of_bases = self.bases.iter().filter_map(|base| base.text.as_ref());
        let mut rules = of_bases.map(|text| &text.rules).chain(&self.text);
        let has_selection = rules.any(TextRules::selects_classes_or_graphs);
        for (name, need, is_used) in [
            (CLEARED_GRAPHS, Need::Required, has_cleared),
            (
                LANGUAGE_TAGS,
                Need::Optional,
                !self.language_tags.is_empty(),
            ),
            (PREFIXES, Need::Optional, !self.prefixes.is_empty()),
            (TABLES, Need::Required, has_tables),
            (TEXT, Need::Required, has_text),
            (TEXT_SELECTION, Need::Required, has_selection),
        ] {
            match is_used {
                true => self.features.insert(name.to_owned(), need),
                false => self.features.remove(name),
            };
        }
    }

    /// Fails if there is a component that must be understood and is not.
    fn check_components(&self, path: &Path) -> Result<()> {
        self.bases.iter().try_for_each(|base| {
            base.segment.check_known(path)?;
            let others = base.directories_of_tables();
            let mut others = others.chain(base.directories_of_indices());
            others.try_for_each(|directory| directory.check_known(path))?;
            let mut deltas = base.deltas.iter();
            deltas.try_for_each(|delta| delta.delta.check_known(path))
        })
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let split = bytes.len().saturating_sub(CHECKSUM_LINE_BYTES);
        let (json, line) = bytes.split_at(split);
        if line != checksum_line(json).as_bytes() {
            return Err(Error::corrupt(
                path,
                0,
                "its content does not match its last line, the checksum",
            ));
        }
        let json_error = |error: serde_json::Error| Error::corrupt(path, 0, error.to_string());
        let VersionOnly { format_version } = serde_json::from_slice(json).map_err(json_error)?;
        match format_version {
            FORMAT_VERSION | FORMAT_VERSION_3 | FORMAT_VERSION_2 => {}
            FORMAT_VERSION_1 => {
                let old: ManifestVersion1 = serde_json::from_slice(json).map_err(json_error)?;
                return Ok(old.into());
            }
            found => {
                return Err(Error::FormatVersion {
                    path: path.to_path_buf(),
                    found,
                    supported: FORMAT_VERSION,
                });
            }
        }
        let FeaturesOnly { features } = serde_json::from_slice(json).map_err(json_error)?;
        check_features(&features, path)?;
        let mut manifest: Self = serde_json::from_slice(json).map_err(json_error)?;
        // What is published from it is of this version, as soon as there is a writer.
        manifest.format_version = FORMAT_VERSION;
        if manifest.bases.is_empty() {
            return Err(Error::corrupt(path, 0, "it names no segment"));
        }
        manifest.check_components(path)?;
        Ok(manifest)
    }
}

/// Fails if there is a feature that must be understood and is not.
fn check_features(features: &BTreeMap<String, Need>, path: &Path) -> Result<()> {
    let unknown = features.iter().find(|(name, need)| {
        **need == Need::Required
            && !matches!(
                name.as_str(),
                CLEARED_GRAPHS | LANGUAGE_TAGS | PREFIXES | TABLES | TEXT | TEXT_SELECTION
            )
    });
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(Error::UnknownPart {
            path: path.to_path_buf(),
            what: format!("the feature '{name}'"),
        }),
    }
}

fn checksum_line(bytes: &[u8]) -> String {
    format!("crc32c {:08x}\n", crc32c::crc32c(bytes))
}

#[cfg(test)]
mod tests;
