//! The list of past commits, and snapshots of the states after them.
//!
//! A commit is kept while the writer's [`Retention`] wants it; its state is put together from a
//! base or flushed delta before it and the logs between, so it costs as much as opening the
//! database after a crash. The last few that were asked for stay in memory. What a bulk load
//! changed is not recorded: its state and those before it can be read, from a base each. Who
//! follows the changes is told that there was one ([`CommitChanges::is_bulk_load`]), and reads the
//! quads anew. Old states reach back over the last two bulk loads at most, for each keeps a whole
//! base.

use std::sync::Arc;

use orrery_term::TermId;

use crate::database::directory::{OPEN_ATTEMPTS_MAX, missing_file};
use crate::database::dump::{QuadBatch, QuadRef};
use crate::files::log::LogRecord;
use crate::files::manifest::{BaseEntry, Loaded, LogEntry, Manifest};
use crate::history::table_events::{KnownTables, TableEvent, events, has_definitions};
use crate::quads::graph_set::GraphSet;
use crate::quads::index::COLUMNS;
use crate::snapshots::replay::{Start, log_path, logs_after, open_log};
use crate::writer::Retention;
use crate::{Database, Error, ReadScope, Result, Snapshot};

/// Old snapshots that stay in memory after they were asked for.
const RECENT_MAX: usize = 4;
/// Flushed deltas that a base keeps. Each holds all of the one before, so more would cost much
/// room.
const DELTAS_MAX: usize = 5;
/// Bulk loads over which history reaches back. Each keeps a whole base that compactions do not
/// share.
const LOADS_MAX: usize = 2;
/// Quads decoded at a time.
const BATCH_QUADS: usize = 8 * 1024;

/// The wanted state: by commit, or by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After the commit with this number.
    Commit(u64),
    /// At this time, in microseconds since 1970: after the last commit that was made by then.
    Time(i64),
}

/// A commit in the list of commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEntry {
    /// Its number; each is one more than the one before.
    pub number: u64,
    /// When it was made, in microseconds since 1970; 0 where it is not known.
    pub time_us: i64,
    /// Who made it.
    pub who: String,
    /// Number of quads that it added.
    pub added: u64,
    /// Number of quads that it removed.
    pub removed: u64,
}

/// A commit with what it changed.
#[derive(Debug)]
pub struct CommitChanges<'a> {
    /// The commit; its counts are of all graphs.
    pub entry: CommitEntry,
    /// Whose quads are given out.
    scope: &'a ReadScope,
    record: &'a LogRecord,
    snapshot: &'a Snapshot,
    /// The state before the commit, if it cleared graphs as a whole; ids are those of `snapshot`.
    before: Option<Snapshot>,
    /// The tables before the commit, if it changed some and they are asked for.
    tables: Option<&'a KnownTables>,
    is_bulk_load: bool,
}

