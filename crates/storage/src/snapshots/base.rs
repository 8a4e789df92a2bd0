//! An open base segment: dictionary, permutations and statistics of one commit.
//!
//! Opening maps the files and reads their footers; the statistics, a few kilobytes to a few
//! megabytes, are the only thing that is decoded. They follow from the quads: where their file is
//! damaged they are counted anew, at every opening until a compaction or a load writes another
//! base, at the cost of one pass over the permutations; what holds the data itself is refused. All
//! snapshots over a base share it, and its delta dictionary; its files stay readable while one of
//! them lives, whatever writers do.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::files::block_file::{BlockFile, FileSummary};
use crate::files::components::{Component, FileEntry, index_file};
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_length, check_summary};
use crate::files::manifest::BaseEntry;
use crate::quads::delta_dictionary::DeltaDictionary;
use crate::quads::dictionary::{Dictionary, LARGE_FILE, TERMS_FILE};
use crate::quads::index::{PerPermutation, Permutation, QuadIndex};
use crate::quads::statistics::STATISTICS_FILE;
use crate::quads::statistics::{self, STATISTICS_KIND, Statistics};
use crate::text::{TextEntry, TextFile};
use crate::{Error, Result};

/// The permutations that every database has.
pub(crate) const BASE_PERMUTATIONS: [Permutation; 4] = [
    Permutation::Psog,
    Permutation::Posg,
    Permutation::Spog,
    Permutation::Ospg,
];

/// An open base. Its index of texts may change by itself; then there is another base with the same
/// files and the same delta dictionary, so that ids stay what they are.
#[derive(Debug)]
pub(crate) struct Base {
    files: Arc<BaseFiles>,
    /// The index of its texts, if there is one.
    text: Option<TextFile>,
}

impl Deref for Base {
    type Target = BaseFiles;

    fn deref(&self) -> &BaseFiles {
        &self.files
    }
}

/// What an open base is without its index of texts.
#[derive(Debug)]
pub(crate) struct BaseFiles {
    directory: PathBuf,
    /// Name of the segment's directory.
    name: String,
    /// What tells it from the same files opened for another history, whose new terms have other
    /// ids; the segment's name if none is set.
    known_as: OnceLock<String>,
    dictionary: Dictionary,
    /// The components of the kind `permutation` that the manifest lists.
    indexes: PerPermutation<Arc<QuadIndex>>,
    /// GSPO of a base that has no named graphs: made at the first need.
    default_gspo: OnceLock<Arc<QuadIndex>>,
    statistics: Statistics,
    /// Open for as long as the others: an object store keeps what somebody has open. None where
    /// they were counted anew, for the file is damaged.
    statistics_file: Option<BlockFile>,
    /// Shared with the same base opened at another time.
    pub(crate) delta_dictionary: Arc<DeltaDictionary>,
}

impl Base {
    /// Opens the segment that a manifest names.
    pub(crate) fn open(
        file_system: &dyn FileSystem,
        directory: &Path,
        entry: &BaseEntry,
    ) -> Result<Self> {
        let segment = directory.join(&entry.segment.name);
        for (component, file) in entry.segment.known_files() {
            match check_length(file_system, &segment.join(&file.name), file.bytes) {
                // It is told when it is read.
                Err(Error::Corrupt { .. }) if component == Component::Statistics => {}
                checked => checked?,
            }
        }
        let mut base = Self::open_files(file_system, segment, entry, true)?;
        if let Some(entry) = &entry.text {
            base.open_texts(file_system, directory, entry)?;
        }
        for (component, file) in entry.segment.known_files() {
            let path = base.directory.join(&file.name);
            if component == Component::Statistics && base.statistics_file.is_none() {
                continue;
            }
            let found = base
                .summary_of(component, file)
                .ok_or_else(|| Error::corrupt(&path, 0, "it is not a file of a segment"))?;
            check_summary(&path, file, found)?;
        }
        Ok(base)
    }

