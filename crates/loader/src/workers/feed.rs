//! The coordinator's side of parsing: a thread per worker that sends shares and receives batches.
//!
//! ```text
//! parts of files that the member can open --\
//! blocks and documents from the queue -------> request -> answer: batches -> where those of our own parsers go; end: counts
//! ```
//!
//! A request from the queue is gathered until it is worth the way; two feeders for each member let
//! one gather while the other's request is parsed. Batches that come are joined until they are half
//! as large as our own, lest they be many (`join`). What cannot travel (long lines, whose literals
//! stand in files here, and documents longer than a request) the feeder parses itself.

use super::batch_codec::{BatchReader, ReadError};
use super::join::Pool;
use super::members::{LoadWorkers, Member, begin_request, failure_of, wrong_answer};
use super::messages::{Failure, ParseEnd, ParseRequest, Piece, PieceInput, Task};
use super::wire::{FRAME_BYTES, Kind, Packing};
use crate::error::{LoadError, SyntaxError};
use crate::ingest::interner::Interner;
use crate::ingest::parsing::{ParseTask, Parser, Shared};
use crate::parse::ntriples::TermSink;
use crate::sources::blocks::Block;
use crate::sources::parts::{PartInput, Pick};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Threads for each member.
pub(crate) const FEEDERS_PER_MEMBER: usize = 2;

/// How long a request that is not full waits for more.
const GATHER_WAIT: Duration = Duration::from_millis(100);

/// All parts are given out in some so many requests for each thread that parses, so that all end at
/// about the same time.
const REQUESTS_EACH: u64 = 4;

/// Files of a request at most.
const PIECES_MAX: usize = 256;

/// A batch may be so many times as large as was asked for, for it is looked at block by block, and
/// not larger than this besides.
const BATCH_GROWTH: usize = 4;
const BATCH_BYTES_BESIDES: usize = 64 << 20;

/// How much is sent at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedSizes {
    request_bytes: usize,
    /// Bytes of the parts of a request.
    group_bytes: u64,
}

impl FeedSizes {
    /// For all parts, with so many parsers here.
    pub(crate) fn new(workers: &LoadWorkers, shared: &Shared<'_>, parsers: usize) -> Self {
        let all: u64 = shared.parts.iter().filter_map(|part| part.bytes()).sum();
        let requests = REQUESTS_EACH * (parsers + workers.members.len()) as u64;
        let request_bytes_max = (shared.bounds.batch_bytes / 2).max(1);
        Self {
            request_bytes: workers.pieces.request_bytes.clamp(1, request_bytes_max),
            group_bytes: (all / requests).clamp(1, workers.pieces.part_bytes.max(1)),
        }
    }
}

/// Lets one member parse.
pub(crate) struct Feeder<'a> {
    shared: &'a Shared<'a>,
    member: &'a Member,
    sizes: FeedSizes,
    /// For what the member does not do, and for the tags and prefixes that it tells.
    parser: Parser<'a>,
    /// Its batches, until they are worth a run.
    pool: Pool,
}

/// Text from the queue on its way to a member.
enum Gathered {
    Block { part: usize, block: Block },
    Document { part: usize, text: Vec<u8> },
}

impl Gathered {
    fn part(&self) -> usize {
        match self {
            Self::Block { part, .. } | Self::Document { part, .. } => *part,
        }
    }

    fn text(&self) -> &[u8] {
        match self {
            Self::Block { block, .. } => block.text(),
            Self::Document { text, .. } => text,
        }
    }

    fn input(&self) -> PieceInput {
        let bytes = self.text().len() as u64;
        match self {
            Self::Block { block, .. } => PieceInput::Lines {
                first_line: block.first_line,
                bytes,
            },
            Self::Document { .. } => PieceInput::Document { bytes },
        }
    }
}

/// Why there is no answer.
enum Trouble {
    /// The member or the way to it failed.
    Member(io::Error),
    /// The member says that it cannot.
    Unable(String),
    /// The load failed, which is noted, or is to be noted.
    Load(Option<LoadError>),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Member(error)
    }
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(what) => Self::Member(wrong_answer(what)),
            ReadError::Stage(error) => Self::Load(Some(error.into())),
        }
    }
}

