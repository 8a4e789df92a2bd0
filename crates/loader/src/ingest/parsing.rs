//! The parsing threads of stage one and the state they share: from blocks and documents to batches.
//!
//! Whoever reads, be it a file here or the network, makes a [`ParseTask`] of it; a [`Parser`]
//! parses, interns into a batch of its own, and hands it to a [`BatchSink`] when it is full. So the
//! same threads work for a load here and, in another process, for one that is coordinated elsewhere
//! (`workers`).

use crate::LoadOptions;
use crate::error::{LoadError, SyntaxError, clipped};
use crate::excerpt::excerpt_of;
use crate::ingest::batch::{MemoryBatch, seal};
use crate::ingest::documents::{DocumentEvents, DocumentSyntax, StatementTooLong, parse_document};
use crate::ingest::interner::Interner;
use crate::ingest::long_line::LongLine;
use crate::ingest::stage_dir::StageDir;
use crate::ingest::staged_sink::StagedSink;
use crate::parse::iris::Iris;
use crate::parse::json_ld::LeftOut;
use crate::parse::mends::{Surroundings, said};
use crate::parse::ntriples::{AfterError, LineError, parse_block};
use crate::progress::Progress;
use crate::sources::blocks::{Block, line_ends};
use crate::sources::format::Format;
use crate::sources::parts::{InputPart, PartQueue};
use crate::sources::source::CheckedSource;
use crossbeam_channel::{Receiver, Sender};
use memchr::memrchr2;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first wrong statements are told one by one, the others only counted.
const ERRORS_SHOWN_MAX: u64 = 20;

/// So many warnings are kept and told.
const WARNINGS_MAX: usize = 20;

/// Quads of a document between two looks at memory and progress.
const DOCUMENT_CHECK_QUADS: u64 = 1 << 12;

/// Takes sorted batches, from several threads.
pub(crate) trait BatchSink: Sync {
    /// Takes one.
    fn take(&self, batch: MemoryBatch) -> Result<(), LoadError>;
}

/// What a parser does next; `part` is its place in [`Shared::parts`].
pub(crate) enum ParseTask {
    Block {
        part: usize,
        block: Block,
    },
    LongLine {
        part: usize,
        line: LongLine,
    },
    Document {
        part: usize,
        input: Box<dyn Read + Send>,
    },
}

/// Where a failure happened, by part and its line, so that the first one is told.
pub(crate) type SourcePosition = (usize, u64);

/// Sizes that bound the memory of parsers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserBounds {
    /// What a parser of a document may hold without making a statement of it.
    pub(crate) statement_bytes: usize,
    /// A batch that is filled.
    pub(crate) batch_bytes: usize,
}

/// What the threads share.
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a LoadOptions,
    pub(crate) parts: &'a [InputPart],
    pub(crate) queue: PartQueue,
    pub(crate) stage: &'a StageDir,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) sink: &'a dyn BatchSink,
    pub(crate) bounds: ParserBounds,
    pub(crate) bytes_read: Arc<AtomicU64>,
    /// Wrong statements that were left out are kept here, for another process to tell.
    pub(crate) kept_errors: Option<Mutex<Vec<(usize, SyntaxError)>>>,
    pub(crate) counts: ParseCounts,
    is_stopped: AtomicBool,
    failure: Mutex<Option<(SourcePosition, LoadError)>>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct ParseCounts {
    pub(crate) quads: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) left_out: AtomicU64,
    pub(crate) has_named_graphs: AtomicBool,
    pub(crate) warnings: Mutex<Vec<String>>,
    /// IRIs that were taken as they are written, and the first.
    odd_iris: Mutex<Option<(u64, String)>>,
}

