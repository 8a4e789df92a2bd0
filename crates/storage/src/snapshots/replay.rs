//! Recovery of a snapshot from files: base, flushed delta, then the commits of the log.
//!
//! Used to open a database, to follow another process that writes, and to read an old commit. All
//! changes of the log are gathered first and applied at once: a million quads take about a second.

use crate::snapshots::counts::counts_of_base;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_term::{LanguageTags, Prefixes, TermId};

use crate::files::io::FileSystem;
use crate::files::log::{LOG_DIRECTORY, LogEnd, LogReader, LogRecord};
use crate::files::manifest::{BaseEntry, FlushedEntry, LogEntry, Manifest};
use crate::quads::changes::{change, drop_graphs, has_named_graph, net_changes};
use crate::quads::delta::DeltaEntry;
use crate::quads::graph_set::GraphSet;
use crate::snapshots::base::Base;
use crate::snapshots::counts::SnapshotCounts;
use crate::snapshots::flushed;
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::Stored;
use crate::table::{Tables, TablesEntry, open_tables};
use crate::{Error, Result};

/// A state, and where the log goes on after it.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) snapshot: Snapshot,
    /// Of the last log file; `None` if there is no log.
    pub(crate) log_end: Option<LogEnd>,
}

/// Opens the present state that a manifest describes. Takes up an open base if it is the one.
pub(crate) fn open_present(
    file_system: &dyn FileSystem,
    directory: &Path,
    manifest: Manifest,
    open_base: Option<&Arc<Base>>,
) -> Result<Replayed> {
    let manifest = Arc::new(manifest);
    let start = Start::present(&manifest);
    let stored = Arc::new(start.open(file_system, directory, open_base)?);
    let logs = logs_after(start.base, start.commit());
    start.replay(file_system, directory, &manifest, stored, logs, u64::MAX)
}

/// A state that the files hold without any log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'m> {
    pub(crate) base: &'m BaseEntry,
    pub(crate) delta: Option<&'m FlushedEntry>,
}

impl<'m> Start<'m> {
    /// What the present state starts from.
    pub(crate) fn present(manifest: &'m Manifest) -> Self {
        Self::last_over(manifest.present())
    }

    /// The last state over a base that its files hold.
    pub(crate) fn last_over(base: &'m BaseEntry) -> Self {
        Self {
            base,
            delta: base.deltas.last(),
        }
    }

    /// Number of the commit.
    pub(crate) fn commit(&self) -> u64 {
        self.delta.map_or(self.base.commit, |delta| delta.commit)
    }

    /// The newest state from which a commit can be reached through the logs.
    pub(crate) fn before(manifest: &'m Manifest, commit: u64) -> Option<Self> {
        let bases = manifest.bases.iter().rev();
        bases.filter_map(|base| Self::over(base, commit)).next()
    }

    /// The newest of those that are made of one base.
    pub(crate) fn over(base: &'m BaseEntry, commit: u64) -> Option<Self> {
        let deltas = base.deltas.iter().rev().map(Some);
        let mut starts = deltas.chain([None]).map(|delta| Self { base, delta });
        starts.find(|start| {
            let mut logs = logs_after(start.base, start.commit()).iter();
            // Without a log, or with a gap before it, only the state itself can be read.
            start.commit() <= commit
                && (commit == start.commit()
                    || logs
                        .next()
                        .is_some_and(|log| log.first_commit <= start.commit() + 1))
        })
    }

    /// Opens the files.
    pub(crate) fn open(
        &self,
        file_system: &dyn FileSystem,
        directory: &Path,
        open_base: Option<&Arc<Base>>,
    ) -> Result<Stored> {
        self.announce(file_system, directory);
        let base = match open_base {
            Some(base) if base.is_of(self.base) => Arc::clone(base),
            _ => Arc::new(Base::open(file_system, directory, self.base)?),
        };
        match self.delta {
            Some(delta) => flushed::open(file_system, directory, base, delta),
            None => Stored::of_base(base, counts_of_base(self.base)),
        }
    }

