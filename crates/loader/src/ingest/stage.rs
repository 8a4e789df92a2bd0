//! The driver of stage one: threads that turn sources into batches of terms and quads.
//!
//! ```text
//! sources --- reader threads ---- blocks of lines, whole documents ---> workers ---> batches
//!             decompress, cut     (a bounded queue)                     parse, intern
//! ```
//!
//! A reader thread takes one source after the other. N-Triples and N-Quads are cut into blocks that
//! any worker parses; a document of another format goes to one worker as a whole. Every worker
//! interns into a batch of its own; if that reaches its size, the worker sorts it. Sorted batches
//! stay in memory as long as all may fit there with what follows; else they and all further ones go
//! to the stage directory.
//!
//! Where other processes help (`workers`), further threads feed them: with blocks and documents
//! from the same queue, or with the names of parts of the sources (`parts`). What these give back
//! are batches like all others.
//!
//! Memory: the batches that are held, one that is filled by each worker, and the blocks in flight.
//! The first failure (by source and line, among those that the workers meet at the same time) stops
//! all.

use crate::LoadOptions;
use crate::error::{LoadError, SyntaxError};
use crate::ingest::batch::{MemoryBatch, SpilledBatch, spill};
use crate::ingest::interner::Interner;
use crate::ingest::long_line::{LongLine, LongLineError, LongLineReader};
use crate::ingest::parsing::{BatchSink, ParseTask, Parser, ParserBounds, Shared};
use crate::ingest::stage_dir::StageDir;
use crate::merge::row_sort::ROW_BYTES_MAX;
use crate::parse::json_contexts::PARSER_STACK_BYTES;
use crate::progress::Progress;
use crate::sources::blocks::{BlockReader, Next};
use crate::sources::parts::{cut_parts, whole_parts};
use crate::sources::source::CheckedSource;
use crate::threads::joined;
use crate::workers::feed::{FEEDERS_PER_MEMBER, FeedSizes, Feeder};
use crate::workers::members::LoadWorkers;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Bytes of a block of lines, unless the memory is small: with its terms it stays in the caches of
/// a core.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const BLOCK_BYTES_MIN: usize = 64 << 10;

/// The text of a statement of Turtle, TriG, RDF/XML or JSON-LD may take this part of the memory: it
/// is held by the parser, as a term, as a key, and in what it is copied from.
const STATEMENT_PART: usize = 4;
/// And as much however little memory there is.
const STATEMENT_BYTES_MIN: usize = 4 << 20;

/// Sources that are read (and decompressed) at the same time.
const READERS_MAX: usize = 4;

/// A worker's share of the memory is never smaller, however little was given.
pub(crate) const SHARE_BYTES_MIN: usize = 2 << 20;

/// A batch is never larger, however much was given: its table, and later the map of its terms, are
/// read at random, and beyond the caches each look-up waits for the memory.
const BATCH_BYTES_MAX: usize = 128 << 20;

/// How memory is divided while parsing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    block_bytes: usize,
    queue_blocks: usize,
    pub(crate) bounds: ParserBounds,
    /// All batches that are full, together with what sorting their quads takes.
    held_bytes: usize,
}

impl Budget {
    /// Divides `memory`, which is what [`LoadOptions::usable_bytes`] says.
    pub(crate) fn new(memory: usize, workers: usize, readers: usize) -> Self {
        let queue_blocks = workers + 1;
        // In the queue, with each worker, and with each reader together with the rest of its last.
        let blocks = queue_blocks + workers + 2 * readers;
        let block_bytes = (memory / 8 / blocks).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        let batches = memory.saturating_sub(blocks * block_bytes);
        let batch_bytes = (batches / workers).clamp(SHARE_BYTES_MIN, BATCH_BYTES_MAX);
        Self {
            block_bytes,
            queue_blocks,
            bounds: ParserBounds {
                statement_bytes: (memory / STATEMENT_PART).max(STATEMENT_BYTES_MIN),
                batch_bytes,
            },
            held_bytes: batches.saturating_sub(workers * batch_bytes),
        }
    }
}

/// What the sources held.
pub(crate) struct Ingested {
    /// The last batch of each worker, not sealed.
    pub(crate) open: Vec<Interner>,
    /// Full batches, as long as all fit into the memory.
    pub(crate) held: Vec<MemoryBatch>,
    /// Batches that did not fit.
    pub(crate) spilled: Vec<SpilledBatch>,
    pub(crate) quads_read: u64,
    pub(crate) errors_skipped: u64,
    /// Statements of JSON-LD that were left out, and what was said of them.
    pub(crate) left_out: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) has_named_graphs: bool,
    /// Numbers for files of further batches.
    pub(crate) next_batch_number: u32,
}

impl Ingested {
    /// Nothing was read.
    pub(crate) fn nothing() -> Self {
        Self {
            open: Vec::new(),
            held: Vec::new(),
            spilled: Vec::new(),
            quads_read: 0,
            errors_skipped: 0,
            left_out: 0,
            warnings: Vec::new(),
            has_named_graphs: false,
            next_batch_number: 0,
        }
    }
}

