//! The worker's side: serves requests and writes answers.
//!
//! A request stands for itself: nothing is kept from one to the next, so any worker can do any of
//! them, again if need be. Parsing goes the way of a load here (`ingest`), but batches that are
//! full go out instead of being kept; what does not fit into memory is staged in a directory of the
//! worker's own.

use super::batch_codec::{WriteError, write_batch};
use super::join::Pool;
use super::messages::{
    Failure, ParseEnd, ParseRequest, Piece, PieceInput, SortEnd, SortRequest, Task, ToldError,
};
use super::row_codec::{read_rows, write_sorted};
use super::wire::{FrameReader, FrameWriter, Kind, Packing};
use crate::LoadOptions;
use crate::error::LoadError;
use crate::ingest::batch::{MemoryBatch, seal};
use crate::ingest::large_literals::LargeLiterals;
use crate::ingest::parsing::{BatchSink, ParseTask, ParserBounds, Shared};
use crate::ingest::stage::{Threads, parse_parts};
use crate::ingest::stage_dir::StageDir;
use crate::merge::row_packing::PackedRow;
use crate::progress::SilentProgress;
use crate::sources::blocks::Block;
use crate::sources::parts::{InputPart, PartInput};
use crate::sources::source::{CheckedSource, Source};
use orrery_storage::io::FileSystem;
use orrery_term::LanguageTags;
use std::io::{self, Cursor, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The resources of a worker.
#[derive(Debug, Clone)]
pub struct WorkerPlace {
    /// Where sources are opened and files are staged.
    pub files: Arc<dyn FileSystem>,
    /// A directory for files that end with a request; no other process may use it. It is created if
    /// it is not there.
    pub directory: PathBuf,
    /// Memory for one request, beside the request itself; as for a load,
    /// [`MEMORY_BYTES_MIN`](crate::MEMORY_BYTES_MIN) or more.
    pub memory_bytes: u64,
    /// Threads for one request.
    pub threads: usize,
}

/// Serves a request of a load's coordinator, from
/// [`LoadWorker::request`](super::LoadWorker::request). The answer goes to `out` as it comes; a
/// failure is told there as well, so the error is for the log only. Ends early if `out` fails.
pub fn answer_load_request(
    request: &[u8],
    place: &WorkerPlace,
    out: &mut (dyn Write + Send),
) -> Result<(), LoadError> {
    let out = FrameWriter::new(out).map_err(LoadError::WorkerAnswer)?;
    let out = Mutex::new(out);
    let done = answer(request, place, &out);
    let mut out = out.into_inner().unwrap_or_else(PoisonError::into_inner);
    let result = match done {
        Ok(()) => Ok(()),
        Err(failed) => {
            let told = json(&failed.failure)
                .and_then(|json| out.frame(Kind::Failed, &json, Packing::Zstd));
            // Who does not hear it finds the answer cut off.
            if let Err(error) = told {
                tracing::debug!(%error, "a load's coordinator does not hear of a failure");
            }
            Err(failed.error)
        }
    };
    out.flush().map_err(LoadError::WorkerAnswer)?;
    result
}

/// The answer, as all threads write it.
type Answer<'o> = Mutex<FrameWriter<&'o mut (dyn Write + Send)>>;

/// What went wrong, for the coordinator and for the log.
struct Failed {
    failure: Failure,
    error: LoadError,
}

impl From<LoadError> for Box<Failed> {
    fn from(error: LoadError) -> Self {
        Self::new(Failed {
            failure: Failure::Unable(error.to_string()),
            error,
        })
    }
}

/// A request that is none.
fn unreadable(error: io::Error) -> LoadError {
    LoadError::WorkerRequest(error)
}

fn damaged(what: &'static str) -> LoadError {
    unreadable(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn json(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

fn answer(request: &[u8], place: &WorkerPlace, out: &Answer<'_>) -> Result<(), Box<Failed>> {
    let mut frames = FrameReader::new(request).map_err(unreadable)?;
    let (kind, bytes) = frames.next().map_err(unreadable)?;
    if kind != Kind::Task {
        return Err(damaged("it does not begin with a task").into());
    }
    let task = serde_json::from_slice(bytes).map_err(|error| unreadable(error.into()))?;
    match task {
        Task::Parse(task) => parse(task, frames, place, out),
        Task::Sort(task) => {
            let sorted = match task.row_bytes {
                1..=8 => sort::<u64>(task, frames, place, out),
                9..=16 => sort::<u128>(task, frames, place, out),
                _ => Err(damaged("rows have no such length")),
            };
            Ok(sorted?)
        }
    }
}

fn end(out: &Answer<'_>, end: &impl serde::Serialize) -> Result<(), LoadError> {
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    let written = json(end).and_then(|json| out.frame(Kind::End, &json, Packing::Zstd));
    written.map_err(LoadError::WorkerAnswer)
}

/// Sends batches.
struct BatchesOut<'a, 'o> {
    out: &'a Answer<'o>,
    large: &'a LargeLiterals,
}

impl BatchSink for BatchesOut<'_, '_> {
    fn take(&self, batch: MemoryBatch) -> Result<(), LoadError> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        write_batch(&batch, self.large, &mut out).map_err(|error| match error {
            WriteError::Wire(error) => LoadError::WorkerAnswer(error),
            WriteError::Stage(error) => error.into(),
        })
    }
}

fn parse(
    request: ParseRequest,
    frames: FrameReader<&[u8]>,
    place: &WorkerPlace,
    out: &Answer<'_>,
) -> Result<(), Box<Failed>> {
    let options = LoadOptions {
        // At the end the threads' batches are joined, and stand there twice.
        memory_bytes: place.memory_bytes / 2,
        threads: place.threads,
        format: None,
        skip_errors: request.skip_errors,
        lenient_iris: request.lenient_iris,
        base_iri: None,
        literal_bytes_max: request.literal_bytes_max,
        ..LoadOptions::default()
    };
    let graph = request.graph.map(Into::into);
    let (parts, given) = pieces(request.pieces, graph, frames, place)?;
    let stage = StageDir::create_beside_others(
        Arc::clone(&place.files),
        &place.directory,
        options.literal_bytes_max,
    );
    let stage = stage.map_err(LoadError::from)?;
    let threads = Threads::new(&options, parts.len(), 0);
    let ours = threads.budget.bounds;
    let bounds = ParserBounds {
        statement_bytes: ours.statement_bytes.min(request.statement_bytes),
        batch_bytes: ours.batch_bytes.min(request.batch_bytes),
    };
    let sink = BatchesOut {
        out,
        large: stage.large_literals(),
    };
    let mut shared = Shared::new(&options, &parts, (&stage, &sink), bounds, &SilentProgress);
    shared.kept_errors = Some(Mutex::default());
    let open = parse_parts(&shared, threads, given, None);
    shared.tell_odd_iris();
    if let Some(((part, _), error)) = shared.take_failure() {
        return Err(failed(part, error, request.statement_bytes));
    }
    let mut told = ParseEnd::default();
    let mut tags = LanguageTags::default();
    let mut pool = Pool::default();
    for mut interner in open {
        tags.note_all(interner.language_tags());
        let prefixes = interner.prefixes();
        told.prefixes
            .extend(prefixes.map(|(file, name, iri)| (file, name.to_owned(), iri.to_owned())));
        interner.check().map_err(LoadError::from)?;
        if interner.quad_count() == 0 {
            continue;
        }
        if let Some(batch) = pool.push(seal(interner.take()), bounds.batch_bytes) {
            sink.take(batch)?;
        }
    }
    if let Some(batch) = pool.take() {
        sink.take(batch)?;
    }
    // The same request has the same answer, whichever thread parsed what.
    told.prefixes.sort_unstable();
    told.language_tags = tags.iter().map(str::to_owned).collect();
    let counts = &shared.counts;
    told.quads = counts.quads.load(Ordering::Relaxed);
    told.errors = counts.errors.load(Ordering::Relaxed);
    told.left_out = counts.left_out.load(Ordering::Relaxed);
    told.has_named_graphs = counts.has_named_graphs.load(Ordering::Relaxed);
    let warnings = counts.warnings.lock();
    told.warnings = warnings.unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(kept) = &shared.kept_errors {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.drain(..);
        told.told = kept
            .map(|(part, error)| ToldError::of(part, error))
            .collect();
    }
    Ok(end(out, &told)?)
}

/// What the coordinator hears of a failure.
fn failed(piece: usize, error: LoadError, statement_bytes: usize) -> Box<Failed> {
    match error {
        LoadError::Syntax(error) => Box::new(Failed {
            failure: Failure::Syntax(ToldError::of(piece, (*error).clone())),
            error: LoadError::Syntax(error),
        }),
        // With less memory than the coordinator has, it says nothing about the statement.
        LoadError::StatementTooLong {
            line, bytes_max, ..
        } if bytes_max >= statement_bytes => Box::new(Failed {
            failure: Failure::TooLong {
                piece,
                line,
                bytes_max,
            },
            error,
        }),
        error => error.into(),
    }
}

/// The parts that the pieces are, and what is to be done with texts that came along.
fn pieces(
    pieces: Vec<Piece>,
    graph: Option<Arc<str>>,
    mut frames: FrameReader<&[u8]>,
    place: &WorkerPlace,
) -> Result<(Vec<InputPart>, Vec<ParseTask>), LoadError> {
    let mut parts = Vec::with_capacity(pieces.len());
    let mut given = Vec::new();
    let mut text = |bytes: u64| {
        let mut text = Vec::new();
        while (text.len() as u64) < bytes {
            let (kind, piece) = frames.next().map_err(unreadable)?;
            if kind != Kind::Text || piece.is_empty() {
                return Err(damaged("a text is missing"));
            }
            text.extend_from_slice(piece);
        }
        match text.len() as u64 == bytes {
            true => Ok(text),
            false => Err(damaged("a text is longer than it says")),
        }
    };
    for (part, piece) in pieces.into_iter().enumerate() {
        let format = piece.format.parse();
        let format = format.map_err(|_| damaged("a format is unknown"))?;
        let (source, bytes, input) = match piece.input {
            PieceInput::File { path, bytes, range } => {
                let metadata = place.files.metadata(&path)?;
                if metadata.is_none_or(|found| !found.is_file || found.bytes != bytes) {
                    return Err(LoadError::NoSuchFile { path });
                }
                let input = match range {
                    None => PartInput::Whole,
                    Some((start, end)) if start <= end => PartInput::Range(start..end),
                    Some(_) => return Err(damaged("a range ends before it begins")),
                };
                (Source::File(path), Some(bytes), input)
            }
            PieceInput::Lines { first_line, bytes } => {
                let block = Block::of_lines(first_line, text(bytes)?);
                given.push(ParseTask::Block { part, block });
                (Source::Stdin, None, PartInput::Given)
            }
            PieceInput::Document { bytes } => {
                let input = Box::new(Cursor::new(text(bytes)?));
                given.push(ParseTask::Document { part, input });
                (Source::Stdin, None, PartInput::Given)
            }
        };
        let named = (piece.name.into(), format);
        let iris = (piece.base_iri, graph.clone());
        let source = CheckedSource::told(source, &place.files, named, iris, bytes);
        parts.push(InputPart::of_others(source, piece.file_number, input));
    }
    Ok((parts, given))
}

fn sort<R: PackedRow>(
    task: SortRequest,
    mut frames: FrameReader<&[u8]>,
    place: &WorkerPlace,
    out: &Answer<'_>,
) -> Result<(), LoadError> {
    let needed = task.rows.saturating_mul(size_of::<R>() as u64);
    let count = usize::try_from(task.rows).ok();
    let Some(count) = count.filter(|_| needed <= place.memory_bytes) else {
        return Err(damaged("it has more rows than this worker may hold"));
    };
    let mut rows: Vec<R> = Vec::with_capacity(count);
    while rows.len() < count {
        let (kind, bytes) = frames.next().map_err(unreadable)?;
        let read = (kind == Kind::Rows && !bytes.is_empty())
            .then(|| read_rows(bytes, task.row_bytes, &mut rows))
            .flatten();
        read.ok_or_else(|| damaged("rows cannot be read"))?;
    }
    if rows.len() > count {
        return Err(damaged("it has more rows than it says"));
    }
    rows.sort_unstable();
    rows.dedup();
    {
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        write_sorted(&rows, &mut out).map_err(LoadError::WorkerAnswer)?;
    }
    end(
        out,
        &SortEnd {
            rows: rows.len() as u64,
        },
    )
}
