//! A new base written beside the running database, for compactions and bulk loads.
//!
//! ```text
//! begin      the state to start from; where the segment's files are to be written
//! outside    the loader writes them, as long as it takes; readers read, writers commit
//! publish    commits that came meanwhile get the ids of the new base, in rounds;
//!            the last round, the manifest and a new log file: in the writers' turn
//! ```
//!
//! Ids mean other terms over another base, so what was committed meanwhile is translated by the
//! text of the terms. It becomes the new base's flushed delta. A compaction changes no quad: its
//! base has the number of the commit that it started from, the delta over it that of the last
//! commit, and older ones stay readable from the old base until their retention ends. A bulk load
//! holds the writers' turn while its segment is written, and is a commit of its own; what it
//! changed is not recorded, but the states before it stay readable in the same way.
//!
//! Killed before the manifest is published, it leaves a directory that the next writer removes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use orrery_term::{LanguageTags, Prefixes, TermId};
use parking_lot::MutexGuard;

use super::checkpoint::{remove_dropped, stop_where_unknown, written_there};
use super::handle::Writer;
use super::shared::WriteGuard;
use crate::activity::Run;
use crate::database::segment::{DELTA_PREFIX, PublishedCounts, SEGMENT_PREFIX, SegmentFiles};
use crate::files::log::LogWriter;
use crate::files::manifest::{BaseEntry, Loaded, Manifest};
use crate::files::unlisted::{AllUnlisted, ignore_missing, may_be_published};
use crate::history::old_states::{forget, given_up_by_load};
use crate::quads::changes::has_named_graph;
use crate::quads::delta::DeltaEntry;
use crate::quads::index::Permutation;
use crate::quads::statistics::Statistics;
use crate::snapshots::base::Base;
use crate::snapshots::counts::SnapshotCounts;
use crate::snapshots::counts::counts_of_base;
use crate::snapshots::flushed;
use crate::snapshots::renumbering::Renumbering;
use crate::snapshots::snapshot::Snapshot;
use crate::snapshots::stored::{Deltas, Stored};
use crate::table::{Tables, write_tables};
use crate::text::{TEXT_MEMORY_BYTES, write_texts};
use crate::{Error, PendingChange, Result};

/// With so many changes left, or after so many rounds, the last round takes the writers' turn.
const LAST_ROUND_CHANGES: usize = 10_000;
const ROUNDS_MAX: usize = 8;

/// A new base being written. Dropped without being published, it leaves the database as it was.
#[derive(Debug)]
pub struct Rebase<'a> {
    writer: &'a Writer,
    /// No checkpoint meanwhile.
    _maintenance: MutexGuard<'a, ()>,
    /// Held by a bulk load, and by a compaction that shall not come too late.
    pub(super) turn: Option<WriteGuard>,
    is_load: bool,
    /// Quads that a load takes away: what a transaction did before it became a base.
    pub(super) removed: u64,
    source: Arc<Snapshot>,
    name: String,
    files: SegmentFiles,
    /// How tags are written that the load brings.
    pub(super) language_tags: LanguageTags,
    /// The prefixes of the database after a load; a compaction changes none.
    pub(super) prefixes: Option<Arc<Prefixes>>,
    text_memory_bytes: usize,
    check: Option<StateCheck<'a>>,
    is_published: bool,
    run: Run<'a>,
}

/// A check of the state that a new base would publish, given the one before; an error refuses it.
pub struct StateCheck<'a>(Box<StateChecker<'a>>);

type StateChecker<'a> = dyn Fn(&Arc<Snapshot>, &Arc<Snapshot>) -> Result<()> + Send + Sync + 'a;

impl<'a> StateCheck<'a> {
    /// A check by a function of the state before and the new one.
    pub fn new(
        check: impl Fn(&Arc<Snapshot>, &Arc<Snapshot>) -> Result<()> + Send + Sync + 'a,
    ) -> Self {
        Self(Box::new(check))
    }
}

impl fmt::Debug for StateCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCheck")
    }
}