impl<'a> Shared<'a> {
    /// Nothing is parsed yet.
    pub(crate) fn new(
        options: &'a LoadOptions,
        parts: &'a [InputPart],
        (stage, sink): (&'a StageDir, &'a dyn BatchSink),
        bounds: ParserBounds,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            options,
            parts,
            queue: PartQueue::new(parts),
            stage,
            progress,
            sink,
            bounds,
            bytes_read: Arc::default(),
            kept_errors: None,
            counts: ParseCounts::default(),
            is_stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Notes a failure and stops all threads. Of several, the first by place is kept.
    pub(crate) fn fail(&self, place: SourcePosition, error: LoadError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(other, _)| place < *other) {
            *failure = Some((place, error));
        }
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The failure, once all threads have ended.
    pub(crate) fn take_failure(&self) -> Option<(SourcePosition, LoadError)> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// Whether there was a failure.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Whether work at this place is of no use any more. Blocks before a failure are still parsed:
    /// one of them may hold the first error.
    pub(crate) fn is_stopped_at(&self, place: SourcePosition) -> bool {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().is_some_and(|(failed, _)| *failed <= place)
    }

    /// Takes a wrong statement: skipped or fatal. It is described only if somebody is told: a file
    /// may have very many.
    pub(crate) fn syntax_error(
        &self,
        part: usize,
        describe: impl FnOnce() -> SyntaxError,
    ) -> AfterError {
        let is_skipped = self.options.skip_errors;
        if is_skipped && self.counts.errors.fetch_add(1, Ordering::Relaxed) >= ERRORS_SHOWN_MAX {
            return AfterError::Skip;
        }
        let described = describe();
        let line_of_part = described.line.unwrap_or(u64::MAX);
        let of = &self.parts[part];
        let error = SyntaxError {
            line: described.line.and_then(|line| of.line_of_source(line)),
            looks_like: of
                .looks()
                .and_then(|looks| looks.instead_of(of.source.format)),
            ..described
        };
        if is_skipped {
            match &self.kept_errors {
                None => self.progress.skipped(&error.to_string()),
                Some(kept) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push((part, error));
                }
            }
            return AfterError::Skip;
        }
        self.fail((part, line_of_part), LoadError::Syntax(Box::new(error)));
        AfterError::Stop
    }

    /// Tells of statements that were left out; of too many sources only their number.
    fn note_left_out(&self, part: usize, left_out: &LeftOut) {
        self.note_warning(left_out.statements, || {
            left_out.describe(&self.parts[part].source.name)
        });
    }

    /// Counts statements that were left out, and tells why.
    pub(crate) fn note_warning(&self, left_out: u64, describe: impl FnOnce() -> String) {
        self.counts.left_out.fetch_add(left_out, Ordering::Relaxed);
        let warnings = self.counts.warnings.lock();
        let mut warnings = warnings.unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            let warning = describe();
            self.progress.warned(&warning);
            warnings.push(warning);
        }
    }

    /// Which IRIs are taken.
    fn iris(&self) -> Iris {
        match self.options.lenient_iris {
            true => Iris::AsWritten,
            false => Iris::Right,
        }
    }

    /// Counts IRIs that were taken though they are odd.
    fn note_odd_iris(&self, interner: &Interner) {
        if let Some((count, first)) = interner.odd_iris() {
            let odd = self.counts.odd_iris.lock();
            let mut odd = odd.unwrap_or_else(PoisonError::into_inner);
            odd.get_or_insert_with(|| (0, first.to_owned())).0 += count;
        }
    }

    /// Once all is parsed: what is said of IRIs that are odd.
    pub(crate) fn tell_odd_iris(&self) {
        let odd = self.counts.odd_iris.lock();
        let odd = odd.unwrap_or_else(PoisonError::into_inner).take();
        if let Some((count, first)) = odd {
            self.note_warning(0, || odd_iris_warning(count, &first));
        }
    }

    pub(crate) fn note_named_graphs(&self) {
        self.counts.has_named_graphs.store(true, Ordering::Relaxed);
    }

    pub(crate) fn report_progress(&self, new_quads: u64) {
        let quads = &self.counts.quads;
        let quads = quads.fetch_add(new_quads, Ordering::Relaxed) + new_quads;
        self.progress
            .advance(self.bytes_read.load(Ordering::Relaxed), quads);
        if self.progress.is_cancelled() {
            // Before any place, so that it is the failure that is reported.
            self.fail((0, 0), LoadError::Cancelled);
        }
    }
}

