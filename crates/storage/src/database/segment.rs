//! Writing of a new base segment, and the switch of the manifest to it.
//!
//! A segment is written into a directory that no manifest names, so nobody sees it;
//! [`SegmentBuilder::publish`] syncs it, opens it as readers will, checks that it is complete, and
//! replaces the manifest. A writer killed before that leaves a directory that the next writer
//! removes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_term::{LanguageTags, Prefixes};

use crate::files::components::{DirectoryComponents, FileEntry, Need, index_file};
use crate::files::identity::DatabaseIdentity;
use crate::files::io::{Clock, FileSystem, SystemClock};
use crate::files::lock::WriterLock;
use crate::files::log::LOG_DIRECTORY;
use crate::files::manifest::{BaseEntry, FORMAT_VERSION, Loaded, Manifest, PrefixEntry};
use crate::files::unlisted::ignore_missing;
use crate::quads::dictionary::DictionaryWriter;
use crate::quads::index::{Permutation, QuadIndexWriter};
use crate::quads::statistics::{self, STATISTICS_FILE, Statistics};
use crate::snapshots::base::Base;
use crate::snapshots::counts::counts_of_base;
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::Stored;
use crate::table::{TABLE_CHANGES_PREFIX, TABLE_PREFIX, Tables, write_tables};
use crate::text::{TEXT_MEMORY_BYTES, TEXT_PREFIX, TextRules, write_texts};
use crate::{Database, Error, PendingChange, Result};

/// Begins the names of segments.
pub(crate) const SEGMENT_PREFIX: &str = "segment-";
/// Begins the names of directories with flushed changes.
pub(crate) const DELTA_PREFIX: &str = "delta-";
/// Begin the names of all directories with files that a manifest names.
pub(crate) const DIRECTORY_PREFIXES: [&str; 5] = [
    SEGMENT_PREFIX,
    DELTA_PREFIX,
    TABLE_PREFIX,
    TABLE_CHANGES_PREFIX,
    TEXT_PREFIX,
];
const LOG_SUFFIX: &str = ".log";

/// The counts of a segment that is published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublishedCounts {
    /// Number of quads: rows of each permutation.
    pub quads: u64,
    /// Number of keys in the dictionary.
    pub terms: u64,
    /// The number that the next new blank node will get.
    pub next_blank_node: u64,
}

/// The directory of a segment that is being written.
#[derive(Debug)]
pub struct SegmentFiles {
    file_system: Arc<dyn FileSystem>,
    directory: PathBuf,
}

impl SegmentFiles {
    /// Makes the directory, in place of one that a failed writer may have left.
    pub(crate) fn create(file_system: &Arc<dyn FileSystem>, directory: PathBuf) -> Result<Self> {
        ignore_missing(file_system.remove_dir_all(&directory))?;
        file_system.create_dir_all(&directory)?;
        Ok(Self {
            file_system: Arc::clone(file_system),
            directory,
        })
    }

    /// The directory of the segment's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins the dictionary.
    pub fn dictionary(&self) -> Result<DictionaryWriter> {
        DictionaryWriter::create(&*self.file_system, &self.directory)
    }

    /// Begins a permutation. All but GSPO are required; GSPO exactly where there are named graphs.
    pub fn index(&self, permutation: Permutation) -> Result<QuadIndexWriter> {
        let path = self.directory.join(index_file(permutation));
        QuadIndexWriter::create(&*self.file_system, &path, permutation)
    }

    /// Once dictionary and permutations are finished: adds the statistics and puts everything on
    /// the disk. Returns what the directory `name` holds, without lengths and checksums.
    pub(crate) fn finish(
        &self,
        name: String,
        statistics: &Statistics,
    ) -> Result<DirectoryComponents> {
        let file_system = &*self.file_system;
        let statistics_path = self.directory.join(STATISTICS_FILE);
        statistics::write(statistics, file_system, &statistics_path)?;
        file_system.sync_dir(&self.directory)?;
        if let Some(database) = self.directory.parent() {
            file_system.sync_dir(database)?;
        }
        let paths = file_system.list(&self.directory)?;
        let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
        let files = names.map(|name| FileEntry::new(name.to_owned(), 0, 0));
        Ok(DirectoryComponents::of_files(name, files.collect()))
    }
}

