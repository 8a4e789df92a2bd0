//! Compaction: base and changes become a new base, beside the running database.
//!
//! It goes the way of a load without sources. [`BackgroundCompaction`] does it whenever the changes
//! weigh too much: reading costs what entries of the delta are met, and memory what they take. The
//! changes of each table are brought into its files by the same rule, whether the quads changed or
//! not.

use crate::LoadOptions;
use crate::error::LoadError;
use crate::ingest::stage_dir::StageDir;
use crate::load::delta_batch::changes_of;
use crate::load::publish::{Parsed, finished, write};
use crate::progress::{Progress, Stage};
use crate::report::{LoadReport, Stopwatch};
use orrery_storage::Permutation;
use orrery_storage::table::TableState;
use orrery_storage::{Error, ReadView, Rebase, Writer};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the changes are counted.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a failure it is tried again when so much time has passed.
const RETRY_AFTER: Duration = Duration::from_secs(600);
/// So often a compaction for which graphs were cleared meanwhile begins anew, before it makes other
/// writers wait.
const ATTEMPTS_BESIDE: usize = 2;
/// The part of the base that changes are to make up where rows of it are hidden.
const HIDDEN_BASE_PART: u64 = 64;

/// The options of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactOptions {
    /// Memory that the compaction may use, [`crate::MEMORY_BYTES_MIN`] or more; beyond it, it works
    /// on disk.
    pub memory_bytes: u64,
    /// Threads that sort.
    pub threads: usize,
}

impl Default for CompactOptions {
    /// As [`LoadOptions`] has it.
    fn default() -> Self {
        let LoadOptions {
            memory_bytes,
            threads,
            ..
        } = LoadOptions::default();
        Self {
            memory_bytes,
            threads,
        }
    }
}

impl CompactOptions {
    /// The same for what is written as a load is.
    pub(crate) fn as_load(&self) -> LoadOptions {
        LoadOptions {
            memory_bytes: self.memory_bytes,
            threads: self.threads,
            ..LoadOptions::default()
        }
    }
}

/// Writes all quads into a new base, so that reading need not look at the changes since the old
/// one. Others read and write meanwhile.
///
/// The commit number stays. Terms that no quad has any more leave the dictionary.
/// Without changes nothing is done.
pub fn compact(
    writer: &Writer,
    options: &CompactOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Stopwatch::start();
    let options = options.as_load();
    let database = writer.database();
    let stage = StageDir::create_beside_others(
        Arc::clone(database.file_system()),
        database.directory(),
        options.literal_bytes_max,
    )?;
    let run = |rebase: Rebase<'_>| {
        let existing = ReadView::of_process(Arc::clone(rebase.source()));
        if changes_of(&existing) == 0 {
            return Ok(unchanged(&existing));
        }
        let watched = UnlessTooLate {
            rebase: &rebase,
            progress,
        };
        let written = write(
            Parsed::nothing(),
            &existing,
            rebase.files(),
            &stage,
            &options,
            &watched,
        )?;
        written.publish(&existing, progress, |counts, statistics| {
            let mut rebase = rebase;
            rebase.set_text_memory(options.usable_bytes());
            rebase.publish(counts, statistics)
        })
    };
    let mut result = Err(LoadError::Cancelled);
    for attempt in 0..=ATTEMPTS_BESIDE {
        let begun = match attempt {
            ATTEMPTS_BESIDE => writer.begin_compaction_alone(),
            _ => writer.begin_compaction(),
        };
        result = begun.map_err(LoadError::from).and_then(run);
        let is_too_late = match &result {
            Err(LoadError::Storage(Error::ClearedMeanwhile { .. })) => true,
            // Given up on the way.
            Err(LoadError::Cancelled) => !progress.is_cancelled(),
            _ => false,
        };
        if !is_too_late {
            break;
        }
    }
    progress.end();
    if !matches!(result, Ok(_) | Err(LoadError::Cancelled)) {
        database.activity().compactions.note_failure();
    }
    result.map(|report| finished(report, start))
}

/// Brings the changes of all tables into their files that have any. Returns the number of tables
/// that were written. Others read and write meanwhile.
pub fn compact_tables(writer: &Writer, progress: &dyn Progress) -> Result<u64, LoadError> {
    compact_some_tables(writer, progress, &TableState::has_changes)
}

fn compact_some_tables(
    writer: &Writer,
    progress: &dyn Progress,
    is_due: &dyn Fn(&TableState) -> bool,
) -> Result<u64, LoadError> {
    let snapshot = writer.database().snapshot();
    let due = snapshot.tables().with_system_tables();
    let due = due.filter(|table| is_due(table));
    let due: Vec<_> = due.map(|table| table.definition().id).collect();
    // What it holds in memory may be given back while the tables are written.
    drop(snapshot);
    let mut written = 0;
    for table in due {
        let is_cancelled = || progress.is_cancelled();
        written += u64::from(writer.compact_table_unless(table, &is_cancelled)?);
        if progress.is_cancelled() {
            return Err(LoadError::Cancelled);
        }
    }
    Ok(written)
}