/// Parses and interns.
pub(crate) struct Parser<'a> {
    shared: &'a Shared<'a>,
    pub(crate) interner: Interner,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>) -> Self {
        let mut interner = Interner::with_large_literals(None, shared.stage.large_literals());
        interner.set_iris(shared.iris());
        Self { shared, interner }
    }

    /// Works until there is no more work, or a failure. Gives back the last batch.
    pub(crate) fn run(mut self, work: &Receiver<ParseTask>, recycle: &Sender<Vec<u8>>) -> Interner {
        while let Ok(work) = work.recv() {
            match work {
                ParseTask::Block { part, block } => {
                    if self.shared.is_stopped_at((part, block.first_line)) {
                        break;
                    }
                    self.block(part, &block);
                    // A reader that is gone needs no buffers.
                    let _ = recycle.send(block.into_buffer());
                }
                ParseTask::LongLine { part, line } => {
                    if self.shared.is_stopped_at((part, line.number)) {
                        break;
                    }
                    self.long_line(part, line);
                }
                ParseTask::Document { part, input } => {
                    if self.shared.is_stopped() {
                        break;
                    }
                    self.document(part, input);
                }
            }
        }
        self.note_named_graphs();
        self.shared.note_odd_iris(&self.interner);
        self.interner
    }

    /// What follows is of this part.
    fn begin(&mut self, part: usize) -> &'a CheckedSource {
        let InputPart {
            source,
            file_number,
            ..
        } = &self.shared.parts[part];
        self.interner.set_file_number(*file_number);
        self.interner.set_target_graph(source.graph.as_deref());
        source
    }

    pub(crate) fn block(&mut self, part: usize, block: &Block) {
        let shared = self.shared;
        let source = self.begin(part);
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
                shared.syntax_error(part, describe)
            },
        );
        self.end_lines((part, block.first_line), before, errors > 0);
    }

    pub(crate) fn long_line(&mut self, part: usize, line: LongLine) {
        let shared = self.shared;
        let source = self.begin(part);
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
                shared.syntax_error(part, || {
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
        self.end_lines((part, line.number), before, errors > 0);
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

    pub(crate) fn document(&mut self, part: usize, input: Box<dyn Read + Send>) {
        let source = self.begin(part);
        let mut events = Events {
            shared: self.shared,
            part,
            unreported_quads: 0,
        };
        let result = parse_document(
            input,
            &source.name,
            DocumentSyntax {
                format: source.format,
                base_iri: source.base_iri.as_deref(),
                statement_bytes_max: self.shared.bounds.statement_bytes,
                skips_errors: self.shared.options.skip_errors,
                iris: self.shared.iris(),
            },
            &mut self.interner,
            &mut events,
        );
        self.shared.report_progress(events.unreported_quads);
        let checked = self.interner.check().map_err(LoadError::from);
        match result.and(checked.map_err(Some)) {
            Ok(()) | Err(None) => {}
            Err(Some(error)) => self.shared.fail((part, u64::MAX), error),
        }
    }

    pub(crate) fn note_named_graphs(&self) {
        if self.interner.has_named_graphs() {
            self.shared.note_named_graphs();
        }
    }
}

/// Sorts the batch if it has reached its size, and begins the next.
fn seal_if_full(shared: &Shared<'_>, interner: &mut Interner) -> Result<(), LoadError> {
    interner.check()?;
    let is_full = interner.memory_bytes() >= shared.bounds.batch_bytes;
    if !is_full && !interner.has_too_many_terms() {
        return Ok(());
    }
    if interner.has_named_graphs() {
        shared.note_named_graphs();
    }
    shared.sink.take(seal(interner.take()))
}

/// What happens while a document is read. An error of `None` is noted already.
struct Events<'a> {
    shared: &'a Shared<'a>,
    part: usize,
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
        match self.shared.syntax_error(self.part, describe) {
            AfterError::Skip => Ok(()),
            AfterError::Stop => Err(None),
        }
    }

    fn input_error(&mut self, error: io::Error) -> Option<LoadError> {
        Some(LoadError::input(
            &self.shared.parts[self.part].source.name,
            error,
        ))
    }

    fn too_long(&mut self, statement: StatementTooLong) -> Option<LoadError> {
        Some(LoadError::StatementTooLong {
            name: self.shared.parts[self.part].source.name.to_string(),
            line: statement.line,
            bytes_max: statement.bytes_max,
        })
    }

    fn left_out(&mut self, left_out: LeftOut) {
        self.shared.note_left_out(self.part, &left_out);
    }

    fn left_out_from(&mut self, said: String) {
        self.shared.note_warning(0, || said);
    }

    fn fail(&mut self, error: SyntaxError) -> Option<LoadError> {
        Some(LoadError::Syntax(Box::new(SyntaxError {
            is_past_skipping: true,
            ..error
        })))
    }
}

/// What is said of IRIs that were taken as they are written.
fn odd_iris_warning(count: u64, first: &str) -> String {
    let first = clipped(first.as_bytes());
    match count {
        1 => format!("1 IRI was taken as it is written, which RFC 3987 does not allow: <{first}>"),
        more => format!(
            "{more} IRIs were taken as they are written, which RFC 3987 does not allow, such as <{first}>"
        ),
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
