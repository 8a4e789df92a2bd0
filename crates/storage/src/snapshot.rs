//! One unchanging state of a database: dictionary, permutations, statistics.
//!
//! Opening maps the files and reads their footers; the statistics, a few kilobytes to a few
//! megabytes, are the only thing that is decoded. A snapshot is shared by `Arc`; its files stay readable while it
//! lives, whatever writers do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_term::{Term, TermId, TermKind, inline, parse_key, write_key};

use crate::block_file::{BlockFile, FileSummary};
use crate::dictionary::{Dictionary, LARGE_FILE, TERMS_FILE};
use crate::index::{Permutation, QuadIndex};
use crate::io::FileSystem;
use crate::manifest::Manifest;
use crate::segment::STATISTICS_FILE;
use crate::statistics::{self, STATISTICS_KIND, Statistics};
use crate::{Error, Result};

/// The permutations that every database has.
pub(crate) const BASE_PERMUTATIONS: [Permutation; 4] = [
    Permutation::Psog,
    Permutation::Posg,
    Permutation::Spog,
    Permutation::Ospg,
];

/// Name of a permutation's file.
pub(crate) fn index_file(permutation: Permutation) -> String {
    format!("{}.col", permutation.name())
}

/// One state of a database.
#[derive(Debug)]
pub struct Snapshot {
    directory: PathBuf,
    manifest: Manifest,
    dictionary: Dictionary,
    /// By the number of the permutation.
    indexes: [Option<Arc<QuadIndex>>; 5],
    statistics: Statistics,
    statistics_file: BlockFile,
}

impl Snapshot {
    /// Opens the segment that a manifest names.
    pub(crate) fn open(
        file_system: &dyn FileSystem,
        directory: &Path,
        manifest: Manifest,
    ) -> Result<Self> {
        let segment = directory.join(&manifest.segment.name);
        for file in &manifest.segment.files {
            check_length(file_system, &segment.join(&file.name), file.bytes)?;
        }
        let snapshot = Self::open_files(file_system, segment, manifest)?;
        for entry in &snapshot.manifest.segment.files {
            let path = snapshot.directory.join(&entry.name);
            let found = snapshot.summary_of(&entry.name).ok_or_else(|| {
                Error::corrupt(
                    &path,
                    0,
                    "the manifest names a file that this program does not know",
                )
            })?;
            if found.crc != entry.crc32c || found.bytes != entry.bytes {
                return Err(Error::corrupt(
                    &path,
                    found.bytes.saturating_sub(12),
                    "it is not the file that the manifest means: the checksums differ",
                ));
            }
        }
        Ok(snapshot)
    }

    /// Opens files that were just written, and enters their lengths and checksums into the manifest.
    pub(crate) fn open_unlisted(
        file_system: &dyn FileSystem,
        directory: &Path,
        manifest: &mut Manifest,
    ) -> Result<Self> {
        let segment = directory.join(&manifest.segment.name);
        let mut snapshot = Self::open_files(file_system, segment, manifest.clone())?;
        for entry in &mut manifest.segment.files {
            let summary = snapshot.summary_of(&entry.name).ok_or_else(|| {
                let path = snapshot.directory.join(&entry.name);
                Error::invalid_input(&path, "a file that does not belong into a segment")
            })?;
            entry.bytes = summary.bytes;
            entry.crc32c = summary.crc;
        }
        snapshot.manifest = manifest.clone();
        Ok(snapshot)
    }

    fn open_files(
        file_system: &dyn FileSystem,
        directory: PathBuf,
        manifest: Manifest,
    ) -> Result<Self> {
        let mut indexes: [Option<Arc<QuadIndex>>; 5] = Default::default();
        for permutation in Permutation::ALL {
            let name = index_file(permutation);
            let is_required = BASE_PERMUTATIONS.contains(&permutation);
            let is_listed = manifest.segment.files.iter().any(|file| file.name == name);
            if is_required || is_listed {
                let index = QuadIndex::open(file_system, &directory.join(name))?;
                check_index(&index, permutation, manifest.quad_count)?;
                indexes[permutation as usize] = Some(index);
            }
        }
        let dictionary = Dictionary::open(file_system, &directory)?;
        if dictionary.len() != manifest.term_count {
            let (path, found) = (directory.join(TERMS_FILE), dictionary.len());
            let what = format!("it has {found} terms, expected {}", manifest.term_count);
            return Err(Error::corrupt(&path, 0, what));
        }
        let statistics_path = directory.join(STATISTICS_FILE);
        let statistics_file = BlockFile::open(file_system, &statistics_path, STATISTICS_KIND)?;
        Ok(Self {
            statistics: statistics::read(&statistics_file)?,
            directory,
            manifest,
            dictionary,
            indexes,
            statistics_file,
        })
    }