impl Writer {
    /// Begins a base with the same quads in other files. Waits for a checkpoint or another
    /// compaction that is under way.
    pub fn begin_compaction(&self) -> Result<Rebase<'_>> {
        self.begin_rebase(false, false)
    }

    /// Begins a compaction that blocks other writers until it is published or dropped, so that it
    /// cannot come too late ([`Error::ClearedMeanwhile`]).
    pub fn begin_compaction_alone(&self) -> Result<Rebase<'_>> {
        self.begin_rebase(true, false)
    }

    /// The first commit that history would still have after a load; none where a load drops no
    /// history.
    pub fn given_up_by_load(&self) -> Option<u64> {
        let shared = &self.handle.shared;
        let latest = Arc::clone(&shared.state.lock().latest);
        let retention = &shared.options.retention;
        given_up_by_load(
            latest.manifest(),
            latest.commit(),
            retention,
            shared.now_us(),
        )
    }

    /// Begins a base with further quads. Other writers wait until it is published or dropped;
    /// readers do not.
    pub fn begin_load(&self) -> Result<Rebase<'_>> {
        self.begin_rebase(true, true)
    }

    fn begin_rebase(&self, holds_turn: bool, is_load: bool) -> Result<Rebase<'_>> {
        let shared = &self.handle.shared;
        let maintenance = shared.maintenance.lock();
        let turn = holds_turn.then(|| shared.take_turn()).transpose()?;
        Rebase::begin(self, maintenance, turn, is_load)
    }
}

impl<'a> Rebase<'a> {
    /// Begins with the last commit.
    pub(super) fn begin(
        writer: &'a Writer,
        maintenance: MutexGuard<'a, ()>,
        turn: Option<WriteGuard>,
        is_load: bool,
    ) -> Result<Self> {
        writer.check()?;
        let shared = &writer.handle.shared;
        let source = Arc::clone(&shared.state.lock().latest);
        let database = &shared.database;
        let name = format!("{SEGMENT_PREFIX}{:06}", source.manifest().generation + 1);
        let directory = database.directory().join(&name);
        Ok(Self {
            writer,
            _maintenance: maintenance,
            turn,
            is_load,
            removed: 0,
            files: SegmentFiles::create(&shared.files, directory)?,
            name,
            source,
            language_tags: LanguageTags::default(),
            prefixes: None,
            text_memory_bytes: TEXT_MEMORY_BYTES,
            check: None,
            is_published: false,
            run: match is_load {
                true => database.activity().loads.begin(),
                false => database.activity().compactions.begin(),
            },
        })
    }
}

impl<'a> Rebase<'a> {
    /// The state that the new base has to hold; for a load, together with what is loaded.
    pub fn source(&self) -> &Arc<Snapshot> {
        &self.source
    }

    /// The destination of dictionary and permutations.
    pub fn files(&self) -> &SegmentFiles {
        &self.files
    }

    /// Adds the spelling of loaded language tags; known ones stay as they are.
    pub fn add_language_tags(&mut self, tags: &LanguageTags) {
        self.language_tags.add(tags);
    }

    /// Sets the memory limit for building the full-text index, if there is one.
    pub fn set_text_memory(&mut self, bytes: usize) {
        self.text_memory_bytes = bytes;
    }

    /// Sets a check of the new state, which runs before it is published, while no other commit can
    /// intervene.
    pub fn check_with(&mut self, check: StateCheck<'a>) {
        self.check = Some(check);
    }

    /// Fails where this load would give up old states that the retention keeps
    /// ([`Error::KeepsHistory`]).
    pub fn require_history(&self) -> Result<()> {
        match self.writer.given_up_by_load() {
            Some(first) => Err(Error::KeepsHistory { first }),
            None => Ok(()),
        }
    }

    /// Adds the prefixes that sources declare; returns whether one of them is new.
    pub fn note_loaded_prefixes(&mut self, loaded: &Prefixes) -> bool {
        let mut prefixes = Prefixes::clone(self.source.prefixes());
        let is_new = prefixes.note_all_loaded(loaded);
        if is_new {
            self.prefixes = Some(Arc::new(prefixes));
        }
        is_new
    }

    /// Whether the base would be given up when it is published, for graphs were cleared as a whole
    /// since it was begun, or the turn to write is over.
    pub fn is_too_late(&self) -> bool {
        if self.writer.is_over() {
            return true;
        }
        let state = self.writer.handle.shared.state.lock();
        !Arc::ptr_eq(state.latest.stored(), self.source.stored())
    }