/// Keeps full batches: in the memory while all of them fit, else in the stage directory.
struct FullBatches<'a> {
    stage: &'a StageDir,
    held_bytes_max: usize,
    next_number: AtomicU32,
    kept: Mutex<KeptBatches>,
}

#[derive(Default)]
struct KeptBatches {
    held: Vec<MemoryBatch>,
    /// What they take, with the sort of their quads.
    held_bytes: usize,
    /// They did not fit: all are written, `held` stays empty.
    is_spilling: bool,
    spilled: Vec<SpilledBatch>,
}

impl BatchSink for FullBatches<'_> {
    fn take(&self, batch: MemoryBatch) -> Result<(), LoadError> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let sort_bytes = usize::try_from(batch.quad_count).unwrap_or(usize::MAX) * ROW_BYTES_MAX;
        let to_spill = {
            let mut kept = kept();
            kept.held.push(batch);
            let batch_bytes = kept.held.last().map_or(0, MemoryBatch::memory_bytes);
            kept.held_bytes += batch_bytes + sort_bytes;
            kept.is_spilling |= kept.held_bytes > self.held_bytes_max;
            match kept.is_spilling {
                true => std::mem::take(&mut kept.held),
                false => return Ok(()),
            }
        };
        for batch in to_spill {
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            let spilled = spill(batch, self.stage, number)?;
            kept().spilled.push(spilled);
        }
        Ok(())
    }
}

/// The threads of stage one, and what they hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    parsers: usize,
    readers: usize,
    pub(crate) budget: Budget,
}

impl Threads {
    /// For so many sources. `feeders` are threads that let others parse.
    pub(crate) fn new(options: &LoadOptions, sources: usize, feeders: usize) -> Self {
        let parsers = options.threads.max(1);
        let readers = parsers.min(sources).clamp(1, READERS_MAX);
        Self {
            parsers,
            readers,
            budget: Budget::new(options.usable_bytes(), parsers + feeders, readers),
        }
    }
}

/// Reads all sources; `workers` help, if there are any.
pub(crate) fn ingest(
    options: &LoadOptions,
    sources: &[CheckedSource],
    stage: &StageDir,
    workers: Option<&LoadWorkers>,
    progress: &dyn Progress,
) -> Result<Ingested, LoadError> {
    let members = workers.map_or(0, |workers| workers.members.len());
    let parts = match workers {
        Some(workers) if workers.members.iter().any(|member| member.reads_files()) => {
            cut_parts(sources, workers.pieces.part_bytes)?
        }
        _ => whole_parts(sources),
    };
    let threads = Threads::new(options, sources.len(), members * FEEDERS_PER_MEMBER);
    let full = FullBatches {
        stage,
        held_bytes_max: threads.budget.held_bytes,
        next_number: AtomicU32::new(0),
        kept: Mutex::default(),
    };
    let bounds = threads.budget.bounds;
    let shared = Shared::new(options, &parts, (stage, &full), bounds, progress);
    let open = parse_parts(&shared, threads, Vec::new(), workers);
    if let Some((_, error)) = shared.take_failure() {
        return Err(error);
    }
    shared.tell_odd_iris();
    let counts = shared.counts;
    let kept = full.kept.into_inner();
    let kept = kept.unwrap_or_else(PoisonError::into_inner);
    let warnings = counts.warnings.into_inner();
    Ok(Ingested {
        open,
        held: kept.held,
        spilled: kept.spilled,
        quads_read: counts.quads.into_inner(),
        errors_skipped: counts.errors.into_inner(),
        left_out: counts.left_out.into_inner(),
        warnings: warnings.unwrap_or_else(PoisonError::into_inner),
        has_named_graphs: counts.has_named_graphs.into_inner(),
        next_batch_number: full.next_number.into_inner(),
    })
}

/// A thread that parses whatever format.
fn parser_thread(name: String) -> thread::Builder {
    let thread = thread::Builder::new().name(name);
    thread.stack_size(PARSER_STACK_BYTES)
}

