//! Stage one: from sources to batches of terms and quads.
//!
//! ```text
//! sources --- reader threads ---- blocks of lines, whole documents ---> workers ---> batches
//!             decompress, cut     (a bounded queue)                     parse, intern
//! ```
//!
//! A reader thread takes one source after the other. N-Triples and N-Quads are cut into blocks
//! that any worker parses; a document of another format goes to one worker as a whole. Every
//! worker interns into a batch of its own; if that reaches its size, the worker sorts it. Sorted batches stay in memory as long
//! as all may fit there with what follows; else they and all further ones go to the stage directory.
//!
//! Memory: the batches that are held, one that is filled by each worker, and the blocks in flight. The first failure (by source and line,
//! among those that the workers meet at the same time) stops all.

use crate::LoadOptions;
use crate::batch::{MemoryBatch, SpilledBatch, seal, spill};
use crate::blocks::{Block, BlockReader, Next, line_ends};
use crate::documents::{DocumentEvents, StatementTooLong, parse_document};
use crate::error::{LoadError, SyntaxError, clipped};
use crate::excerpt::excerpt_of;
use crate::format::Format;
use crate::interner::Interner;
use crate::json_ld::LeftOut;
use crate::long_line::{LongLine, LongLineError, LongLineReader};
use crate::looks::Looks;
use crate::mends::{Surroundings, said};
use crate::ntriples::{AfterError, LineError, parse_block};
use crate::progress::Progress;
use crate::row_sort::ROW_BYTES_MAX;
use crate::source::CheckedSource;
use crate::stage_dir::StageDir;
use crate::staged_sink::StagedSink;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use memchr::memrchr2;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Bytes of a block of lines, unless the memory is small: with its terms it stays in the caches of a core.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const BLOCK_BYTES_MIN: usize = 64 << 10;

/// The text of a statement of Turtle, TriG, RDF/XML or JSON-LD may take this part of the memory: it is held by the parser, as a term,
/// as a key, and in what it is copied from.
const STATEMENT_PART: usize = 4;
/// And as much however little memory there is.
const STATEMENT_BYTES_MIN: usize = 4 << 20;

/// Sources that are read (and decompressed) at the same time.
const READERS_MAX: usize = 4;

/// A worker's share of the memory is never smaller, however little was given.
pub(crate) const SHARE_BYTES_MIN: usize = 2 << 20;

/// A batch is never larger, however much was given: its table, and later the map of its terms, are read at random, and
/// beyond the caches each look-up waits for the memory.
const BATCH_BYTES_MAX: usize = 128 << 20;

/// The first wrong statements are told one by one, the others only counted.
const ERRORS_SHOWN_MAX: u64 = 20;

/// So many warnings are kept and told.
const WARNINGS_MAX: usize = 20;

/// Quads of a document between two looks at memory and progress.
const DOCUMENT_CHECK_QUADS: u64 = 1 << 12;

/// How memory is divided while parsing.
#[derive(Debug, Clone, Copy)]
struct Budget {
    block_bytes: usize,
    /// What a parser of a document may hold without making a statement of it.
    statement_bytes: usize,
    queue_blocks: usize,
    /// A batch that is filled.
    batch_bytes: usize,
    /// All batches that are full, together with what sorting their quads takes.
    held_bytes: usize,
}

