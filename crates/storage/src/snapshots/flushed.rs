//! A flushed delta: all changes between a base and a later commit, as files.
//!
//! ```text
//! DIR/delta-000005/terms.delta    the keys of the delta dictionary, in the order of their indexes
//!                  psog.delta ... the changes of each permutation; GSPO always, it costs little here
//! ```
//!
//! `terms.delta` is a block file; its blocks of about 64 KiB hold keys, each after its length as
//! LEB128, and its metadata the number of keys as u64. The keys are read at once when the delta is
//! opened, the changes when they are needed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber, FileKind, FileSummary};
use crate::files::components::{
    Component, DELTA_TERMS_FILE, DirectoryComponents, FileEntry, delta_file,
};
use crate::files::io::FileSystem;
use crate::files::listed_files::{check_lengths, check_summary};
use crate::files::manifest::FlushedEntry;
use crate::files::unlisted::{AllUnlisted, Unlisted};
use crate::quads::delta::{DeltaIndex, write_delta};
use crate::quads::delta_dictionary::DeltaDictionary;
use crate::quads::index::Permutation;
use crate::snapshots::base::Base;
use crate::snapshots::counts::SnapshotCounts;
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::{Deltas, Stored};
use crate::table::{Tables, write_tables};
use crate::{Error, Result, files::varint};

pub(crate) const DELTA_TERMS_KIND: FileKind = FileKind(*b"DTRM");
const BLOCK_BYTES: usize = 64 * 1024;

/// All changes up to a snapshot, written.
#[derive(Debug)]
pub(crate) struct Flushed<'f> {
    /// What the manifest is to say of it.
    pub(crate) entry: FlushedEntry,
    /// The snapshot's tables, knowing where their changes stand.
    pub(crate) tables: Arc<Tables>,
    /// The directories that were written for it.
    pub(crate) unlisted: AllUnlisted<'f>,
}

/// Writes all changes between a snapshot's base and the snapshot into new directories; when it
/// returns, they are on the disk.
pub(crate) fn write<'f>(
    file_system: &'f dyn FileSystem,
    directory: &Path,
    name: &str,
    snapshot: &Snapshot,
) -> Result<Flushed<'f>> {
    let segment = directory.join(name);
    let mut unlisted = AllUnlisted::default();
    unlisted.push(Unlisted::directory(file_system, segment.clone()));
    file_system.create_dir_all(&segment)?;
    let mut files = Vec::new();
    let mut list = |name: String, summary: FileSummary| {
        files.push(FileEntry::new(name, summary.bytes, summary.crc));
    };
    let terms = write_terms(
        file_system,
        &segment.join(DELTA_TERMS_FILE),
        snapshot.delta_dictionary(),
        snapshot.delta_terms(),
    )?;
    list(DELTA_TERMS_FILE.to_owned(), terms);
    for permutation in Permutation::ALL {
        let index = match snapshot.index(permutation) {
            Some(index) => Arc::clone(index),
            None => snapshot.stored().gspo_with(snapshot.deltas())?,
        };
        let name = delta_file(permutation);
        let summary = write_delta(file_system, &segment.join(&name), &index)?;
        list(name, summary);
    }
    file_system.sync_dir(&segment)?;
    file_system.sync_dir(directory)?;
    let generation = snapshot.manifest().generation;
    let written = write_tables(file_system, directory, generation, snapshot.tables())?;
    unlisted.append(written.unlisted);
    let entry = FlushedEntry {
        commit: snapshot.commit(),
        time_us: snapshot.commit_time_us(),
        quad_count: snapshot.quad_count(),
        term_count: snapshot.delta_terms(),
        next_blank_node: snapshot.next_blank_node(),
        has_named_graphs: snapshot.has_named_graphs(),
        cleared: snapshot.stored().hidden.clone(),
        delta: DirectoryComponents::of_files(name.to_owned(), files),
        tables: written.entry,
        further: BTreeMap::new(),
    };
    Ok(Flushed {
        entry,
        tables: written.tables,
        unlisted,
    })
}

