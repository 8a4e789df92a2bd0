//! Writing a new segment and making it the database.
//!
//! A segment is written into a directory that no manifest names, so nobody sees it; [`SegmentBuilder::publish`]
//! syncs it, opens it as readers will, checks that it is complete, and replaces the manifest. A writer killed
//! before that leaves a directory that the next writer removes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dictionary::DictionaryWriter;
use crate::index::{Permutation, QuadIndexWriter};
use crate::io::FileSystem;
use crate::lock::WriterLock;
use crate::manifest::{FORMAT_VERSION, FileEntry, Manifest, SegmentEntry};
use crate::snapshot::{Snapshot, index_file};
use crate::statistics::{self, Statistics};
use crate::{Database, Error, Result};

/// Name of the file with the statistics.
pub(crate) const STATISTICS_FILE: &str = "statistics.bin";
const SEGMENT_PREFIX: &str = "segment-";

/// What a writer knows about the segment that it publishes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublishedCounts {
    /// Number of quads: rows of each permutation.
    pub quads: u64,
    /// Number of keys in the dictionary.
    pub terms: u64,
    /// The number that the next new blank node will get.
    pub next_blank_node: u64,
}

/// A segment being written. Dropped without [`publish`](Self::publish), it never becomes visible.
#[derive(Debug)]
pub struct SegmentBuilder<'a> {
    file_system: Arc<dyn FileSystem>,
    /// Missing only while an empty database is made.
    database: Option<&'a Database>,
    lock: &'a WriterLock,
    generation: u64,
    /// Name of the segment that will be replaced.
    old_segment: Option<String>,
    name: String,
}

impl<'a> SegmentBuilder<'a> {
    /// Begins a segment that will replace the database's present one.
    ///
    /// Removes what killed writers left. Takes up what another process published since the database was
    /// opened, so `database.snapshot()` after this call is what the new segment has to contain, too.
    pub fn begin(database: &'a Database, lock: &'a WriterLock) -> Result<Self> {
        if lock.directory() != database.directory() {
            return Err(Error::invalid_input(
                database.directory(),
                format!("the lock is for {}", lock.directory().display()),
            ));
        }
        database.refresh()?;
        let snapshot = database.snapshot();
        let present = snapshot.manifest();
        let old_segment = Some(present.segment.name.clone());
        let file_system = Arc::clone(database.file_system());
        Self::begin_after(
            file_system,
            Some(database),
            lock,
            present.generation,
            old_segment,
        )
    }

    /// Begins the segment of an empty database.
    pub(crate) fn begin_empty(
        file_system: &Arc<dyn FileSystem>,
        lock: &'a WriterLock,
    ) -> Result<Self> {
        Self::begin_after(Arc::clone(file_system), None, lock, 0, None)
    }

    fn begin_after(
        file_system: Arc<dyn FileSystem>,
        database: Option<&'a Database>,
        lock: &'a WriterLock,
        generation: u64,
        old_segment: Option<String>,
    ) -> Result<Self> {
        let generation = generation + 1;
        let builder = Self {
            name: format!("{SEGMENT_PREFIX}{generation:06}"),
            file_system,
            database,
            lock,
            generation,
            old_segment,
        };
        builder.remove_segments_but(builder.old_segment.as_deref())?;
        builder.file_system.create_dir_all(&builder.directory())?;
        Ok(builder)
    }

    /// Where the segment's files are written.
    pub fn directory(&self) -> PathBuf {
        self.lock.directory().join(&self.name)
    }

    /// Begins the dictionary.
    pub fn dictionary(&self) -> Result<DictionaryWriter> {
        DictionaryWriter::create(&*self.file_system, &self.directory())
    }

    /// Begins a permutation. All but GSPO are required; GSPO exactly where there are named graphs.
    pub fn index(&self, permutation: Permutation) -> Result<QuadIndexWriter> {
        let path = self.directory().join(index_file(permutation));
        QuadIndexWriter::create(&*self.file_system, &path, permutation)
    }

    /// Makes the segment the database, once dictionary and permutations are finished. The old segment is removed;
    /// snapshots that are in use stay readable.
    pub fn publish(
        self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        let database = self.database;
        let snapshot = self.write_and_publish(counts, statistics)?;
        if let Some(database) = database {
            database.replace_snapshot(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    pub(crate) fn write_and_publish(
        self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        let file_system = &*self.file_system;
        let segment_directory = self.directory();
        let directory = self.lock.directory();
        let statistics_path = segment_directory.join(STATISTICS_FILE);
        statistics::write(statistics, file_system, &statistics_path)?;
        file_system.sync_dir(&segment_directory)?;
        file_system.sync_dir(directory)?;

        let mut manifest = Manifest {
            format_version: FORMAT_VERSION,
            generation: self.generation,
            quad_count: counts.quads,
            term_count: counts.terms,
            next_blank_node: counts.next_blank_node,
            segment: SegmentEntry {
                name: self.name.clone(),
                files: self.files()?,
            },
        };
        let snapshot = Snapshot::open_unlisted(file_system, directory, &mut manifest)?;
        manifest.publish(file_system, directory)?;
        // Readers may use it now; that leftovers stay does no harm, so it is no error.
        if let Err(error) = self.remove_segments_but(Some(&self.name)) {
            tracing::warn!(
                "the old segment could not be removed, the next load tries again: {error}"
            );
        }
        Ok(Arc::new(snapshot))
    }

    /// The files that were written, without their checksums.
    fn files(&self) -> Result<Vec<FileEntry>> {
        let paths = self.file_system.list(&self.directory())?;
        let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names
            .map(|name| FileEntry {
                name: name.to_owned(),
                bytes: 0,
                crc32c: 0,
            })
            .collect())
    }

    fn remove_segments_but(&self, kept: Option<&str>) -> Result<()> {
        let directory = self.lock.directory();
        for path in self.file_system.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(SEGMENT_PREFIX) && Some(name) != kept) {
                remove_if_there(&*self.file_system, &path)?;
            }
        }
        Ok(())
    }
}

fn remove_if_there(file_system: &dyn FileSystem, path: &Path) -> Result<()> {
    match file_system.remove_dir_all(path) {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}