    fn summary_of(&self, name: &str) -> Option<FileSummary> {
        match name {
            TERMS_FILE => Some(self.dictionary.terms_file().summary()),
            LARGE_FILE => Some(self.dictionary.large_file().summary()),
            STATISTICS_FILE => Some(self.statistics_file.summary()),
            _ => {
                let indexes = self.indexes.iter().flatten();
                let mut found = indexes.filter(|index| index_file(index.permutation()) == name);
                found.next().map(|index| index.summary())
            }
        }
    }

    /// Number of quads.
    pub fn quad_count(&self) -> u64 {
        self.manifest.quad_count
    }

    /// A permutation. PSOG, POSG, SPOG and OSPG are always there, GSPO where there are named graphs.
    pub fn index(&self, permutation: Permutation) -> Option<&Arc<QuadIndex>> {
        self.indexes[permutation as usize].as_ref()
    }

    /// All permutations that there are.
    pub fn indexes(&self) -> impl Iterator<Item = &Arc<QuadIndex>> {
        self.indexes.iter().flatten()
    }

    /// The dictionary.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The statistics.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Whether there are quads outside the default graph.
    pub fn has_named_graphs(&self) -> bool {
        self.index(Permutation::Gspo).is_some()
    }

    /// What the manifest says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The number that the next new blank node gets.
    pub fn next_blank_node(&self) -> u64 {
        self.manifest.next_blank_node
    }

    /// Bytes of all files of the segment.
    pub fn file_bytes(&self) -> u64 {
        self.manifest
            .segment
            .files
            .iter()
            .map(|file| file.bytes)
            .sum()
    }

    /// Where the segment's files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The id of a term; `None` if it stands neither in an id nor in the dictionary.
    ///
    /// A blank node always has an id, whether any quad has it or not.
    pub fn term_id(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        if let Term::BlankNode(number) = term {
            return Ok(Some(TermId::blank_node(*number)));
        }
        if let Some(id) = inline(term) {
            return Ok(Some(id));
        }
        let mut key = Vec::new();
        write_key(term, &mut key);
        let rank = self.dictionary.find(&key)?;
        Ok(rank.map(|rank| self.id_of_rank(rank)))
    }

    /// The id of a dictionary rank.
    pub fn id_of_rank(&self, rank: u64) -> TermId {
        if rank < self.dictionary.iri_count() {
            TermId::iri(rank)
        } else if rank < self.dictionary.first_triple_term() {
            TermId::literal(rank)
        } else {
            TermId::triple_term(rank)
        }
    }

    /// The term of an id of this database. Ids of the default graph, of query-local terms, and ranks that do not
    /// exist are errors. Many ids are decoded faster by [`terms`](Self::terms).
    pub fn term(&self, id: TermId) -> Result<Term<'static>> {
        match id.checked_kind() {
            Some(TermKind::BlankNode) => Ok(Term::BlankNode(id.payload())),
            Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm) => {
                let mut key = Vec::new();
                self.dictionary.key(id.payload(), &mut key)?;
                self.parse(&key)
            }
            _ => id.to_inline_term().ok_or_else(|| self.no_term(id)),
        }
    }

    /// Calls `found` with the place in `ids` and the term, for each id; quick if the ids ascend.
    pub fn terms(&self, ids: &[TermId], mut found: impl FnMut(usize, Term<'_>)) -> Result<()> {
        let mut cursor = self.dictionary.iter(0);
        for (place, &id) in ids.iter().enumerate() {
            match id.checked_kind() {
                Some(TermKind::BlankNode) => found(place, Term::BlankNode(id.payload())),
                Some(TermKind::Iri | TermKind::Literal | TermKind::TripleTerm) => {
                    let key = cursor.at(id.payload())?;
                    found(place, self.parse_borrowed(key)?);
                }
                _ => found(place, id.to_inline_term().ok_or_else(|| self.no_term(id))?),
            }
        }
        Ok(())
    }

    fn parse(&self, key: &[u8]) -> Result<Term<'static>> {
        self.parse_borrowed(key).map(Term::into_owned)
    }

    fn parse_borrowed<'k>(&self, key: &'k [u8]) -> Result<Term<'k>> {
        parse_key(key).map_err(|error| {
            let path = self.dictionary.terms_file().path();
            Error::corrupt(path, 0, format!("a key is not that of a term: {error}"))
        })
    }

    fn no_term(&self, id: TermId) -> Error {
        let what = format!("the id {:016x} stands for no term", id.bits());
        Error::corrupt(&self.directory, 0, what)
    }
}

fn check_length(file_system: &dyn FileSystem, path: &Path, expected: u64) -> Result<()> {
    let Some(found) = file_system.metadata(path)? else {
        return Err(Error::NotFound {
            path: path.to_path_buf(),
            operation: "open",
        });
    };
    if found.bytes != expected || found.is_directory {
        let what = format!("it has {} bytes, the manifest says {expected}", found.bytes);
        return Err(Error::corrupt(path, found.bytes.min(expected), what));
    }
    Ok(())
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