    /// Publishes the segment as the database's base, once dictionary and permutations are finished.
    ///
    /// Fails with [`Error::ClearedMeanwhile`] if graphs were cleared as a whole since it was begun:
    /// then most of what was written is gone, and to begin anew is less work than to take it back.
    pub fn publish(
        mut self,
        counts: PublishedCounts,
        statistics: &Statistics,
    ) -> Result<Arc<Snapshot>> {
        let shared = &self.writer.handle.shared;
        let file_system = &*shared.files;
        let directory = shared.database.directory();
        let mut entry = BaseEntry {
            commit: self.source.commit(),
            time_us: self.source.commit_time_us(),
            quad_count: counts.quads,
            term_count: counts.terms,
            next_blank_node: counts.next_blank_node,
            loaded: None,
            generation: 0,
            segment: self.files.finish(self.name.clone(), statistics)?,
            deltas: Vec::new(),
            logs: Vec::new(),
            tables: None,
            text: None,
            further: BTreeMap::new(),
        };
        let mut base = Base::open_unlisted(file_system, directory, &mut entry)?;
        let generation = self.source.manifest().generation + 1;
        let texts = write_texts(
            file_system,
            directory,
            (generation, self.source.manifest().text.as_ref()),
            &mut base,
            self.text_memory_bytes,
        )?;
        entry.text = texts.entry;
        let base = Arc::new(base);
        if let Some(check) = &self.check {
            let stored = Stored::of_base(Arc::clone(&base), counts_of_base(&entry))?;
            let manifest = Arc::clone(self.source.shared_manifest());
            let state = Snapshot::of_stored(manifest, Arc::new(stored));
            let state = Arc::new(state.with_tables(self.source.tables()));
            check.0(&self.source, &state)?;
        }
        let mut carried = Carried::new(base, counts_of_base(&entry), &self.source)?;
        // What tables changed meanwhile is told with the quads that are carried over; a load holds
        // the turn from its start.
        let tables = self.source.tables();
        let tables = write_tables(file_system, directory, generation, tables)?;
        entry.tables = tables.entry;
        let is_load = self.is_load;
        if self.turn.is_none() {
            carried.catch_up(|| Arc::clone(&shared.state.lock().latest))?;
        }
        let turn = match self.turn.take() {
            Some(turn) => turn,
            None => shared.take_turn()?,
        };
        let loaded = is_load.then_some(self.removed);
        let new = (&self.language_tags, self.prefixes.as_ref());
        let published = turn.switch(entry, (&self.source, &tables.tables), carried, loaded, new);
        tables.unlisted.keep_if_listed(&published);
        texts.unlisted.keep_if_listed(&published);
        // Where nobody knows, the manifest on the disk may name the files.
        self.is_published = may_be_published(&published);
        let published = published?;
        drop(turn);
        remove_dropped(
            file_system,
            directory,
            &published.before,
            published.after.manifest(),
        );
        self.run.done();
        Ok(published.after)
    }
}

impl Drop for Rebase<'_> {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        let file_system = &self.writer.handle.shared.files;
        if let Err(error) = ignore_missing(file_system.remove_dir_all(self.files.directory())) {
            tracing::warn!("a segment that was given up could not be removed: {error}");
        }
    }
}

struct Published {
    before: Arc<Manifest>,
    after: Arc<Snapshot>,
}

impl WriteGuard {
    /// Makes a new base the present one, with the rest of what was committed since it was begun.
    fn switch(
        &self,
        mut entry: BaseEntry,
        (source, tables): (&Snapshot, &Arc<Tables>),
        mut carried: Carried,
        removed_by_load: Option<u64>,
        (language_tags, prefixes): (&LanguageTags, Option<&Arc<Prefixes>>),
    ) -> Result<Published> {
        let shared = &self.shared;
        let file_system = &*shared.files;
        let directory = shared.database.directory();
        self.settle()?;
        let (latest, old_log) = {
            let state = shared.state.lock();
            (Arc::clone(&state.latest), Arc::clone(&state.log))
        };
        old_log.close()?;
        carried.take_up(&latest)?;

        let mut manifest = latest.to_manifest();
        entry.generation = manifest.generation + 1;
        let is_load = removed_by_load.is_some();
        if let Some(removed) = removed_by_load {
            // Nobody has committed since it began.
            entry.commit = latest.commit() + 1;
            entry.time_us = shared.now_us().max(latest.commit_time_us());
            entry.loaded = Some(Loaded {
                added: (entry.quad_count + removed).saturating_sub(latest.quad_count()),
                removed,
            });
        }
        let has_carried = !is_load && latest.commit() > entry.commit;
        let (commit, time_us) = match has_carried {
            true => (latest.commit(), latest.commit_time_us()),
            false => (entry.commit, entry.time_us),
        };
        let counts = SnapshotCounts {
            commit,
            time_us,
            ..carried.counts
        };
        let delta_name = format!("{DELTA_PREFIX}{:06}", entry.generation);
        manifest.bases.push(entry);
        let mut unlisted = AllUnlisted::default();
        let mut tables = written_there(&latest, source, tables);
        let mut stored = carried.stored;
        // Also where the commits cancel each other: they have numbers, and may have brought terms.
        if has_carried {
            let state = latest
                .with_deltas(Arc::clone(&stored), carried.deltas, counts)?
                .with_tables(&tables)
                .of_commit();
            let flushed = flushed::write(file_system, directory, &delta_name, &state)?;
            unlisted = flushed.unlisted;
            tables = flushed.tables;
            let base = Arc::clone(&stored.base);
            stored = Arc::new(flushed::open(file_system, directory, base, &flushed.entry)?);
            manifest.present_mut().deltas.push(flushed.entry);
        } else {
            let base = Arc::clone(&stored.base);
            stored = Arc::new(Stored::of_base(base, counts)?);
        }
        forget(
            &mut manifest,
            commit,
            &shared.options.retention,
            shared.now_us(),
        );
        let prefixes = prefixes.unwrap_or(latest.prefixes());
        let state = Snapshot::of_stored(Arc::new(manifest), stored)
            .with_language_tags(language_tags)
            .with_prefixes(prefixes)
            .with_tables(&tables);
        let next = shared.begin_next_log(&state);
        unlisted.keep_if_listed(&next);
        let (log, manifest) = next.map_err(|error| {
            let error = stop_where_unknown(&old_log, error);
            match is_load {
                // The manifest is a load's commit, which the next one who opens the database may
                // find.
                true => error.of_pending(PendingChange::Commit(commit)),
                false => error,
            }
        })?;
        let after = Arc::new(state.with_manifest(Arc::new(manifest)));
        self.install(log, &after);
        Ok(Published {
            before: Arc::clone(latest.shared_manifest()),
            after,
        })
    }