    /// Opens files that were just written, and enters their lengths and checksums into the entry.
    pub(crate) fn open_unlisted(
        file_system: &dyn FileSystem,
        directory: &Path,
        entry: &mut BaseEntry,
    ) -> Result<Self> {
        let segment = directory.join(&entry.segment.name);
        entry.segment.check_known(&segment)?;
        let base = Self::open_files(file_system, segment, entry, false)?;
        let summaries: Option<Vec<FileSummary>> = entry
            .segment
            .known_files()
            .map(|(component, file)| base.summary_of(component, file))
            .collect();
        let summaries = summaries.ok_or_else(|| {
            Error::invalid_input(&base.directory, "a file does not belong into a segment")
        })?;
        for (file, summary) in entry.segment.files_mut().zip(summaries) {
            file.bytes = summary.bytes;
            file.crc32c = summary.crc;
        }
        Ok(base)
    }

    fn open_files(
        file_system: &dyn FileSystem,
        directory: PathBuf,
        entry: &BaseEntry,
        is_listed: bool,
    ) -> Result<Self> {
        let files = BaseFiles::open(file_system, directory, entry, is_listed)?;
        let (files, text) = (Arc::new(files), None);
        Ok(Self { files, text })
    }

    /// The same files and the same delta dictionary, so far without an index of texts.
    pub(crate) fn without_texts(&self) -> Self {
        let (files, text) = (Arc::clone(&self.files), None);
        Self { files, text }
    }

    /// The same with the delta dictionary of another, which has the same files, and with what that
    /// knows beside them.
    pub(crate) fn with_delta_dictionary(mut self, other: &Self) -> Self {
        if let Some(files) = Arc::get_mut(&mut self.files) {
            files.delta_dictionary = Arc::clone(&other.delta_dictionary);
            files.known_as = other.known_as.clone();
            files.dictionary.go_on_with(&other.dictionary);
        }
        self
    }

    /// Opens the index of its texts.
    pub(crate) fn open_texts(
        &mut self,
        file_system: &dyn FileSystem,
        directory: &Path,
        entry: &TextEntry,
    ) -> Result<()> {
        self.text = Some(TextFile::open(file_system, directory, entry)?);
        Ok(())
    }

    /// How many parts the index of its texts has.
    #[cfg(test)]
    pub(crate) fn text_parts(&self) -> Result<usize> {
        self.text().map_or(Ok(0), TextFile::part_count)
    }

    /// The index of its texts, if there is one.
    pub(crate) fn text(&self) -> Option<&TextFile> {
        self.text.as_ref()
    }

    /// Whether this is what a manifest's entry names.
    pub(crate) fn is_of(&self, entry: &BaseEntry) -> bool {
        let text = self.text().map(TextFile::directory_name);
        let named = entry.directory_of_texts();
        self.name == entry.segment.name && text == named.map(|named| named.name.as_str())
    }
}

