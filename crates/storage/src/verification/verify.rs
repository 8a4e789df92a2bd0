//! The verification of a database's base, and the driver of all other checks.
//!
//! 1. the manifest against its checksum;
//! 2. each file it names: length, every block's checksum, the footer's checksum against the
//!    manifest's;
//! 3. what the checksums cannot tell: keys ascend, are those of terms and are found again; rows
//!    ascend; all permutations hold the same quads, of ids that exist.
//!
//! Then flushed deltas and logs, see `verify_changes`. As every byte of every file belongs to
//! something with a checksum, no flipped bit goes unnoticed; at the end of a log, where damage and
//! what a killed process leaves may look the same, it is told as a [`Note`]. Damage in one file
//! does not keep the others from being checked. A writer may replace files meanwhile: what looks
//! damaged and is not named any more is passed over, and what took its place is checked. Reads
//! everything once or twice, at the speed of the disk or some 10 million quads a second.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_term::key::FIRST_TRIPLE_KEY;
use orrery_term::{Term, parse_key};

use crate::files::block_file::BlockFile;
use crate::files::components::{Component, FileEntry, index_file};
use crate::files::damage::{Damage, Verified, damage_of};
use crate::files::io::{FileSystem, LocalFileSystem};
use crate::files::log::LOG_DIRECTORY;
use crate::files::manifest::{BaseEntry, Manifest};
use crate::quads::dictionary::{
    Dictionary, LARGE_FILE, LARGE_KIND, StreamedKey, TERMS_FILE, TERMS_KIND,
};
use crate::quads::index::{COLUMNS, Permutation, QuadIndex};
use crate::quads::row_checks::{Limits, hash_quad};
use crate::quads::statistics::STATISTICS_FILE;
use crate::quads::statistics::{self, STATISTICS_KIND};
use crate::snapshots::base::BASE_PERMUTATIONS;
use crate::verification::verify_changes::verify_changes;
use crate::{Error, Result};

/// How often it is begun anew where a writer has replaced the manifest.
const MANIFESTS_MAX: usize = 8;

/// The progress of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress<'a> {
    /// The file that is being checked.
    pub file: &'a str,
    /// Bytes of the files before it.
    pub bytes_done: u64,
    /// Bytes of all files that are checked.
    pub bytes_total: u64,
}