    /// Says which files will be opened.
    fn announce(&self, file_system: &dyn FileSystem, directory: &Path) {
        let (delta, tables) = match self.delta {
            Some(delta) => (Some(&delta.delta), &delta.tables),
            None => (None, &self.base.tables),
        };
        let base = [&self.base.segment].into_iter();
        let of_tables = tables.iter().flat_map(TablesEntry::directories);
        let directories = base.chain(self.base.directories_of_indices()).chain(delta);
        let paths: Vec<PathBuf> = directories
            .chain(of_tables)
            .flat_map(|entry| {
                let within = directory.join(&entry.name);
                let files = entry.known_files();
                files.map(move |(_, file)| within.join(&file.name))
            })
            .collect();
        file_system.will_open(&paths);
    }

    /// Opens the files of tables.
    fn open_tables(&self, file_system: &dyn FileSystem, directory: &Path) -> Result<Arc<Tables>> {
        let entry = match self.delta {
            Some(delta) => delta.tables.as_ref(),
            None => self.base.tables.as_ref(),
        };
        match entry {
            Some(entry) => Ok(Arc::new(open_tables(file_system, directory, entry)?)),
            None => Ok(Arc::default()),
        }
    }

    /// Reads the logs up to a commit.
    pub(crate) fn replay(
        &self,
        file_system: &dyn FileSystem,
        directory: &Path,
        manifest: &Arc<Manifest>,
        stored: Arc<Stored>,
        logs: &[LogEntry],
        last_commit: u64,
    ) -> Result<Replayed> {
        let tables = self.open_tables(file_system, directory)?;
        let before = Snapshot::of_stored(Arc::clone(manifest), stored).with_tables(&tables);
        let mut replay = Replay::after(before);
        let mut log_end = None;
        for (number, log) in logs.iter().enumerate() {
            let path = log_path(directory, &log.name);
            let mut reader = open_log(file_system, &path, self.base, log)?;
            while replay.commit() < last_commit
                && let Some(logged) = reader.next_record()?
            {
                replay.add(logged.record, &path, file_system, directory)?;
            }
            if replay.commit() >= last_commit {
                break;
            }
            let end = reader.end()?;
            if let Some(next) = logs.get(number + 1)
                && next.first_commit != replay.commit() + 1
            {
                let what = format!(
                    "it ends with commit {}, but the next log file begins with commit {}",
                    replay.commit(),
                    next.first_commit
                );
                return Err(Error::corrupt(&path, end.position, what));
            }
            log_end = Some(end);
        }
        Ok(Replayed {
            snapshot: replay.finish()?,
            log_end,
        })
    }
}

/// Where a log file is.
pub(crate) fn log_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(LOG_DIRECTORY).join(name)
}

/// The log files that hold commits after a given one; each ends where the next begins.
pub(crate) fn logs_after(base: &BaseEntry, commit: u64) -> &[LogEntry] {
    let begins_later = |log: &LogEntry| log.first_commit > commit + 1;
    let later = base.logs.iter().position(begins_later);
    let first = later.unwrap_or(base.logs.len()).saturating_sub(1);
    &base.logs[first..]
}

/// Opens a log file and checks that it belongs to its base.
pub(crate) fn open_log<'a>(
    file_system: &'a dyn FileSystem,
    path: &Path,
    base: &BaseEntry,
    log: &LogEntry,
) -> Result<LogReader<'a>> {
    let reader = LogReader::open(file_system, path)?;
    let header = reader.header();
    if header.base_segment != base.segment.name || header.first_commit != log.first_commit {
        let what = format!(
            "it begins with commit {} after {}, the manifest says {} after {}",
            header.first_commit, header.base_segment, log.first_commit, base.segment.name
        );
        return Err(Error::corrupt(path, 0, what));
    }
    Ok(reader)
}

/// Commits of the log that are gathered to be laid over a snapshot.
#[derive(Debug)]
pub(crate) struct Replay {
    before: Snapshot,
    /// Graphs of `before` that were cleared as a whole.
    cleared: GraphSet,
    /// Relative to what is left of it.
    changes: Vec<DeltaEntry>,
    counts: SnapshotCounts,
    /// How tags are written that `before` does not know.
    language_tags: LanguageTags,
    prefixes: Arc<Prefixes>,
    tables: Arc<Tables>,
}

impl Replay {
    pub(crate) fn after(before: Snapshot) -> Self {
        Self {
            counts: before.counts(),
            prefixes: Arc::clone(before.prefixes()),
            tables: Arc::clone(before.tables()),
            before,
            cleared: GraphSet::default(),
            changes: Vec::new(),
            language_tags: LanguageTags::default(),
        }
    }