/// Gives up as soon as graphs were cleared since the compaction was begun, for it would come too
/// late.
struct UnlessTooLate<'a> {
    rebase: &'a Rebase<'a>,
    progress: &'a dyn Progress,
}

impl Progress for UnlessTooLate<'_> {
    fn begin(&self, stage: Stage, total: Option<u64>) {
        self.progress.begin(stage, total);
    }

    fn advance(&self, position: u64, quads: u64) {
        self.progress.advance(position, quads);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled() || self.rebase.is_too_late()
    }
}

fn unchanged(view: &ReadView) -> LoadReport {
    LoadReport {
        quads: view.quad_count(),
        terms: view.snapshot().dictionary().len(),
        database_bytes: view.snapshot().file_bytes(),
        ..LoadReport::default()
    }
}

/// The conditions and options of background compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundOptions {
    /// So many changes there must be at least.
    pub changes_min: u64,
    /// And at least the base's quads, or the table's rows, divided by this.
    pub base_part: u64,
    /// How it is done.
    pub compact: CompactOptions,
}

impl Default for BackgroundOptions {
    /// An eighth of the base and 250,000 quads; half of the cores, and 1 GiB.
    fn default() -> Self {
        Self {
            changes_min: 250_000,
            base_part: 8,
            compact: CompactOptions {
                memory_bytes: 1 << 30,
                threads: (CompactOptions::default().threads / 2).max(1),
            },
        }
    }
}

impl BackgroundOptions {
    /// Whether enough has changed. Over a base with hidden rows that is less, whatever the options
    /// say.
    fn is_due(&self, view: &ReadView) -> bool {
        let changes = changes_of(view);
        let Some(index) = view.index(Permutation::Spog) else {
            return changes >= self.changes_min;
        };
        let base_rows = index.base().rows();
        match index.hidden_rows() {
            0 => changes >= self.changes_min.max(base_rows / self.base_part.max(1)),
            // Earlier, for adjacencies are not used over a base with hidden rows.
            hidden => changes >= (base_rows + hidden) / HIDDEN_BASE_PART,
        }
    }
}

impl BackgroundOptions {
    /// The same for a table.
    fn is_table_due(&self, table: &TableState) -> bool {
        table.changes()
            >= self
                .changes_min
                .max(table.rows() / self.base_part.max(1))
                .max(1)
    }
}

/// Compacts a database whenever it is due, until it is dropped; dropping gives up a compaction that
/// is under way.
#[derive(Debug)]
pub struct BackgroundCompaction {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    is_set: AtomicBool,
    turn: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Waits that long, or until the end.
    fn wait(&self, time: Duration) {
        let mut turn = self.turn.lock();
        if !self.is_set() {
            self.changed.wait_for(&mut turn, time);
        }
    }

    fn set(&self) {
        let _turn = self.turn.lock();
        self.is_set.store(true, Ordering::Release);
        self.changed.notify_all();
    }
}

impl Progress for Stop {
    fn is_cancelled(&self) -> bool {
        self.is_set()
    }
}

impl BackgroundCompaction {
    /// Starts the thread.
    pub fn start(writer: Writer, options: BackgroundOptions) -> Result<Self, LoadError> {
        let stop = Arc::new(Stop::default());
        let of_thread = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("compact".to_owned())
            .spawn(move || run(&writer, &options, &of_thread))
            .map_err(LoadError::Thread)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for BackgroundCompaction {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that compacts has panicked");
        }
    }
}

fn run(writer: &Writer, options: &BackgroundOptions, stop: &Stop) {
    let mut tables_after = Instant::now();
    while !stop.is_set() && !writer.is_over() {
        // Quads do not wait for a table that cannot be written.
        if Instant::now() >= tables_after {
            match compact_some_tables(writer, stop, &|table| options.is_table_due(table)) {
                Ok(0) => {}
                Ok(tables) => {
                    tracing::info!("brought the changes of {tables} tables into their files");
                }
                Err(LoadError::Cancelled) => return,
                Err(_) if writer.is_over() => return,
                Err(error) => {
                    tracing::error!(
                        "the changes of a table stay in memory, writing them failed: {error}"
                    );
                    tables_after = Instant::now() + RETRY_AFTER;
                }
            }
        }
        let view = writer.database().view_of_process();
        if !options.is_due(&view) {
            drop(view);
            stop.wait(LOOK_EVERY);
            continue;
        }
        let changes = changes_of(&view);
        drop(view);
        match compact(writer, &options.compact, stop) {
            Ok(report) => tracing::info!(
                "compacted {changes} changes into a base of {} quads in {:.1} s",
                report.quads,
                report.seconds
            ),
            Err(LoadError::Cancelled) => return,
            Err(_) if writer.is_over() => return,
            Err(error) => {
                tracing::error!(
                    "the compaction failed, reading stays slower until it succeeds: {error}"
                );
                stop.wait(RETRY_AFTER);
            }
        }
    }
}