/// A segment being written. Dropped without [`publish`](Self::publish), it never becomes visible.
#[derive(Debug)]
pub struct SegmentBuilder<'a> {
    files: SegmentFiles,
    /// Missing only while an empty database is made.
    database: Option<&'a Database>,
    lock: &'a WriterLock,
    generation: u64,
    identity: DatabaseIdentity,
    /// The number of the commit that the segment will be.
    commit: u64,
    /// When the last commit was made; the segment's is not before.
    last_time_us: i64,
    /// Number of quads before.
    old_quads: u64,
    name: String,
    language_tags: LanguageTags,
    prefixes: Prefixes,
    tables: Arc<Tables>,
    /// Of which texts there is an index.
    text: Option<TextRules>,
    text_memory_bytes: usize,
    /// Those that another program may know.
    features: BTreeMap<String, Need>,
    /// What a newer program says of the database.
    further: BTreeMap<String, serde_json::Value>,
}

impl<'a> SegmentBuilder<'a> {
    /// Begins a segment that will replace the database's present one.
    ///
    /// Removes what killed writers left. Takes up what another process published since the database
    /// was opened, so `database.snapshot()` after this call is what the new segment has to contain,
    /// too.
    pub fn begin(database: &'a Database, lock: &'a WriterLock) -> Result<Self> {
        if lock.directory() != database.directory() {
            return Err(Error::invalid_input(
                database.directory(),
                format!("the lock is for {}", lock.directory().display()),
            ));
        }
        database.refresh()?;
        let snapshot = database.snapshot();
        let file_system = Arc::clone(database.file_system());
        Self::begin_after(file_system, Some(database), lock, Some(&snapshot))
    }

    /// Begins the segment of an empty database.
    pub(crate) fn begin_empty(
        file_system: &Arc<dyn FileSystem>,
        lock: &'a WriterLock,
    ) -> Result<Self> {
        Self::begin_after(Arc::clone(file_system), None, lock, None)
    }

    fn begin_after(
        file_system: Arc<dyn FileSystem>,
        database: Option<&'a Database>,
        lock: &'a WriterLock,
        present: Option<&Snapshot>,
    ) -> Result<Self> {
        let old_manifest = present.map(|snapshot| Arc::clone(snapshot.shared_manifest()));
        let generation = 1 + old_manifest.as_ref().map_or(0, |old| old.generation);
        remove_leftovers(&*file_system, lock.directory(), old_manifest.as_deref())?;
        let name = format!("{SEGMENT_PREFIX}{generation:06}");
        let identity = old_manifest.and_then(|old| old.identity.clone());
        Ok(Self {
            identity: identity.unwrap_or_else(DatabaseIdentity::random),
            files: SegmentFiles::create(&file_system, lock.directory().join(&name))?,
            name,
            database,
            lock,
            generation,
            commit: present.map_or(0, |snapshot| snapshot.commit() + 1),
            last_time_us: present.map_or(0, Snapshot::commit_time_us),
            old_quads: present.map_or(0, Snapshot::quad_count),
            features: present.map_or_else(BTreeMap::new, |snapshot| {
                snapshot.manifest().features.clone()
            }),
            further: present.map_or_else(BTreeMap::new, |snapshot| {
                snapshot.manifest().further.clone()
            }),
            language_tags: present
                .map(Snapshot::language_tags)
                .cloned()
                .unwrap_or_default(),
            prefixes: present
                .map(|snapshot| Prefixes::clone(snapshot.prefixes()))
                .unwrap_or_default(),
            tables: present
                .map(|snapshot| Arc::clone(snapshot.tables()))
                .unwrap_or_default(),
            text: present.and_then(|snapshot| snapshot.manifest().text.clone()),
            text_memory_bytes: TEXT_MEMORY_BYTES,
        })
    }

    /// The destination of dictionary and permutations.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// Adds the spelling of the segment's language tags; known ones stay as they are.
    pub fn add_language_tags(&mut self, tags: &LanguageTags) {
        self.language_tags.add(tags);
    }

    /// Sets the memory limit for building the full-text index, if there is one.
    pub fn set_text_memory(&mut self, bytes: usize) {
        self.text_memory_bytes = bytes;
    }

    /// Adds the prefixes that sources declare; returns whether one of them is new.
    pub fn note_loaded_prefixes(&mut self, loaded: &Prefixes) -> bool {
        self.prefixes.note_all_loaded(loaded)
    }