    fn install(&self, log: LogWriter, snapshot: &Arc<Snapshot>) {
        let mut state = self.shared.state.lock();
        state.log = Arc::new(log.counted_in(&self.shared.database.activity().log));
        state.changes_in_log = 0;
        state.latest = Arc::clone(snapshot);
        drop(state);
        self.shared.note_lasting(snapshot.commit());
        self.shared.show(Arc::clone(snapshot));
    }
}

/// What was committed since a base was begun, in the base's ids.
struct Carried {
    stored: Arc<Stored>,
    deltas: Deltas,
    /// Of the new base with these changes; number and time of the commit are not.
    counts: SnapshotCounts,
    /// The state over the old base up to which everything is here.
    until: Arc<Snapshot>,
    renumbering: Renumbering,
}

impl Carried {
    fn new(base: Arc<Base>, counts: SnapshotCounts, source: &Arc<Snapshot>) -> Result<Self> {
        Ok(Self {
            renumbering: Renumbering::to(Arc::clone(&base)),
            stored: Arc::new(Stored::of_base(base, counts)?),
            deltas: Deltas::default(),
            counts,
            until: Arc::clone(source),
        })
    }

    /// Takes up commits until there are few left.
    fn catch_up(&mut self, latest: impl Fn() -> Arc<Snapshot>) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            if self.take_up(&latest())? <= LAST_ROUND_CHANGES {
                break;
            }
        }
        Ok(())
    }

    /// Takes up the commits until a later state over the old base. Returns the number of changes.
    fn take_up(&mut self, latest: &Arc<Snapshot>) -> Result<usize> {
        if !Arc::ptr_eq(latest.stored(), self.until.stored()) {
            let path = latest.directory().to_path_buf();
            return Err(Error::ClearedMeanwhile { path });
        }
        let of = |snapshot: &Snapshot| snapshot.deltas().get(Permutation::Spog).cloned();
        let old = match (of(latest), of(&self.until)) {
            (Some(latest), Some(until)) => latest.changes_since(&until)?,
            (Some(latest), None) => latest.entries().collect::<Result<_>>()?,
            (None, _) => Vec::new(),
        };
        let mut changes = Vec::with_capacity(old.len());
        for change in &old {
            let mut row = [0; 4];
            for (new, old) in row.iter_mut().zip(change.row) {
                *new = self.renumbering.id(TermId::from_bits(old), latest)?.bits();
            }
            changes.push(DeltaEntry { row, ..*change });
        }
        changes.sort_unstable_by_key(|change| change.row);
        let has_gspo = self.deltas.get(Permutation::Gspo).is_some()
            || self.stored.base.index(Permutation::Gspo).is_some();
        let with_gspo = has_gspo || has_named_graph(&changes);
        self.deltas = self.deltas.apply(&changes, None, with_gspo)?;
        self.counts.delta_terms = self.stored.base.delta_dictionary.len();
        self.counts.next_blank_node = self.counts.next_blank_node.max(latest.next_blank_node());
        let views = self.stored.views(&self.deltas)?;
        self.counts.quads = views.get(Permutation::Spog).map_or(0, |index| index.rows());
        self.until = Arc::clone(latest);
        Ok(old.len())
    }
}