/// Checks the database in a directory; it is whole if no damage is listed.
///
/// An error says that nothing could be checked: no database there, no permission, another version.
pub fn verify(
    directory: impl AsRef<Path>,
    progress: impl FnMut(VerifyProgress<'_>),
) -> Result<Verified> {
    verify_with(&LocalFileSystem, directory.as_ref(), progress)
}

/// Checks through a given file system.
pub fn verify_with(
    file_system: &dyn FileSystem,
    directory: &Path,
    mut progress: impl FnMut(VerifyProgress<'_>),
) -> Result<Verified> {
    let mut verified = Verified::default();
    let read = || Manifest::read(file_system, directory);
    let mut manifest = match read() {
        Ok(manifest) => manifest,
        Err(error @ Error::Corrupt { .. }) => {
            verified.damages.push(damage_of(error, directory));
            return Ok(verified);
        }
        Err(error) => return Err(error),
    };
    for _ in 0..MANIFESTS_MAX {
        let checked = verify_named(file_system, directory, &manifest, &mut progress);
        if checked.as_ref().is_ok_and(Verified::is_empty) {
            return checked;
        }
        // What the manifest names now stands; what it named before may be gone.
        let Ok(newer) = read() else { return checked };
        if newer.generation == manifest.generation {
            return checked;
        }
        if let Ok(mut checked) = checked {
            checked
                .damages
                .retain(|damage| names(&newer, directory, &damage.file));
            if !checked.damages.is_empty() {
                return Ok(checked);
            }
        }
        manifest = newer;
    }
    verify_named(file_system, directory, &manifest, &mut progress)
}

/// Whether a manifest names a file of the database, or the directory that it is in.
fn names(manifest: &Manifest, directory: &Path, file: &Path) -> bool {
    let Ok(within) = file.strip_prefix(directory) else {
        return true;
    };
    let mut parts = within.iter().filter_map(|part| part.to_str());
    match (parts.next(), parts.next()) {
        (Some(LOG_DIRECTORY), Some(log)) => manifest.log_names().any(|name| name == log),
        (Some(part), Some(_)) => manifest.directories().any(|name| name == part),
        // The manifest itself, whose newest one is looked at by itself, and the lock's file.
        _ => false,
    }
}

/// Checks what a manifest names.
fn verify_named(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: &Manifest,
    progress: &mut impl FnMut(VerifyProgress<'_>),
) -> Result<Verified> {
    let mut verified = Verified::default();
    let mut bytes_done = 0;
    let files = manifest
        .bases
        .iter()
        .flat_map(|base| base.segment.known_files());
    let bytes_total = files.map(|(_, entry)| entry.bytes).sum();
    for base in &manifest.bases {
        let mut check = Check {
            file_system,
            manifest_path: Manifest::path(directory),
            segment: directory.join(&base.segment.name),
            base,
            damages: Vec::new(),
            quads_sum: None,
        };
        check.names();
        // The dictionary first, for the permutations refer to it.
        let dictionary = check.dictionary();
        for (component, entry) in base.segment.known_files() {
            progress(VerifyProgress {
                file: &entry.name,
                bytes_done,
                bytes_total,
            });
            check.file(component, entry, dictionary.as_ref())?;
            bytes_done += entry.bytes;
        }
        verified.damages.append(&mut check.damages);
    }
    verify_changes(file_system, directory, manifest, &mut verified)?;
    Ok(verified)
}

struct Check<'a> {
    file_system: &'a dyn FileSystem,
    manifest_path: PathBuf,
    segment: PathBuf,
    base: &'a BaseEntry,
    damages: Vec<Damage>,
    /// The sum of the hashes of all quads, from the first permutation that was whole.
    quads_sum: Option<(u64, Permutation)>,
}

impl Check<'_> {
    fn report(&mut self, file: &Path, offset: u64, what: impl Into<String>) {
        self.damages.push(Damage {
            file: file.to_path_buf(),
            offset,
            what: what.into(),
        });
    }

    fn report_error(&mut self, error: Error, path: &Path) {
        self.damages.push(damage_of(error, path));
    }

    /// The manifest has to name every required file.
    fn names(&mut self) {
        let required = BASE_PERMUTATIONS.map(index_file);
        let fixed = [TERMS_FILE, LARGE_FILE, STATISTICS_FILE];
        for name in fixed.into_iter().chain(required.iter().map(String::as_str)) {
            if !self.base.segment.files().any(|file| file.name == name) {
                let path = self.manifest_path.clone();
                self.report(&path, 0, format!("it does not name the file {name}"));
            }
        }
    }

    /// The dictionary, if it can be opened; what is wrong with it is reported when its files are
    /// checked.
    fn dictionary(&self) -> Option<Dictionary> {
        Dictionary::open(self.file_system, &self.segment).ok()
    }

    fn file(
        &mut self,
        component: Component,
        entry: &FileEntry,
        dictionary: Option<&Dictionary>,
    ) -> Result<()> {
        let path = self.segment.join(&entry.name);
        match self.file_system.metadata(&path)? {
            None => {
                self.report(&path, 0, "the file is missing");
                return Ok(());
            }
            Some(found) if found.bytes != entry.bytes => {
                let what = format!("it has {} bytes, expected {}", found.bytes, entry.bytes);
                self.report(&path, found.bytes.min(entry.bytes), what);
            }
            Some(_) => {}
        }
        let before = self.damages.len();
        let checked = match component {
            Component::Terms if entry.name == LARGE_FILE => {
                self.blocks(&path, entry, LARGE_KIND).map(drop)
            }
            Component::Terms => self.terms(&path, entry, dictionary),
            Component::Statistics => self.statistics(&path, entry),
            Component::Permutation(permutation) => {
                self.permutation(&path, entry, permutation, dictionary)
            }
            Component::NewTerms | Component::Changes(_) | Component::Apart(_) => {
                let (manifest_path, name) = (self.manifest_path.clone(), &entry.name);
                let what = format!("it names {name}, which does not belong into a segment");
                self.report(&manifest_path, 0, what);
                Ok(())
            }
        };
        if let Err(error) = checked
            // A damaged block may show up in two ways; once is enough.
            && self.damages.len() == before
        {
            self.report_error(error, &path);
        }
        Ok(())
    }

    /// Opens a block file, checks all its blocks, and that it is the one which the manifest means.
    fn blocks(
        &mut self,
        path: &Path,
        entry: &FileEntry,
        kind: crate::files::block_file::FileKind,
    ) -> Result<BlockFile> {
        let file = BlockFile::open(self.file_system, path, kind)?;
        let damages = file.verify_all();
        for error in damages {
            self.report_error(error, path);
        }
        self.check_summary(path, entry, file.summary().crc);
        Ok(file)
    }

    fn check_summary(&mut self, path: &Path, entry: &FileEntry, crc: u32) {
        if crc != entry.crc32c {
            let what = format!(
                "its checksum is {crc:08x}, the manifest says {:08x}",
                entry.crc32c
            );
            self.report(path, entry.bytes.saturating_sub(12), what);
        }
    }

    fn statistics(&mut self, path: &Path, entry: &FileEntry) -> Result<()> {
        let file = self.blocks(path, entry, STATISTICS_KIND)?;
        let statistics = statistics::read(&file)?;
        if statistics.quads() != self.base.quad_count {
            let (found, expected) = (statistics.quads(), self.base.quad_count);
            self.report(
                path,
                0,
                format!("they are of {found} quads, there are {expected}"),
            );
        }
        Ok(())
    }

    fn terms(
        &mut self,
        path: &Path,
        entry: &FileEntry,
        dictionary: Option<&Dictionary>,
    ) -> Result<()> {
        let before = self.damages.len();
        let file = self.blocks(path, entry, TERMS_KIND)?;
        let Some(dictionary) = dictionary.filter(|_| self.damages.len() == before) else {
            return Ok(());
        };
        if dictionary.len() != self.base.term_count {
            let (found, expected) = (dictionary.len(), self.base.term_count);
            self.report(
                path,
                file.metadata_offset(),
                format!("it has {found} terms, expected {expected}"),
            );
        }
        self.keys(path, dictionary)
    }

    fn keys(&mut self, path: &Path, dictionary: &Dictionary) -> Result<()> {
        /// Every so many keys one is looked up by its text.
        const LOOKED_UP_EVERY: u64 = 61;
        let mut cursor = dictionary.iter(0);
        let mut last: Option<Vec<u8>> = None;
        let mut last_streamed: Option<StreamedKey> = None;
        for rank in 0..dictionary.len() {
            let streamed = cursor.streamed(rank)?;
            let key = cursor.at(rank)?;
            let is_iri = key.first() == Some(&b'I');
            let before = match &last_streamed {
                Some(last) => Some(last.whole()?),
                None => last.as_deref(),
            };
            let problem = if before.is_some_and(|last| last >= key) {
                Some("is not greater than the one before")
            } else if is_iri != (rank < dictionary.iri_count()) {
                Some("is on the wrong side of the border between IRIs and literals")
            } else if (key >= FIRST_TRIPLE_KEY) != (rank >= dictionary.first_triple_term()) {
                Some("is on the wrong side of the border between literals and triple terms")
            } else if !self.is_term(key) {
                Some("is not the key of a term")
            } else if rank % LOOKED_UP_EVERY == 0 && dictionary.find(key)? != Some(rank) {
                Some("is not found by its text")
            } else {
                None
            };
            if let Some(problem) = problem {
                self.report(path, 0, format!("term {rank} {problem}"));
                return Ok(());
            }
            if streamed.is_none() {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
            last_streamed = streamed;
        }
        Ok(())
    }

    /// Whether a key is that of a term, with blank nodes that exist.
    fn is_term(&self, key: &[u8]) -> bool {
        fn has_known_nodes(term: &Term<'_>, limit: u64) -> bool {
            match term {
                Term::BlankNode(number) => *number < limit,
                Term::Iri(_) | Term::Literal(_) => true,
                Term::Triple(triple) => {
                    let mut parts = triple.parts().into_iter();
                    parts.all(|part| has_known_nodes(part, limit))
                }
            }
        }
        let limit = self.base.next_blank_node;
        parse_key(key).is_ok_and(|term| has_known_nodes(&term, limit))
    }

    fn permutation(
        &mut self,
        path: &Path,
        entry: &FileEntry,
        permutation: Permutation,
        dictionary: Option<&Dictionary>,
    ) -> Result<()> {
        let index = QuadIndex::open(self.file_system, path)?;
        self.check_summary(path, entry, index.summary().crc);
        if index.permutation() != permutation || index.rows() != self.base.quad_count {
            let (found, rows) = (index.permutation(), index.rows());
            let expected = self.base.quad_count;
            let what =
                format!("it holds {rows} rows of {found}, expected {expected} of {permutation}");
            self.report(path, 0, what);
        }
        let damages = index.verify();
        let is_whole = damages.is_empty();
        for error in damages {
            self.report_error(error, path);
        }
        if is_whole {
            self.quads(path, &index, dictionary)?;
        }
        Ok(())
    }

    /// The quads of a permutation: ids that exist, and the same quads as in the other permutations.
    fn quads(
        &mut self,
        path: &Path,
        index: &Arc<QuadIndex>,
        dictionary: Option<&Dictionary>,
    ) -> Result<()> {
        let permutation = index.permutation();
        let blank_nodes = self.base.next_blank_node;
        let limits = dictionary.map(|dictionary| Limits::new(dictionary, blank_nodes));
        let mut sum = 0u64;
        let mut scan = index.scan(index.all(), [true; COLUMNS]);
        while let Some(vector) = scan.next_vector()? {
            for row in 0..vector.rows().len() as usize {
                let row: [u64; COLUMNS] = std::array::from_fn(|column| vector.column(column)[row]);
                let quad = permutation.quad(row);
                sum = sum.wrapping_add(hash_quad(quad));
                let Some(limits) = &limits else { continue };
                if let Some(&id) = quad.iter().find(|&&id| !limits.contain(id)) {
                    self.report(path, 0, format!("the id {id:016x} stands for no term"));
                    return Ok(());
                }
            }
        }
        match self.quads_sum {
            Some((expected, other)) if expected != sum => {
                self.report(
                    path,
                    0,
                    format!("it does not hold the same quads as {other}"),
                );
            }
            Some(_) => {}
            None => self.quads_sum = Some((sum, permutation)),
        }
        Ok(())
    }
}