/// Reads and parses all parts, and does what is `given`. Gives the last batch of each thread;
/// failures are noted.
pub(crate) fn parse_parts(
    shared: &Shared<'_>,
    threads: Threads,
    given: Vec<ParseTask>,
    workers: Option<&LoadWorkers>,
) -> Vec<Interner> {
    let (work_sender, work) = bounded(threads.budget.queue_blocks);
    let (recycle, recycled) = unbounded();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(threads.parsers);
        let mut note = |spawned: io::Result<_>| match spawned {
            Ok(handle) => handles.push(handle),
            Err(error) => shared.fail((0, 0), LoadError::Thread(error)),
        };
        for number in 0..threads.parsers {
            let work = work.clone();
            let recycle = recycle.clone();
            let thread = parser_thread(format!("load-parse-{number}"));
            note(thread.spawn_scoped(scope, move || Parser::new(shared).run(&work, &recycle)));
        }
        if let Some(workers) = workers {
            let sizes = FeedSizes::new(workers, shared, threads.parsers);
            let members = workers.members.iter();
            for (number, member) in members.flat_map(|m| [m; FEEDERS_PER_MEMBER]).enumerate() {
                let work = work.clone();
                let recycle = recycle.clone();
                let thread = parser_thread(format!("load-feed-{number}"));
                let feeder = Feeder::new(shared, member, sizes);
                note(thread.spawn_scoped(scope, move || feeder.run(&work, &recycle)));
            }
        }
        // The ends of those who parse alone keep the channels open, so a dead one never blocks a
        // reader.
        drop((work, recycle));
        for number in 0..threads.readers {
            let work = work_sender.clone();
            let recycled = recycled.clone();
            let block_bytes = threads.budget.block_bytes;
            let spawned = thread::Builder::new()
                .name(format!("load-read-{number}"))
                .spawn_scoped(scope, move || {
                    read_parts(shared, block_bytes, &work, &recycled);
                });
            if let Err(error) = spawned {
                shared.fail((0, 0), LoadError::Thread(error));
            }
        }
        for task in given {
            if work_sender.send(task).is_err() {
                break;
            }
        }
        drop((work_sender, recycled));
        handles.into_iter().map(joined).collect()
    })
}

/// Reads one part after the other until all are taken.
fn read_parts(
    shared: &Shared<'_>,
    block_bytes: usize,
    work: &Sender<ParseTask>,
    recycled: &Receiver<Vec<u8>>,
) {
    while let Some(part) = shared.queue.take(|| shared.is_stopped()) {
        if let Err(error) = read_part(shared, part, block_bytes, work, recycled) {
            shared.fail((part, u64::MAX), error);
        }
        if shared.is_stopped() {
            return;
        }
    }
}

fn read_part(
    shared: &Shared<'_>,
    part: usize,
    block_bytes: usize,
    work: &Sender<ParseTask>,
    recycled: &Receiver<Vec<u8>>,
) -> Result<(), LoadError> {
    let source = &shared.parts[part].source;
    let input = shared.parts[part].open(&shared.bytes_read)?;
    if !source.format.is_line_based() {
        // A send fails only if all workers are gone, and then a failure is noted already.
        let _ = work.send(ParseTask::Document { part, input });
        return Ok(());
    }
    let line_bytes_max = shared.stage.large_literals().key_bytes_max();
    let mut blocks = BlockReader::new(input, block_bytes, line_bytes_max);
    while !shared.is_stopped() {
        let next = blocks.next(recycled.try_recv().unwrap_or_default());
        let next = next.map_err(|error| LoadError::input(&source.name, error))?;
        let sent = match next {
            None => break,
            Some(Next::Block(block)) => work.send(ParseTask::Block { part, block }),
            Some(Next::LongLine { number }) => {
                match read_long_line(shared, part, &mut blocks, number)? {
                    Some(line) => work.send(ParseTask::LongLine { part, line }),
                    None => continue,
                }
            }
        };
        if sent.is_err() {
            break;
        }
    }
    Ok(())
}

/// Reads a line that is too long for a block, its literal into a file; `None` if it is wrong.
fn read_long_line<R: Read>(
    shared: &Shared<'_>,
    part: usize,
    blocks: &mut BlockReader<R>,
    number: u64,
) -> Result<Option<LongLine>, LoadError> {
    let source = &shared.parts[part].source;
    let mut reader = Some(LongLineReader::new(shared.stage.large_literals()));
    let mut wrong = None;
    let read = blocks.long_line(|piece| {
        if shared.is_stopped() {
            return Err(LongLineFailure::Stopped);
        }
        shared.report_progress(0);
        match reader.as_mut().map(|reader| reader.push(piece)) {
            Some(Err(LongLineError::Syntax(message))) => {
                // The rest of the line passes unread, and what its literal has taken goes.
                reader = None;
                wrong = Some(message);
            }
            Some(Err(LongLineError::Storage(error))) => return Err(error.into()),
            Some(Ok(())) | None => {}
        }
        Ok(())
    });
    match read {
        Ok(()) => {}
        // What was read is not the whole line.
        Err(LongLineFailure::Stopped) => return Ok(None),
        Err(LongLineFailure::Storage(error)) => return Err(error.into()),
        Err(LongLineFailure::Input(error)) => return Err(LoadError::input(&source.name, error)),
    }
    if let Some(message) = wrong {
        // If it is fatal, this is noted, and the reader stops before the next line.
        shared.syntax_error(part, || SyntaxError {
            line: Some(number),
            ..SyntaxError::new(&source.name, message)
        });
        return Ok(None);
    }
    Ok(reader.map(|reader| reader.finish(number)))
}

/// Why a long line is not read to its end.
enum LongLineFailure {
    /// Another thread failed.
    Stopped,
    Storage(orrery_storage::Error),
    Input(io::Error),
}

impl From<orrery_storage::Error> for LongLineFailure {
    fn from(error: orrery_storage::Error) -> Self {
        Self::Storage(error)
    }
}

impl From<io::Error> for LongLineFailure {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}