impl<'a> Feeder<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>, member: &'a Member, sizes: FeedSizes) -> Self {
        Self {
            shared,
            member,
            sizes,
            parser: Parser::new(shared),
            pool: Pool::default(),
        }
    }

    /// Works until there is nothing to parse any more, the member is given up, or the load failed.
    pub(crate) fn run(mut self, work: &Receiver<ParseTask>, recycle: &Sender<Vec<u8>>) -> Interner {
        while self.is_of_use() && self.member.reads_files() {
            let parts = self.take_parts();
            if parts.is_empty() {
                break;
            }
            self.let_read(&parts);
        }
        let mut is_ended = false;
        while self.is_of_use() && !is_ended {
            let mut gathered;
            (gathered, is_ended) = self.gather(work);
            gathered.sort_by(|one, other| self.graph(one.part()).cmp(&self.graph(other.part())));
            let mut rest = gathered.as_slice();
            while let Some(first) = rest.first() {
                // A request has one graph.
                let graph = self.graph(first.part());
                let count = rest.partition_point(|it| self.graph(it.part()) == graph);
                let (request, others) = rest.split_at(count);
                self.let_parse(request);
                rest = others;
            }
            for piece in gathered {
                if let Gathered::Block { block, .. } = piece {
                    // A reader that is gone needs no buffers.
                    let _ = recycle.send(block.into_buffer());
                }
            }
        }
        if let Some(batch) = self.pool.take()
            && let Err(error) = self.shared.sink.take(batch)
        {
            self.fail(0, Some(error));
        }
        self.parser.note_named_graphs();
        self.parser.interner
    }

    /// The graph of a part's statements that name none.
    fn graph(&self, part: usize) -> Option<&'a str> {
        self.shared.parts[part].source.graph.as_deref()
    }

    fn is_of_use(&self) -> bool {
        !self.member.is_given_up() && !self.shared.is_stopped()
    }

    /// Parts of files that the member may read.
    fn take_parts(&self) -> Vec<usize> {
        let (mut bytes, mut pieces) = (0, 0);
        let mut graph = None;
        self.shared.queue.take_away(|part| {
            let part = &self.shared.parts[part];
            let path = part.source.path().and_then(Path::to_str);
            let Some(length) = part.bytes().filter(|_| path.is_some()) else {
                return Pick::Leave;
            };
            if bytes >= self.sizes.group_bytes || pieces == PIECES_MAX {
                return Pick::Enough;
            }
            // A request has one graph.
            if *graph.get_or_insert(&part.source.graph) != &part.source.graph {
                return Pick::Leave;
            }
            bytes += length;
            pieces += 1;
            Pick::Take
        })
    }

    /// Lets the member read and parse these parts.
    fn let_read(&mut self, parts: &[usize]) {
        let pieces = parts.iter().map(|&part| {
            let of = &self.shared.parts[part];
            let input = PieceInput::File {
                path: of.source.path().unwrap_or(Path::new("")).to_owned(),
                bytes: of.source.bytes.unwrap_or_default(),
                range: match &of.input {
                    PartInput::Range(range) => Some((range.start, range.end)),
                    PartInput::Whole | PartInput::Given => None,
                },
            };
            self.piece(part, input)
        });
        let request = self.request(parts, pieces.collect(), std::iter::empty());
        let answer = request
            .map_err(Trouble::from)
            .and_then(|request| self.converse(request, parts));
        match answer {
            Ok(end) => {
                self.accept(end, parts);
                let bytes = parts
                    .iter()
                    .filter_map(|&part| self.shared.parts[part].bytes());
                self.shared
                    .bytes_read
                    .fetch_add(bytes.sum(), Ordering::Relaxed);
                self.shared.queue.end(parts.len());
            }
            Err(Trouble::Member(error)) => {
                self.member.note_failure(&error);
                self.shared.queue.give_back(parts);
            }
            Err(Trouble::Unable(why)) => {
                self.member.note_unreadable(&why);
                self.shared.queue.give_back(parts);
            }
            Err(Trouble::Load(error)) => {
                self.fail(parts[0], error);
                self.shared.queue.end(parts.len());
            }
        }
    }

    fn fail(&self, part: usize, error: Option<LoadError>) {
        if let Some(error) = error {
            self.shared.fail((part, u64::MAX), error);
        }
    }

    /// Gathers a request from the queue, and whether that is at its end.
    fn gather(&mut self, work: &Receiver<ParseTask>) -> (Vec<Gathered>, bool) {
        let mut gathered: Vec<Gathered> = Vec::new();
        let mut bytes = 0;
        while bytes < self.sizes.request_bytes && self.is_of_use() {
            match work.recv_timeout(GATHER_WAIT) {
                Ok(ParseTask::Block { part, block }) => {
                    bytes += block.text().len();
                    gathered.push(Gathered::Block { part, block });
                }
                Ok(ParseTask::LongLine { part, line }) => {
                    if !self.shared.is_stopped_at((part, line.number)) {
                        self.parser.long_line(part, line);
                    }
                }
                Ok(ParseTask::Document { part, input }) => {
                    if let Some(text) = self.document(part, input) {
                        bytes += text.len();
                        gathered.push(Gathered::Document { part, text });
                    }
                }
                Err(RecvTimeoutError::Timeout) if gathered.is_empty() => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return (gathered, true),
            }
        }
        (gathered, false)
    }

    /// The text of a document, if it can be sent; else it is parsed here.
    fn document(&mut self, part: usize, mut input: Box<dyn Read + Send>) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let limit = self.sizes.request_bytes as u64;
        match input.by_ref().take(limit).read_to_end(&mut text) {
            Ok(length) if (length as u64) < limit => return Some(text),
            Ok(_) => self
                .parser
                .document(part, Box::new(Cursor::new(text).chain(input))),
            Err(error) => {
                let name = &self.shared.parts[part].source.name;
                self.fail(part, Some(LoadError::input(name, error)));
            }
        }
        None
    }

    /// Lets the member parse these texts; if it fails, they are parsed here.
    fn let_parse(&mut self, gathered: &[Gathered]) {
        let parts: Vec<usize> = gathered.iter().map(Gathered::part).collect();
        let pieces = gathered
            .iter()
            .map(|gathered| self.piece(gathered.part(), gathered.input()));
        let texts = gathered.iter().map(Gathered::text);
        let request = self.request(&parts, pieces.collect(), texts);
        // It may have been given up while this was gathered.
        if !self.member.is_given_up() {
            let answer = request
                .map_err(Trouble::from)
                .and_then(|request| self.converse(request, &parts));
            let error = match answer {
                Ok(end) => return self.accept(end, &parts),
                Err(Trouble::Load(error)) => return self.fail(parts[0], error),
                Err(Trouble::Member(error)) => error,
                Err(Trouble::Unable(why)) => io::Error::other(why),
            };
            self.member.note_failure(&error);
        }
        for piece in gathered {
            match piece {
                Gathered::Block { part, block } => {
                    if !self.shared.is_stopped_at((*part, block.first_line)) {
                        self.parser.block(*part, block);
                    }
                }
                Gathered::Document { part, text } => {
                    if !self.shared.is_stopped() {
                        let text = Cursor::new(text.clone());
                        self.parser.document(*part, Box::new(text));
                    }
                }
            }
        }
    }

    fn piece(&self, part: usize, input: PieceInput) -> Piece {
        let of = &self.shared.parts[part];
        Piece {
            file_number: of.file_number,
            name: of.source.name.to_string(),
            format: of.source.format.short_name().to_owned(),
            base_iri: of.source.base_iri.clone(),
            input,
        }
    }

    /// The bytes of a request about these parts, which have the same graph.
    fn request<'t>(
        &self,
        parts: &[usize],
        pieces: Vec<Piece>,
        texts: impl Iterator<Item = &'t [u8]>,
    ) -> io::Result<Vec<u8>> {
        let options = self.shared.options;
        let mut request = begin_request(&Task::Parse(ParseRequest {
            graph: parts
                .first()
                .and_then(|&part| self.graph(part))
                .map(str::to_owned),
            skip_errors: options.skip_errors,
            lenient_iris: options.lenient_iris,
            literal_bytes_max: options.literal_bytes_max,
            statement_bytes: self.shared.bounds.statement_bytes,
            batch_bytes: self.shared.bounds.batch_bytes,
            pieces,
        }))?;
        for piece in texts.flat_map(|text| text.chunks(FRAME_BYTES)) {
            request.frame(Kind::Text, piece, Packing::Zstd)?;
        }
        Ok(request.into_inner())
    }

    /// Sends a request about these parts and takes the batches of its answer. Gives its end.
    fn converse(&mut self, request: Vec<u8>, parts: &[usize]) -> Result<ParseEnd, Trouble> {
        let shared = self.shared;
        let first = parts.iter().min().copied().unwrap_or_default();
        let bytes_max = shared.bounds.batch_bytes * BATCH_GROWTH + BATCH_BYTES_BESIDES;
        let mut frames = self.member.ask(request)?;
        let mut batch: Option<BatchReader<'_>> = None;
        loop {
            if shared.is_stopped_at((first, 0)) {
                return Err(Trouble::Load(None));
            }
            let (kind, bytes) = frames.next()?;
            match (kind, &mut batch) {
                (Kind::Failed, _) => return Err(self.failed(failure_of(bytes)?, parts)),
                (Kind::Batch, None) => {
                    batch = Some(BatchReader::new(bytes, shared.stage.large_literals())?);
                }
                (Kind::End, None) => {
                    let end = serde_json::from_slice(bytes).map_err(io::Error::from)?;
                    self.member.note_answered();
                    return checked(end, parts.len());
                }
                (kind, Some(reader)) => {
                    if let Some(ended) = reader.frame(kind, bytes)? {
                        batch = None;
                        if let Some(full) = self.pool.push(ended, shared.bounds.batch_bytes / 2) {
                            let taken = shared.sink.take(full);
                            taken.map_err(|error| Trouble::Load(Some(error)))?;
                        }
                    } else if reader.memory_bytes() > bytes_max {
                        return Err(wrong_answer("a batch is larger than was asked for").into());
                    }
                }
                (_, None) => return Err(wrong_answer("a frame is not in a batch").into()),
            }
        }
    }

    /// What the member's failure means.
    fn failed(&self, failure: Failure, parts: &[usize]) -> Trouble {
        let shared = self.shared;
        match failure {
            Failure::Unable(why) => Trouble::Unable(why),
            Failure::Syntax(told) => {
                let Some(&part) = parts.get(told.piece) else {
                    return wrong_answer("an error is of none of the pieces").into();
                };
                let error = told.into_error(&shared.parts[part].source.name);
                match shared.options.skip_errors {
                    // It is one that cannot be.
                    true => {
                        let error = SyntaxError {
                            is_past_skipping: true,
                            ..error
                        };
                        let line = error.line.unwrap_or(u64::MAX);
                        shared.fail((part, line), LoadError::Syntax(Box::new(error)));
                    }
                    false => {
                        shared.syntax_error(part, || error);
                    }
                }
                Trouble::Load(None)
            }
            Failure::TooLong {
                piece,
                line,
                bytes_max,
            } => {
                let Some(&part) = parts.get(piece) else {
                    return wrong_answer("an error is of none of the pieces").into();
                };
                let name = shared.parts[part].source.name.to_string();
                let error = LoadError::StatementTooLong {
                    name,
                    line,
                    bytes_max,
                };
                shared.fail((part, u64::MAX), error);
                Trouble::Load(None)
            }
        }
    }

    /// Takes what is told at the end of an answer about these parts.
    fn accept(&mut self, end: ParseEnd, parts: &[usize]) {
        let shared = self.shared;
        let untold = end.errors.saturating_sub(end.told.len() as u64);
        shared.counts.errors.fetch_add(untold, Ordering::Relaxed);
        for told in end.told {
            let part = parts[told.piece];
            let name = &shared.parts[part].source.name;
            shared.syntax_error(part, || told.into_error(name));
        }
        let mut warnings = end.warnings.into_iter();
        if end.left_out > 0 {
            shared.note_warning(end.left_out, || warnings.next().unwrap_or_default());
        }
        warnings.for_each(|warning| shared.note_warning(0, || warning));
        if end.has_named_graphs {
            shared.note_named_graphs();
        }
        for tag in &end.language_tags {
            self.parser.interner.language_tag(tag);
        }
        for (file, name, iri) in &end.prefixes {
            self.parser.interner.note_prefix(*file, name, iri);
        }
        shared.report_progress(end.quads);
    }
}

/// An end whose errors are of the pieces that there were.
fn checked(end: ParseEnd, pieces: usize) -> Result<ParseEnd, Trouble> {
    match end.told.iter().all(|told| told.piece < pieces) {
        true => Ok(end),
        false => Err(wrong_answer("an error is of none of the pieces").into()),
    }
}