impl BaseFiles {
    /// `is_listed`: whether the entry has the lengths and checksums of the files.
    fn open(
        file_system: &dyn FileSystem,
        directory: PathBuf,
        entry: &BaseEntry,
        is_listed: bool,
    ) -> Result<Self> {
        let mut indexes = PerPermutation::default();
        let listed = entry
            .segment
            .known()
            .filter_map(|(component, _)| match component {
                Component::Permutation(permutation) => Some(permutation),
                Component::Terms
                | Component::Statistics
                | Component::NewTerms
                | Component::Changes(_)
                | Component::Apart(_) => None,
            });
        // A required one that is not listed is told as the file that is missing.
        for permutation in BASE_PERMUTATIONS.into_iter().chain(listed) {
            if indexes.get(permutation).is_none() {
                let path = directory.join(index_file(permutation));
                let index = QuadIndex::open(file_system, &path)?;
                check_index(&index, permutation, entry.quad_count)?;
                indexes.set(permutation, index);
            }
        }
        let dictionary = Dictionary::open(file_system, &directory)?;
        if dictionary.len() != entry.term_count {
            let (path, found) = (directory.join(TERMS_FILE), dictionary.len());
            let what = format!("it has {found} terms, expected {}", entry.term_count);
            return Err(Error::corrupt(&path, 0, what));
        }
        let listed = entry.segment.known_files();
        let listed = listed.filter(|(component, _)| *component == Component::Statistics);
        let listed = listed.map(|(_, file)| file).next().filter(|_| is_listed);
        let read = read_statistics(file_system, &directory.join(STATISTICS_FILE), listed);
        let (statistics, statistics_file) = match read {
            Ok((statistics, file)) => (statistics, Some(file)),
            Err(error @ Error::Corrupt { .. }) if is_listed => {
                tracing::warn!(
                    "the statistics are damaged and are counted anew, which takes a while; a compaction (`orrery compact`) writes them anew: {error}"
                );
                (statistics::counted(indexes.values())?, None)
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            statistics,
            directory,
            name: entry.segment.name.clone(),
            known_as: OnceLock::new(),
            dictionary,
            indexes,
            default_gspo: OnceLock::new(),
            statistics_file,
            delta_dictionary: Arc::default(),
        })
    }

    fn summary_of(&self, component: Component, file: &FileEntry) -> Option<FileSummary> {
        match component {
            Component::Terms if file.name == LARGE_FILE => {
                Some(self.dictionary.large_file().summary())
            }
            Component::Terms => Some(self.dictionary.terms_file().summary()),
            Component::Statistics => self.statistics_file.as_ref().map(BlockFile::summary),
            Component::Permutation(permutation) => {
                self.index(permutation).map(|index| index.summary())
            }
            Component::NewTerms | Component::Changes(_) | Component::Apart(_) => None,
        }
    }

    /// Where the segment's files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Name of the segment's directory within the database's.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it is known as in this process: two of the same name have the same ids.
    pub(crate) fn known_as(&self) -> &str {
        self.known_as.get().unwrap_or(&self.name)
    }

    /// It was opened for this history: ids of terms that came after it need not be those of the
    /// ones before.
    pub(crate) fn set_history(&self, number: u64) {
        self.known_as
            .get_or_init(|| format!("{} of history {number}", self.name));
    }

    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// A permutation, if there is a file for it.
    pub(crate) fn index(&self, permutation: Permutation) -> Option<&Arc<QuadIndex>> {
        self.indexes.get(permutation)
    }

    /// GSPO, also where there is no file for it: while all quads are in the default graph, SPOG is
    /// in that order, too.
    pub(crate) fn gspo(&self) -> Result<&Arc<QuadIndex>> {
        if let Some(index) = self.index(Permutation::Gspo) {
            return Ok(index);
        }
        let spog = self
            .index(Permutation::Spog)
            .ok_or_else(|| Error::corrupt(&self.directory, 0, "the permutation SPOG is missing"))?;
        if let Some(index) = self.default_gspo.get() {
            return Ok(index);
        }
        let index = QuadIndex::by_default_graph(spog)?;
        Ok(self.default_gspo.get_or_init(|| index))
    }
}

/// The statistics of a file, which has to be the one that is listed.
fn read_statistics(
    file_system: &dyn FileSystem,
    path: &Path,
    listed: Option<&FileEntry>,
) -> Result<(Statistics, BlockFile)> {
    let file = BlockFile::open(file_system, path, STATISTICS_KIND)?;
    if let Some(listed) = listed {
        check_summary(path, listed, file.summary())?;
    }
    Ok((statistics::read(&file)?, file))
}

fn check_index(index: &QuadIndex, permutation: Permutation, rows: u64) -> Result<()> {
    let what = if index.permutation() != permutation {
        format!("it holds {}, expected {permutation}", index.permutation())
    } else if index.rows() != rows {
        format!("it has {} rows, expected {rows}", index.rows())
    } else {
        return Ok(());
    };
    Err(Error::corrupt(index.path(), 0, what))
}