    /// Publishes the segment as the database, once dictionary and permutations are finished. The
    /// old segment is removed; snapshots that are in use stay readable.
    pub fn publish(
        self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        let database = self.database;
        let snapshot = self.write_and_publish(counts, statistics)?;
        if let Some(database) = database {
            database.note_lasting(snapshot.commit());
            database.replace_snapshot(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    pub(crate) fn write_and_publish(
        self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        let file_system = &*self.files.file_system;
        let directory = self.lock.directory();
        let written = write_tables(file_system, directory, self.generation, &self.tables)?;
        let mut entry = BaseEntry {
            commit: self.commit,
            time_us: SystemClock.now_us().max(self.last_time_us),
            quad_count: counts.quads,
            term_count: counts.terms,
            next_blank_node: counts.next_blank_node,
            loaded: Some(Loaded {
                added: counts.quads.saturating_sub(self.old_quads),
                removed: self.old_quads.saturating_sub(counts.quads),
            }),
            generation: self.generation,
            segment: self.files.finish(self.name.clone(), statistics)?,
            deltas: Vec::new(),
            logs: Vec::new(),
            tables: written.entry,
            text: None,
            further: BTreeMap::new(),
        };
        let mut base = Base::open_unlisted(file_system, directory, &mut entry)?;
        let texts = write_texts(
            file_system,
            directory,
            (self.generation, self.text.as_ref()),
            &mut base,
            self.text_memory_bytes,
        )?;
        entry.text = texts.entry;
        let counts = counts_of_base(&entry);
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            generation: self.generation,
            identity: Some(self.identity),
            features: self.features,
            bases: vec![entry],
            language_tags: self.language_tags.iter().map(str::to_owned).collect(),
            prefixes: PrefixEntry::all_of(&self.prefixes),
            text: self.text,
            further: self.further,
        };
        let published = manifest.publish(file_system, directory);
        // The manifest is the load's commit, which the next one who opens the database may find. A
        // database that is made has none.
        let published = published.map_err(|error| match self.database {
            Some(_) => error.of_pending(PendingChange::Commit(self.commit)),
            None => error,
        });
        written.unlisted.keep_if_listed(&published);
        texts.unlisted.keep_if_listed(&published);
        published?;
        // Readers may use it now; that leftovers stay does no harm, so it is no error.
        if let Err(error) = remove_unnamed(file_system, directory, Some(&manifest)) {
            tracing::warn!(
                "the old segment could not be removed, the next load tries again: {error}"
            );
        }
        let stored = Stored::of_base(Arc::new(base), counts)?;
        let snapshot = Snapshot::of_stored(Arc::new(manifest), Arc::new(stored));
        Ok(Arc::new(snapshot.with_tables(&written.tables)))
    }
}

/// Takes over from a writer that may have been killed: puts the manifest on the disk that was
/// found, then removes what it does not name.
///
/// Its rename may never have been synced. A power cut would bring back the manifest before it,
/// which names files that are removed here, and not the log that commits go to from now on.
pub(crate) fn remove_leftovers(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: Option<&Manifest>,
) -> Result<()> {
    if let Some(manifest) = manifest {
        manifest.publish(file_system, directory)?;
    }
    remove_unnamed(file_system, directory, manifest)
}

/// Removes segments, deltas and log files that a manifest does not name: what killed writers left,
/// and what is needed no more. Only for who holds the lock, and knows that nothing new is being
/// written.
pub(crate) fn remove_unnamed(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: Option<&Manifest>,
) -> Result<()> {
    let is_named = |name: &str| {
        manifest.is_some_and(|manifest| manifest.directories().any(|kept| kept == name))
    };
    for path in file_system.list(directory)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_ours = |name: &str| {
            DIRECTORY_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
        };
        if name.is_some_and(|name| is_ours(name) && !is_named(name)) {
            ignore_missing(file_system.remove_dir_all(&path))?;
        }
    }
    let logs = directory.join(LOG_DIRECTORY);
    if file_system.metadata(&logs)?.is_some() {
        for path in file_system.list(&logs)? {
            let name = path.file_name().and_then(|name| name.to_str());
            let is_kept = |name: &str| {
                manifest.is_some_and(|manifest| manifest.log_names().any(|kept| kept == name))
            };
            if name.is_some_and(|name| name.ends_with(LOG_SUFFIX) && !is_kept(name)) {
                ignore_missing(file_system.remove_file(&path))?;
            }
        }
    }
    Ok(())
}