/// Opens the files that a manifest names, over an open base.
pub(crate) fn open(
    file_system: &dyn FileSystem,
    directory: &Path,
    base: Arc<Base>,
    entry: &FlushedEntry,
) -> Result<Stored> {
    let delta_directory = directory.join(&entry.delta.name);
    check_lengths(file_system, &delta_directory, &entry.delta)?;
    let mut deltas = Deltas::default();
    for (component, file) in entry.delta.known_files() {
        let path = delta_directory.join(&file.name);
        let summary = match component {
            Component::Changes(permutation) => {
                let delta = DeltaIndex::open(file_system, &path)?;
                let summary = delta.file_summary();
                if delta.permutation() != permutation {
                    let what = format!("it holds changes of {}", delta.permutation());
                    return Err(Error::corrupt(&path, 0, what));
                }
                deltas.set(delta);
                summary
            }
            Component::NewTerms => {
                let dictionary = &base.delta_dictionary;
                Some(read_terms(
                    file_system,
                    &path,
                    dictionary,
                    entry.term_count,
                )?)
            }
            Component::Terms
            | Component::Permutation(_)
            | Component::Statistics
            | Component::Apart(_) => {
                let what = "it is not a file of a flushed delta";
                return Err(Error::corrupt(&path, 0, what));
            }
        };
        if let Some(summary) = summary {
            check_summary(&path, file, summary)?;
        }
    }
    let counts = SnapshotCounts {
        commit: entry.commit,
        time_us: entry.time_us,
        quads: entry.quad_count,
        delta_terms: entry.term_count,
        next_blank_node: entry.next_blank_node,
    };
    let hidden = entry.cleared.clone();
    Stored::new(base, hidden, deltas, entry.has_named_graphs, counts)
}

fn write_terms(
    file_system: &dyn FileSystem,
    path: &Path,
    dictionary: &DeltaDictionary,
    terms: u64,
) -> Result<FileSummary> {
    let mut file = BlockFileWriter::create(file_system, path, DELTA_TERMS_KIND)?;
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut key = Vec::new();
    for index in 0..terms {
        if !dictionary.key(index, &mut key) {
            return Err(Error::invalid_input(
                path,
                format!("there is no term {index}"),
            ));
        }
        varint::write(key.len() as u64, &mut block);
        block.extend_from_slice(&key);
        if block.len() >= BLOCK_BYTES {
            file.append(&block)?;
            block.clear();
        }
    }
    if !block.is_empty() {
        file.append(&block)?;
    }
    file.finish(&terms.to_le_bytes())
}

/// Enters the keys into a dictionary, which may have the first of them, or all, already.
fn read_terms(
    file_system: &dyn FileSystem,
    path: &Path,
    dictionary: &DeltaDictionary,
    terms: u64,
) -> Result<FileSummary> {
    let file = BlockFile::open(file_system, path, DELTA_TERMS_KIND)?;
    let mut index = 0;
    for_each_term(&file, |key, offset| {
        if dictionary.insert(key) != Some(index) {
            let what =
                format!("term {index} is not the one that was there before, or is there twice");
            return Err(Error::corrupt(path, offset, what));
        }
        index += 1;
        Ok(())
    })?;
    if index != terms {
        let what = format!("it has {index} terms, the manifest says {terms}");
        return Err(Error::corrupt(path, 0, what));
    }
    Ok(file.summary())
}

/// Calls `found` with each key and where its block begins.
pub(crate) fn for_each_term(
    file: &BlockFile,
    mut found: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    for number in (0..file.block_count()).map(BlockNumber) {
        let offset = file.block_offset(number);
        let mut rest = file.block(number)?;
        while !rest.is_empty() {
            let length = varint::read_length(&mut rest);
            let Some((key, behind)) = length.and_then(|length| rest.split_at_checked(length))
            else {
                return Err(Error::corrupt(file.path(), offset, "a key is cut off"));
            };
            found(key, offset)?;
            rest = behind;
        }
    }
    Ok(())
}