impl CommitChanges<'_> {
    /// Whether the commit was a bulk load: what it changed was not recorded, so no quads and no
    /// events are given out here, and any graph may have become another.
    pub fn is_bulk_load(&self) -> bool {
        self.is_bulk_load
    }

    /// Calls `found` with what the commit did to tables, in its order. Tables are in no graph: who
    /// does not see all of these sees none of them.
    pub fn tables(&self, found: impl FnMut(TableEvent<'_>) -> Result<()>) -> Result<()> {
        match self.tables {
            Some(tables) if self.scope.graphs().is_none() => events(self.record, tables, found),
            _ => Ok(()),
        }
    }

    /// Calls `found` with each quad, of the graphs that may be seen, that was there before the
    /// commit and not after it.
    pub fn removed(&self, mut found: impl FnMut(QuadRef<'_>) -> Result<()>) -> Result<()> {
        if let (Some(before), Some(cleared)) = (&self.before, &self.record.cleared) {
            self.cleared(before, &cleared.graphs, &mut found)?;
        }
        self.decode(&self.record.deletions, found)
    }

    /// Calls `found` with each quad, of the graphs that may be seen, that was there after the
    /// commit and not before it.
    pub fn added(&self, mut found: impl FnMut(QuadRef<'_>) -> Result<()>) -> Result<()> {
        let Some(before) = &self.before else {
            return self.decode(&self.record.insertions, found);
        };
        // Some quads of the graphs that were cleared may have come back.
        let mut cursor = before.spog()?.cursor();
        let mut added = Vec::new();
        for part in self.record.insertions.chunks(BATCH_QUADS) {
            added.clear();
            for quad in part {
                if cursor.seek(quad)?.is_empty() {
                    added.push(*quad);
                }
            }
            self.decode(&added, &mut found)?;
        }
        Ok(())
    }

    /// The quads of graphs that were cleared as a whole, but those that were inserted again.
    fn cleared(
        &self,
        before: &Snapshot,
        graphs: &GraphSet,
        found: &mut impl FnMut(QuadRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let spog = before.spog()?;
        let mut scan = spog.scan(spog.all(), [true; COLUMNS]);
        let mut gone = Vec::new();
        while let Some(vector) = scan.next_vector()? {
            let columns: [&[u64]; COLUMNS] = std::array::from_fn(|number| vector.column(number));
            for row in 0..columns[0].len() {
                let quad = columns.map(|column| TermId::from_bits(column[row]));
                let is_gone = graphs.contains(quad[COLUMNS - 1])
                    && self.record.insertions.binary_search(&quad).is_err();
                if is_gone {
                    gone.push(quad);
                }
            }
            if gone.len() >= BATCH_QUADS {
                self.decode(&gone, &mut *found)?;
                gone.clear();
            }
        }
        self.decode(&gone, found)
    }

    fn decode(
        &self,
        quads: &[[TermId; COLUMNS]],
        mut found: impl FnMut(QuadRef<'_>) -> Result<()>,
    ) -> Result<()> {
        // Who does not see all gets language tags in lower case, as of any state
        // ([`Snapshot::showing`]).
        let mut batch = match self.scope.graphs() {
            None => QuadBatch::default(),
            Some(_) => QuadBatch::canonical(),
        };
        for part in quads.chunks(BATCH_QUADS) {
            batch.fill(self.snapshot, part)?;
            let seen = batch.iter().filter(|quad| self.scope.sees(quad.graph));
            seen.into_iter().try_for_each(&mut found)?;
        }
        Ok(())
    }
}

impl Database {
    /// The database as it was after an earlier commit, or the present state if that is the one.
    ///
    /// It has the prefixes of the present state: what a text means does not depend on the state
    /// that it is asked of.
    ///
    /// Fails with [`Error::NoSuchCommit`] when the commit is not kept any more, or not there yet.
    pub fn snapshot_at(&self, at: At) -> Result<Arc<Snapshot>> {
        self.with_present(|present| {
            let number = match at {
                At::Commit(number) => number,
                At::Time(time_us) => self.commit_at(present, time_us)?,
            };
            if number == present.commit() {
                return Ok(Arc::clone(present));
            }
            let found = match self.recent(number) {
                Some(found) if Arc::ptr_eq(found.prefixes(), present.prefixes()) => {
                    return Ok(found);
                }
                Some(found) => found.with_manifest(found.shared_manifest().clone()),
                None => self.rebuild(present, number)?,
            };
            let found = Arc::new(found.with_prefixes(present.prefixes()));
            self.remember(&found);
            Ok(found)
        })
    }

    /// An old state that was asked for lately and is still kept.
    fn recent(&self, number: u64) -> Option<Arc<Snapshot>> {
        let mut recent = self.recent.lock();
        let place = recent.iter().position(|old| old.commit() == number)?;
        let found = recent.remove(place);
        recent.insert(0, Arc::clone(&found));
        Some(found)
    }

    fn remember(&self, found: &Arc<Snapshot>) {
        let mut recent = self.recent.lock();
        // Given up meanwhile? The lock is held, so either this sees the new manifest or
        // `forget_unkept` comes after it.
        if is_kept(self.snapshot().manifest(), found) {
            recent.retain(|old| old.commit() != found.commit());
            recent.insert(0, Arc::clone(found));
            recent.truncate(RECENT_MAX);
        }
    }

    /// Lets go of old states that a manifest no longer keeps, and so of their files.
    pub(crate) fn forget_unkept(&self, manifest: &Manifest) {
        let mut recent = self.recent.lock();
        recent.retain(|old| is_kept(manifest, old));
    }

    /// Does something that reads the files of the present state's manifest; again with a newer
    /// state where a writer has removed one of them meanwhile.
    fn with_present<T>(&self, mut action: impl FnMut(&Arc<Snapshot>) -> Result<T>) -> Result<T> {
        let mut present = self.snapshot();
        for _ in 0..OPEN_ATTEMPTS_MAX {
            match action(&present) {
                Err(error @ Error::NotFound { .. }) => {
                    self.refresh()?;
                    let newer = self.snapshot();
                    if newer.manifest().generation == present.manifest().generation {
                        return Err(missing_file(error));
                    }
                    present = newer;
                }
                done => return done,
            }
        }
        action(&present)
    }

    /// All commits that are kept, the oldest first. The state before the first one can be read,
    /// too.
    pub fn commits(&self) -> Result<Vec<CommitEntry>> {
        self.with_present(|present| self.commits_of(present))
    }

    fn commits_of(&self, present: &Snapshot) -> Result<Vec<CommitEntry>> {
        let mut commits = Vec::new();
        self.for_each_record(present, 0, |_, record| {
            commits.push(entry_of(record));
            Ok(())
        })?;
        for base in &present.manifest().bases {
            let place = commits.partition_point(|entry| entry.number < base.commit);
            let is_listed = commits
                .get(place)
                .is_some_and(|entry| entry.number == base.commit);
            if let Some(entry) = bulk_load(base)
                && !is_listed
            {
                commits.insert(place, entry);
            }
        }
        Ok(commits)
    }

    /// Calls `each` with every commit after number `since`, in order, and what the scope shows of
    /// it; ends early with the first error. Ends with the last commit that stays
    /// ([`Database::lasting_commit`]): relaxed ones beyond it are shown to readers, but may be
    /// lost, and others get their numbers.
    ///
    /// Fails with [`Error::NoSuchCommit`] when one of them is not kept any more, or was a bulk
    /// load, whose changes are not recorded: who follows the changes has to begin anew with a dump.
    pub fn changes(
        &self,
        scope: &ReadScope,
        since: u64,
        each: impl FnMut(&CommitChanges<'_>) -> Result<()>,
    ) -> Result<()> {
        self.changes_from(scope, since + 1, false, each)
    }

    /// The changes of a commit, including tables ([`CommitChanges::tables`]) and bulk loads
    /// ([`CommitChanges::is_bulk_load`]).
    pub fn changes_with_tables(
        &self,
        scope: &ReadScope,
        since: u64,
        each: impl FnMut(&CommitChanges<'_>) -> Result<()>,
    ) -> Result<()> {
        self.changes_from(scope, since + 1, true, each)
    }

    fn changes_from(
        &self,
        scope: &ReadScope,
        mut expected: u64,
        wants_tables: bool,
        mut each: impl FnMut(&CommitChanges<'_>) -> Result<()>,
    ) -> Result<()> {
        // Where it is done again, it goes on behind what was given out. A commit of which a part
        // was is neither given out again nor passed over: its error is the end, whatever it is.
        self.with_present(|present| {
            let mut has_failed = false;
            let mut each = |changes: &CommitChanges<'_>| {
                let given = each(changes);
                has_failed = given.is_err();
                given
            };
            let given = self.changes_of(scope, present, &mut expected, wants_tables, &mut each);
            match given {
                Err(error) if has_failed => Ok(Err(error)),
                given => given.map(Ok),
            }
        })?
    }

    /// The commits from a number on until a state, each decoded by a state that has all its terms.
    /// `expected` becomes the number of the next one.
    pub(crate) fn changes_of(
        &self,
        scope: &ReadScope,
        present: &Arc<Snapshot>,
        expected: &mut u64,
        wants_tables: bool,
        each: &mut impl FnMut(&CommitChanges<'_>) -> Result<()>,
    ) -> Result<()> {
        if *expected > present.commit() + 1 {
            return Err(self.no_commit(format!("commit {}", *expected - 1)));
        }
        // Of what comes beyond that, nobody tells others.
        let last = present.commit().min(self.lasting_commit());
        let mut known = match wants_tables {
            true => self.tables_known(present, *expected)?,
            false => None,
        };
        let mut decoder: Option<(String, Arc<Snapshot>)> = None;
        self.for_each_record(present, *expected, |base, record| {
            if record.commit > last {
                return Ok(());
            }
            if wants_tables {
                bulk_loads(scope, present, expected, record.commit, each)?;
            }
            if record.commit != *expected {
                return Err(self.no_changes(*expected));
            }
            let snapshot = match &decoder {
                Some((name, snapshot)) if *name == base.segment.name => Arc::clone(snapshot),
                _ => {
                    let snapshot = self.last_over(base, present)?;
                    decoder = Some((base.segment.name.clone(), Arc::clone(&snapshot)));
                    snapshot
                }
            };
            let before = match record.cleared {
                Some(_) => Some(self.state_over(base, &snapshot, record.commit - 1)?),
                None => None,
            };
            if wants_tables && known.is_none() && !record.tables.is_empty() {
                let before = self.state_over(base, &snapshot, record.commit - 1)?;
                known = Some(KnownTables::of(before.tables()));
            }
            *expected += 1;
            each(&CommitChanges {
                entry: entry_of(record),
                scope,
                record,
                snapshot: &snapshot,
                before,
                tables: known.as_ref().filter(|_| !record.tables.is_empty()),
                is_bulk_load: false,
            })?;
            if let Some(known) = &mut known {
                known.apply(record);
            }
            Ok(())
        })?;
        if wants_tables {
            bulk_loads(scope, present, expected, last + 1, each)?;
        }
        match *expected > last {
            true => Ok(()),
            false => Err(self.no_changes(*expected)),
        }
    }

    /// The tables of all commits from a number on, where they are those of the present state.
    fn tables_known(&self, present: &Snapshot, from: u64) -> Result<Option<KnownTables>> {
        let mut is_defined = false;
        self.for_each_record(present, from, |_, record| {
            is_defined |= has_definitions(record);
            Ok(())
        })?;
        Ok((!is_defined).then(|| KnownTables::of(present.tables())))
    }

    /// The last state over a base, whose dictionaries know all ids in the base's logs.
    fn last_over(&self, base: &BaseEntry, present: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        if present.base().name() == base.segment.name {
            return Ok(Arc::clone(present));
        }
        let start = Start::last_over(base);
        let (file_system, directory) = (&**self.file_system(), self.directory());
        let stored = Arc::new(start.open(file_system, directory, None)?);
        let logs = logs_after(base, start.commit());
        let manifest = present.shared_manifest();
        let replayed = start.replay(file_system, directory, manifest, stored, logs, u64::MAX)?;
        Ok(Arc::new(replayed.snapshot))
    }

    /// An old state over a base that has the log to it, with the ids of this base.
    fn state_over(&self, base: &BaseEntry, over: &Snapshot, number: u64) -> Result<Snapshot> {
        let start =
            Start::over(base, number).ok_or_else(|| self.no_commit(format!("commit {number}")))?;
        let (file_system, directory) = (&**self.file_system(), self.directory());
        let stored = Arc::new(start.open(file_system, directory, Some(over.base()))?);
        let logs = logs_after(base, start.commit());
        let manifest = over.shared_manifest();
        let replayed = start.replay(file_system, directory, manifest, stored, logs, number)?;
        Ok(replayed.snapshot)
    }

    /// Puts an old state together.
    fn rebuild(&self, present: &Snapshot, number: u64) -> Result<Snapshot> {
        let manifest = present.shared_manifest();
        let start = match Start::before(manifest, number) {
            Some(start) if number < present.commit() => start,
            _ => return Err(self.no_commit(format!("commit {number}"))),
        };
        let file_system = &**self.file_system();
        let directory = self.directory();
        let stored = start.open(file_system, directory, Some(present.base()))?;
        let logs = logs_after(start.base, start.commit());
        let replayed = start.replay(
            file_system,
            directory,
            manifest,
            Arc::new(stored),
            logs,
            number,
        )?;
        match replayed.snapshot.commit() == number {
            true => Ok(replayed.snapshot),
            false => Err(self.no_commit(format!("commit {number}"))),
        }
    }

    /// The last commit that was made by a time.
    fn commit_at(&self, present: &Snapshot, time_us: i64) -> Result<u64> {
        if time_us >= present.commit_time_us() {
            return Ok(present.commit());
        }
        let mut found = None;
        let mut see = |commit: u64, time: i64| {
            if time <= time_us {
                found = found.max(Some(commit));
            }
        };
        for base in &present.manifest().bases {
            see(base.commit, base.time_us);
            for delta in &base.deltas {
                see(delta.commit, delta.time_us);
            }
        }
        self.for_each_record(present, 0, |_, record| {
            see(record.commit, record.time_micros);
            Ok(())
        })?;
        found.ok_or_else(|| self.no_commit("state that is that old".to_owned()))
    }

    /// All commits of the logs from a number on until a state, in order.
    fn for_each_record(
        &self,
        present: &Snapshot,
        from: u64,
        mut found: impl FnMut(&BaseEntry, &LogRecord) -> Result<()>,
    ) -> Result<()> {
        let mut next = from;
        for base in &present.manifest().bases {
            for log in logs_from(base, next) {
                let path = log_path(self.directory(), &log.name);
                let mut reader = open_log(&**self.file_system(), &path, base, log)?;
                while let Some(logged) = reader.next_record()? {
                    let commit = logged.record.commit;
                    if commit > present.commit() {
                        return Ok(());
                    }
                    // After a compaction a commit stands in the logs of both bases.
                    if commit >= next {
                        next = commit + 1;
                        found(base, &logged.record)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn no_changes(&self, number: u64) -> Error {
        self.no_commit(format!("record of what commit {number} changed"))
    }

    fn no_commit(&self, wanted: String) -> Error {
        let present = self.snapshot();
        let oldest = serves_from(&present.manifest().bases[0]);
        Error::NoSuchCommit {
            path: self.directory().to_path_buf(),
            wanted,
            what: format!("it keeps {oldest} to {}", present.commit()),
        }
    }
}

/// The bulk load that made a base, if one did.
fn bulk_load(base: &BaseEntry) -> Option<CommitEntry> {
    let loaded = base.loaded?;
    Some(CommitEntry {
        number: base.commit,
        time_us: base.time_us,
        who: "load".to_owned(),
        added: loaded.added,
        removed: loaded.removed,
    })
}

/// Gives out the bulk loads from the commit `expected` on, one behind the other, until `end`, which
/// is not one of them. `expected` becomes the commit after the last.
fn bulk_loads(
    scope: &ReadScope,
    present: &Arc<Snapshot>,
    expected: &mut u64,
    end: u64,
    each: &mut impl FnMut(&CommitChanges<'_>) -> Result<()>,
) -> Result<()> {
    let nothing = LogRecord::default();
    for entry in present.manifest().bases.iter().filter_map(bulk_load) {
        if entry.number == *expected && entry.number < end {
            *expected += 1;
            each(&CommitChanges {
                entry,
                scope,
                record: &nothing,
                snapshot: present,
                before: None,
                tables: None,
                is_bulk_load: true,
            })?;
        }
    }
    Ok(())
}

/// The log files that may hold commits from a number on.
fn logs_from(base: &BaseEntry, commit: u64) -> &[LogEntry] {
    logs_after(base, commit.saturating_sub(1))
}

fn entry_of(record: &LogRecord) -> CommitEntry {
    let (added, removed) = record.added_and_removed();
    CommitEntry {
        number: record.commit,
        time_us: record.time_micros,
        who: record.who.clone(),
        added,
        removed,
    }
}

/// Takes out of a manifest what no commit needs that is to be kept. Goes by the times that the
/// manifest tells, so a commit may be kept a little longer than it has to.
pub(crate) fn forget(
    manifest: &mut Manifest,
    last_commit: u64,
    retention: &Retention,
    now_us: i64,
) {
    let keep_from = keep_from(&manifest.bases, last_commit, retention, now_us);
    let bases = &mut manifest.bases;
    give_up_old(bases, keep_from);
    // That one and what came after it until the next load can still be read.
    let given_up = first_within_loads(bases);
    bases.drain(..given_up);
    for base in bases {
        let older = base
            .deltas
            .iter()
            .rposition(|delta| delta.commit < keep_from);
        base.deltas.drain(..older.unwrap_or(0));
        thin(base);
        let start = match base.deltas.first() {
            Some(delta) if delta.commit < keep_from => delta.commit,
            _ => base.commit,
        };
        if start < keep_from {
            let needed = logs_after(base, start).len();
            base.logs.drain(..base.logs.len() - needed);
        }
    }
}

/// The first commit whose record is kept; the state before it can be read, too.
fn keep_from(bases: &[BaseEntry], last_commit: u64, retention: &Retention, now_us: i64) -> u64 {
    let age_us = i64::try_from(retention.age_max.as_micros()).unwrap_or(i64::MAX);
    let old_by = now_us.saturating_sub(age_us);
    let states = bases.iter().flat_map(|base| {
        let deltas = base
            .deltas
            .iter()
            .map(|delta| (delta.commit, delta.time_us));
        deltas.chain([(base.commit, base.time_us)])
    });
    let too_old = states.filter(|&(_, time_us)| time_us < old_by);
    let first_young = too_old.map(|(commit, _)| commit + 1).max().unwrap_or(0);
    let by_number = (last_commit + 1).saturating_sub(retention.commits_max);
    match retention.commits_max {
        0 => last_commit + 1,
        _ => first_young.max(by_number).min(last_commit),
    }
}

/// Gives up bases before which no commit is kept.
fn give_up_old(bases: &mut Vec<BaseEntry>, keep_from: u64) {
    while bases.len() > 1 && serves_from(&bases[1]) <= keep_from {
        bases.remove(0);
    }
}

/// The first base that is kept over the loads that history reaches back over.
fn first_within_loads(bases: &[BaseEntry]) -> usize {
    let loads = (0..bases.len()).rev();
    let mut loads = loads.filter(|&number| bases[number].loaded.is_some());
    loads.nth(LOADS_MAX).unwrap_or(0)
}

/// Where one more load would give up states that the retention keeps: the first commit whose state
/// would be left.
pub(crate) fn given_up_by_load(
    manifest: &Manifest,
    last_commit: u64,
    retention: &Retention,
    now_us: i64,
) -> Option<u64> {
    let mut bases = manifest.bases.clone();
    let load = BaseEntry {
        commit: last_commit + 1,
        time_us: now_us,
        loaded: Some(Loaded {
            added: 0,
            removed: 0,
        }),
        deltas: Vec::new(),
        logs: Vec::new(),
        ..manifest.present().clone()
    };
    bases.push(load);
    let keep_from = keep_from(&bases, last_commit + 1, retention, now_us);
    give_up_old(&mut bases, keep_from);
    let first = first_within_loads(&bases);
    (first > 0).then(|| serves_from(&bases[first]))
}

/// Whether an old state can still be read, and is as it would be read now: over a base with this
/// index of texts.
fn is_kept(manifest: &Manifest, old: &Snapshot) -> bool {
    Start::before(manifest, old.commit()).is_some()
        && manifest.bases.iter().any(|entry| old.base().is_of(entry))
}

/// Gives up deltas between the first and the last, where the logs lead from one to the next, until
/// few are left. Goes on with the one that leaves the smallest gap, so they stay spread over the
/// commits.
fn thin(base: &mut BaseEntry) {
    while base.deltas.len() > DELTAS_MAX {
        let gap = |&place: &usize| {
            let before = place
                .checked_sub(1)
                .map(|before| base.deltas[before].commit);
            base.deltas[place + 1].commit - before.unwrap_or(base.commit)
        };
        let Some(place) = (1..base.deltas.len() - 1).min_by_key(gap) else {
            return;
        };
        base.deltas.remove(place);
    }
}

/// The commit from which on a base with its deltas and logs tells every state.
fn serves_from(base: &BaseEntry) -> u64 {
    match (base.logs.first(), base.deltas.last()) {
        (Some(log), _) => log.first_commit - 1,
        (None, Some(delta)) => delta.commit,
        (None, None) => base.commit,
    }
}