    /// Number of the last commit so far.
    pub(crate) fn commit(&self) -> u64 {
        self.counts.commit
    }

    /// Takes the next commit; one that is there already is passed over.
    pub(crate) fn add(
        &mut self,
        record: LogRecord,
        path: &Path,
        file_system: &dyn FileSystem,
        directory: &Path,
    ) -> Result<()> {
        if record.commit <= self.counts.commit {
            return Ok(());
        }
        if record.commit != self.counts.commit + 1 {
            let (found, last) = (record.commit, self.counts.commit);
            let what = format!("it has commit {found} where commit {} belongs", last + 1);
            return Err(Error::corrupt(path, 0, what));
        }
        // Before the terms, which all states over the base share: what fails here can be tried
        // again.
        let tables = self.tables_after(&record, path, file_system, directory)?;
        self.enter_terms(&record, path)?;
        if let Some(cleared) = &record.cleared {
            drop_graphs(&mut self.changes, &cleared.graphs);
            self.cleared = self.cleared.union(&cleared.graphs);
        }
        for (quads, is_insertion) in [(record.insertions, true), (record.deletions, false)] {
            let rows = quads.into_iter().map(|quad| quad.map(TermId::bits));
            self.changes
                .extend(rows.map(|row| change(row, is_insertion)));
        }
        self.language_tags.add(&record.language_tags);
        for change in &record.prefixes {
            Arc::make_mut(&mut self.prefixes).apply(change);
        }
        self.tables = tables;
        self.counts.commit = record.commit;
        self.counts.time_us = record.time_micros;
        self.counts.next_blank_node = record.next_blank_node;
        Ok(())
    }

    fn tables_after(
        &self,
        record: &LogRecord,
        path: &Path,
        file_system: &dyn FileSystem,
        directory: &Path,
    ) -> Result<Arc<Tables>> {
        let mut tables = Arc::clone(&self.tables);
        for change in &record.tables {
            let after = tables.apply(change, file_system, directory);
            let after = after.map_err(|error| match error {
                // The record is not one of this database's.
                Error::Rows { .. }
                | Error::NotNull { .. }
                | Error::Duplicate { .. }
                | Error::WrongArray { .. } => {
                    let commit = record.commit;
                    let what =
                        format!("commit {commit} changes no tables of this database: {error}");
                    Error::corrupt(path, 0, what)
                }
                // A file that cannot be read, or that a writer has removed meanwhile, says nothing
                // of the log.
                of_file => of_file,
            })?;
            tables = Arc::new(after);
        }
        Ok(tables)
    }

    fn enter_terms(&mut self, record: &LogRecord, path: &Path) -> Result<()> {
        let dictionary = self.before.delta_dictionary();
        if record.first_new_term != self.counts.delta_terms {
            let what = format!(
                "commit {} brings terms from number {} on, expected {}",
                record.commit, record.first_new_term, self.counts.delta_terms
            );
            return Err(Error::corrupt(path, 0, what));
        }
        for key in record.new_terms.iter() {
            if dictionary.insert(key) != Some(self.counts.delta_terms) {
                let what = format!("commit {} brings a term twice", record.commit);
                return Err(Error::corrupt(path, 0, what));
            }
            self.counts.delta_terms += 1;
        }
        Ok(())
    }

    /// The snapshot with all commits that were added.
    pub(crate) fn finish(mut self) -> Result<Snapshot> {
        if self.counts == self.before.counts() {
            return Ok(self.before);
        }
        if !self.cleared.is_empty() {
            self.before = self.before.without(&self.cleared)?;
        }
        let net = net_changes(std::mem::take(&mut self.changes));
        let with_gspo = self.before.has_named_graphs() || has_named_graph(&net);
        let deltas = self.before.deltas().apply(&net, None, with_gspo)?;
        let stored = Arc::clone(self.before.stored());
        let after = self.before.with_deltas(stored, deltas, self.counts)?;
        Ok(after
            .with_language_tags(&self.language_tags)
            .with_prefixes(&self.prefixes)
            .with_tables(&self.tables)
            .of_commit())
    }
}