impl Budget {
    /// Divides `memory`, which is what [`LoadOptions::usable_bytes`] says.
    fn new(memory: usize, workers: usize, readers: usize) -> Self {
        let queue_blocks = workers + 1;
        // In the queue, with each worker, and with each reader together with the rest of its last.
        let blocks = queue_blocks + workers + 2 * readers;
        let block_bytes = (memory / 8 / blocks).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        let batches = memory.saturating_sub(blocks * block_bytes);
        let batch_bytes = (batches / workers).clamp(SHARE_BYTES_MIN, BATCH_BYTES_MAX);
        Self {
            block_bytes,
            statement_bytes: (memory / STATEMENT_PART).max(STATEMENT_BYTES_MIN),
            queue_blocks,
            batch_bytes,
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

enum ParseTask {
    Block {
        file: usize,
        block: Block,
    },
    LongLine {
        file: usize,
        line: LongLine,
    },
    Document {
        file: usize,
        input: Box<dyn Read + Send>,
    },
}

/// Where a failure happened, so that the first one is told.
type SourcePosition = (usize, u64);

struct Shared<'a> {
    options: &'a LoadOptions,
    sources: &'a [CheckedSource],
    stage: &'a StageDir,
    progress: &'a dyn Progress,
    budget: Budget,
    bytes_read: Arc<AtomicU64>,
    next_source: AtomicUsize,
    next_batch: AtomicU32,
    quads: AtomicU64,
    errors: AtomicU64,
    /// What each source looks like, once it was opened.
    looks: Vec<OnceLock<Looks>>,
    left_out: AtomicU64,
    warnings: Mutex<Vec<String>>,
    has_named_graphs: AtomicBool,
    is_stopped: AtomicBool,
    failure: Mutex<Option<(SourcePosition, LoadError)>>,
    full: Mutex<FullBatches>,
}

/// Batches that were filled so far.
#[derive(Default)]
struct FullBatches {
    held: Vec<MemoryBatch>,
    /// What they take, with the sort of their quads.
    held_bytes: usize,
    /// They did not fit: all are written, `held` stays empty.
    is_spilling: bool,
    spilled: Vec<SpilledBatch>,
}

/// Reads all sources.
pub(crate) fn ingest(
    options: &LoadOptions,
    sources: &[CheckedSource],
    stage: &StageDir,
    progress: &dyn Progress,
) -> Result<Ingested, LoadError> {
    let workers = options.threads.max(1);
    let readers = workers.min(sources.len()).clamp(1, READERS_MAX);
    let shared = Shared {
        options,
        sources,
        stage,
        progress,
        budget: Budget::new(options.usable_bytes(), workers, readers),
        bytes_read: Arc::default(),
        next_source: AtomicUsize::new(0),
        next_batch: AtomicU32::new(0),
        quads: AtomicU64::new(0),
        errors: AtomicU64::new(0),
        looks: sources.iter().map(|_| OnceLock::new()).collect(),
        left_out: AtomicU64::new(0),
        warnings: Mutex::default(),
        has_named_graphs: AtomicBool::new(false),
        is_stopped: AtomicBool::new(false),
        failure: Mutex::new(None),
        full: Mutex::default(),
    };
    let open = run_threads(&shared, workers, readers)?;
    let failure = shared
        .failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some((_, error)) = failure {
        return Err(error);
    }
    let full = shared
        .full
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(Ingested {
        open,
        held: full.held,
        spilled: full.spilled,
        quads_read: shared.quads.into_inner(),
        errors_skipped: shared.errors.into_inner(),
        left_out: shared.left_out.into_inner(),
        warnings: shared
            .warnings
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
        has_named_graphs: shared.has_named_graphs.into_inner(),
        next_batch_number: shared.next_batch.into_inner(),
    })
}

fn run_threads(
    shared: &Shared<'_>,
    workers: usize,
    readers: usize,
) -> Result<Vec<Interner>, LoadError> {
    let (work_sender, work) = bounded(shared.budget.queue_blocks);
    let (recycle, recycled) = unbounded();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(workers);
        for number in 0..workers {
            let work = work.clone();
            let recycle = recycle.clone();
            let spawned = thread::Builder::new()
                .name(format!("load-parse-{number}"))
                .spawn_scoped(scope, move || Worker::new(shared).run(&work, &recycle));
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => shared.fail((0, 0), LoadError::Thread(error)),
            }
        }
        // The workers' ends alone keep the channels open, so a dead worker never blocks a reader.
        drop((work, recycle));
        for number in 0..readers {
            let work = work_sender.clone();
            let recycled = recycled.clone();
            let spawned = thread::Builder::new()
                .name(format!("load-read-{number}"))
                .spawn_scoped(scope, move || read_sources(shared, &work, &recycled));
            if let Err(error) = spawned {
                shared.fail((0, 0), LoadError::Thread(error));
            }
        }
        drop((work_sender, recycled));
        let mut open = Vec::with_capacity(workers);
        for handle in handles {
            match handle.join() {
                Ok(interner) => open.push(interner),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(open)
    })
}

impl Shared<'_> {
    /// Notes a failure and stops all threads. Of several, the first by place is kept.
    fn fail(&self, place: SourcePosition, error: LoadError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(other, _)| place < *other) {
            *failure = Some((place, error));
        }
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Takes a sorted batch: into the memory while all of them fit, else with them to the stage directory.
    fn take_full(&self, batch: MemoryBatch) -> Result<(), LoadError> {
        let full = || self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let sort_bytes = usize::try_from(batch.quad_count).unwrap_or(usize::MAX) * ROW_BYTES_MAX;
        let to_spill = {
            let mut full = full();
            full.held.push(batch);
            let batch_bytes = full.held.last().map_or(0, MemoryBatch::memory_bytes);
            full.held_bytes += batch_bytes + sort_bytes;
            full.is_spilling |= full.held_bytes > self.budget.held_bytes;
            match full.is_spilling {
                true => std::mem::take(&mut full.held),
                false => return Ok(()),
            }
        };
        for batch in to_spill {
            let number = self.next_batch.fetch_add(1, Ordering::Relaxed);
            let spilled = spill(batch, self.stage, number)?;
            full().spilled.push(spilled);
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Whether work at this place is of no use any more. Blocks before a failure are still parsed:
    /// one of them may hold the first error.
    fn is_stopped_at(&self, place: SourcePosition) -> bool {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().is_some_and(|(failed, _)| *failed <= place)
    }

    /// Takes a wrong statement: skipped or fatal. It is described only if somebody is told: a file may have very many.
    fn syntax_error(&self, file: usize, describe: impl FnOnce() -> SyntaxError) -> AfterError {
        let is_skipped = self.options.skip_errors;
        if is_skipped && self.errors.fetch_add(1, Ordering::Relaxed) >= ERRORS_SHOWN_MAX {
            return AfterError::Skip;
        }
        let looks = self.looks[file].get();
        let error = SyntaxError {
            looks_like: looks.and_then(|looks| looks.instead_of(self.sources[file].format)),
            ..describe()
        };
        if is_skipped {
            self.progress.skipped(&error.to_string());
            return AfterError::Skip;
        }
        let line = error.line.unwrap_or(u64::MAX);
        self.fail((file, line), LoadError::Syntax(Box::new(error)));
        AfterError::Stop
    }

    /// Tells of statements that were left out; of too many sources only their number.
    fn note_left_out(&self, file: usize, left_out: &LeftOut) {
        self.left_out
            .fetch_add(left_out.statements, Ordering::Relaxed);
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            let warning = left_out.describe(&self.sources[file].name);
            self.progress.warned(&warning);
            warnings.push(warning);
        }
    }

    fn report_progress(&self, new_quads: u64) {
        let quads = self.quads.fetch_add(new_quads, Ordering::Relaxed) + new_quads;
        self.progress
            .advance(self.bytes_read.load(Ordering::Relaxed), quads);
    }
}

/// Reads one source after the other until all are taken.
fn read_sources(shared: &Shared<'_>, work: &Sender<ParseTask>, recycled: &Receiver<Vec<u8>>) {
    loop {
        let file = shared.next_source.fetch_add(1, Ordering::Relaxed);
        let Some(source) = shared.sources.get(file) else {
            return;
        };
        if let Err(error) = read_source(shared, file, source, work, recycled) {
            shared.fail((file, u64::MAX), error);
        }
        if shared.is_stopped() {
            return;
        }
    }
}

fn read_source(
    shared: &Shared<'_>,
    file: usize,
    source: &CheckedSource,
    work: &Sender<ParseTask>,
    recycled: &Receiver<Vec<u8>>,
) -> Result<(), LoadError> {
    let (input, looks) = source.open(&shared.bytes_read)?;
    if let Some(looks) = looks {
        // Each source is opened once.
        let _ = shared.looks[file].set(looks);
    }
    if !source.format.is_line_based() {
        // A send fails only if all workers are gone, and then a failure is noted already.
        let _ = work.send(ParseTask::Document { file, input });
        return Ok(());
    }
    let budget = &shared.budget;
    let line_bytes_max = shared.stage.large_literals().key_bytes_max();
    let mut blocks = BlockReader::new(input, budget.block_bytes, line_bytes_max);
    while !shared.is_stopped() {
        let next = blocks.next(recycled.try_recv().unwrap_or_default());
        let next = next.map_err(|error| LoadError::input(&source.name, error))?;
        let sent = match next {
            None => break,
            Some(Next::Block(block)) => work.send(ParseTask::Block { file, block }),
            Some(Next::LongLine { number }) => {
                match read_long_line(shared, file, &mut blocks, number)? {
                    Some(line) => work.send(ParseTask::LongLine { file, line }),
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
    file: usize,
    blocks: &mut BlockReader<R>,
    number: u64,
) -> Result<Option<LongLine>, LoadError> {
    let source = &shared.sources[file];
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
        shared.syntax_error(file, || SyntaxError {
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

/// Parses and interns.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    interner: Interner,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>) -> Self {
        Self {
            shared,
            interner: Interner::with_large_literals(
                shared.options.graph.as_deref(),
                shared.stage.large_literals(),
            ),
        }
    }

    /// Works until there is no more work, or a failure. Gives back the last batch.
    fn run(mut self, work: &Receiver<ParseTask>, recycle: &Sender<Vec<u8>>) -> Interner {
        while let Ok(work) = work.recv() {
            match work {
                ParseTask::Block { file, block } => {
                    if self.shared.is_stopped_at((file, block.first_line)) {
                        break;
                    }
                    self.block(file, &block);
                    // A reader that is gone needs no buffers.
                    let _ = recycle.send(block.into_buffer());
                }
                ParseTask::LongLine { file, line } => {
                    if self.shared.is_stopped_at((file, line.number)) {
                        break;
                    }
                    self.long_line(file, line);
                }
                ParseTask::Document { file, input } => {
                    if self.shared.is_stopped() {
                        break;
                    }
                    self.document(file, input);
                }
            }
        }
        self.note_named_graphs();
        self.interner
    }

    fn block(&mut self, file: usize, block: &Block) {
        let shared = self.shared;
        let source = &shared.sources[file];
        self.interner.set_file_number(file as u32);
        let before = self.interner.quad_count();
        let mut errors = 0;
        parse_block(
            block.text(),
            source.format == Format::NQuads,
            &mut self.interner,
            &mut |error| {
                errors += 1;
                let name = (&*source.name, source.format);
                let describe = || locate(name, block.text(), block.first_line, &error);
                shared.syntax_error(file, describe)
            },
        );
        self.end_lines((file, block.first_line), before, errors > 0);
    }

    fn long_line(&mut self, file: usize, line: LongLine) {
        let shared = self.shared;
        let source = &shared.sources[file];
        self.interner.set_file_number(file as u32);
        let before = self.interner.quad_count();
        let mut errors = 0;
        let is_cut = line.text.is_some();
        parse_block(
            &line.remains,
            source.format == Format::NQuads,
            &mut StagedSink::new(&mut self.interner, line.text),
            &mut |error| {
                errors += 1;
                let name = (&*source.name, source.format);
                shared.syntax_error(file, || {
                    let mut place = locate(name, &line.remains, line.number, &error);
                    if is_cut {
                        // It may stand behind the text.
                        place.column = None;
                        place.excerpt = None;
                    }
                    place
                })
            },
        );
        self.end_lines((file, line.number), before, errors > 0);
    }

    /// After lines were parsed, before which the batch had so many quads.
    fn end_lines(&mut self, place: SourcePosition, quads_before: u64, has_errors: bool) {
        if has_errors {
            self.interner.note_wrong_statement();
        }
        self.shared
            .report_progress(self.interner.quad_count() - quads_before);
        if let Err(error) = seal_if_full(self.shared, &mut self.interner) {
            self.shared.fail(place, error);
        }
    }

    fn document(&mut self, file: usize, input: Box<dyn Read + Send>) {
        let source = &self.shared.sources[file];
        self.interner.set_file_number(file as u32);
        let mut events = Events {
            shared: self.shared,
            file,
            unreported_quads: 0,
        };
        let result = parse_document(
            input,
            &source.name,
            (source.format, source.base_iri.as_deref()),
            self.shared.budget.statement_bytes,
            &mut self.interner,
            &mut events,
        );
        self.shared.report_progress(events.unreported_quads);
        let checked = self.interner.check().map_err(LoadError::from);
        match result.and(checked.map_err(Some)) {
            Ok(()) | Err(None) => {}
            Err(Some(error)) => self.shared.fail((file, u64::MAX), error),
        }
    }

    fn note_named_graphs(&self) {
        if self.interner.has_named_graphs() {
            self.shared.has_named_graphs.store(true, Ordering::Relaxed);
        }
    }
}

/// Sorts the batch if it has reached its size, and begins the next.
fn seal_if_full(shared: &Shared<'_>, interner: &mut Interner) -> Result<(), LoadError> {
    interner.check()?;
    let is_full = interner.memory_bytes() >= shared.budget.batch_bytes;
    if !is_full && !interner.has_too_many_terms() {
        return Ok(());
    }
    if interner.has_named_graphs() {
        shared.has_named_graphs.store(true, Ordering::Relaxed);
    }
    shared.take_full(seal(interner.take()))
}

/// What happens while a document is read. An error of `None` is noted already.
struct Events<'a> {
    shared: &'a Shared<'a>,
    file: usize,
    unreported_quads: u64,
}

impl DocumentEvents for Events<'_> {
    type Error = Option<LoadError>;

    fn quad_taken(&mut self, interner: &mut Interner) -> Result<(), Option<LoadError>> {
        self.unreported_quads += 1;
        if self.unreported_quads < DOCUMENT_CHECK_QUADS {
            return Ok(());
        }
        self.shared
            .report_progress(std::mem::take(&mut self.unreported_quads));
        if self.shared.is_stopped() {
            return Err(None);
        }
        seal_if_full(self.shared, interner).map_err(Some)
    }

    fn syntax_error(
        &mut self,
        describe: impl FnOnce() -> SyntaxError,
    ) -> Result<(), Option<LoadError>> {
        match self.shared.syntax_error(self.file, describe) {
            AfterError::Skip => Ok(()),
            AfterError::Stop => Err(None),
        }
    }

    fn input_error(&mut self, error: io::Error) -> Option<LoadError> {
        Some(LoadError::input(
            &self.shared.sources[self.file].name,
            error,
        ))
    }

    fn too_long(&mut self, statement: StatementTooLong) -> Option<LoadError> {
        Some(LoadError::StatementTooLong {
            name: self.shared.sources[self.file].name.to_string(),
            line: statement.line,
            bytes_max: statement.bytes_max,
        })
    }

    fn left_out(&mut self, left_out: LeftOut) {
        self.shared.note_left_out(self.file, &left_out);
    }
}

/// A parser's error with its place in the file, of which `text` is a part that begins with a line.
pub(crate) fn locate(
    (name, format): (&str, Format),
    text: &[u8],
    first_line: u64,
    error: &LineError,
) -> SyntaxError {
    let said = said(
        format,
        &error.message,
        Some(Surroundings::of(text, error.span.start)),
    );
    let start = error.span.start + said.shift;
    let before = &text[..start];
    let line_start = memrchr2(b'\n', b'\r', before).map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[line_start..])
        .chars()
        .count() as u64
        + 1;
    let mut message = said.message;
    if error.span.is_empty() && said.mend.is_none() {
        message.push_str(", found the end of the line");
    }
    let end = match said.shift {
        0 => error.span.end,
        _ => start + 1,
    };
    SyntaxError {
        line: Some(first_line + line_ends(before)),
        column: Some(column),
        text: clipped(&text[error.span.clone()]),
        mend: said.mend,
        option: said.option,
        excerpt: excerpt_of(text, start, end),
        ..SyntaxError::new(name, message)
    }
}
