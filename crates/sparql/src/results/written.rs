//! Solutions written as bytes of a format, without terms in between.
//!
//! ```text
//! slice of ids -> numbered -> each different id decoded and written once -> rows put together of what was written
//!        \___________ slices of long answers on several threads, given out in their order ___________/
//! ```
//!
//! Where terms come again in later slices, in no order, they are kept written ([`Keeping`]).
//!
//! What a term looks like in a format does not depend on where it stands, and putting rows together
//! is copying. So nothing is kept of a term but its bytes: no text of its own for each, which is
//! most of the time of an export otherwise.
//!
//! The first slices are written where the stream is polled, and so are all of small answers, of
//! rows with long texts, and while the engine has more queries than threads. Of other answers up to
//! [`SLICES_AHEAD_MAX`] slices are written at a time, as tasks of the runtime, if it has several
//! threads: the first of them in place of the query's own thread, which waits for it, each further
//! one if a thread is free. A stream that is dropped ends its tasks. Rows that are large together,
//! for they repeat a long text, are put together piece by piece, when they are asked for.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use futures::stream::{Stream, StreamExt};
use orrery_runtime::Busy;
use orrery_term::Term;
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

use super::SolutionStream;
use super::batch::UNBOUND;
use super::decode::{DecodeError, Decoder, Slices};
use super::kept_terms::Keeping;
use super::numbering::Numbering;
use crate::error::QueryError;

/// Slices that are written at a time, at most: each has some megabytes at worst.
const SLICES_AHEAD_MAX: usize = 4;
/// What is kept of the memory that the terms of a slice took, at most.
const ROOM_BYTES_MAX: usize = 4 << 20;
/// Rows whose cells have more bytes are put together one piece after the other, as they are sent.
const TOGETHER_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 4 << 20 };
/// Slices with fewer rows are written at once.
const ROWS_AHEAD_MIN: usize = if cfg!(test) { 64 } else { 2_048 };

/// The terms of the rows of a piece: much larger ones would be memory that the system clears anew
/// for each.
const PIECE_BYTES: usize = 56 << 10;

/// A format's writer of solutions.
pub trait SolutionWriter: Send + Sync {
    /// Appends a term, as it stands in any row and under any variable.
    fn write_term(&self, term: &Term<'_>, out: &mut Vec<u8>);

    /// About the bytes of a row of so many columns beside its terms.
    fn row_bytes(&self, columns: usize) -> usize {
        columns
    }

    /// Appends some rows, which begin the answer or follow others.
    fn write_rows(
        &self,
        cells: &WrittenCells,
        rows: Range<usize>,
        is_first: bool,
        out: &mut Vec<u8>,
    );
}

/// Rows of written terms.
#[derive(Debug, Default)]
pub struct WrittenCells {
    /// Per variable, per row: the number of the term, or [`UNBOUND`].
    columns: Vec<Vec<u32>>,
    /// The terms, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Per variable: its terms, if they are not among those.
    kept: Vec<Keeping>,
}

impl WrittenCells {
    /// Number of variables.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// A variable's term in a row, if it is bound.
    ///
    /// # Panics
    /// If `row` or `column` is out of bounds.
    #[inline]
    pub fn cell(&self, row: usize, column: usize) -> Option<&[u8]> {
        match self.columns[column][row] {
            UNBOUND => None,
            number => Some(self.term(number, column)),
        }
    }

    /// Bytes of the cells of some rows together.
    ///
    /// # Panics
    /// If the rows are out of bounds.
    pub fn cell_bytes(&self, rows: Range<usize>) -> usize {
        let of_rows = |(place, column): (usize, &Vec<u32>)| -> usize {
            let numbers = column[rows.clone()].iter();
            let bound = numbers.filter(|number| **number != UNBOUND);
            bound.map(|number| self.term(*number, place).len()).sum()
        };
        self.columns.iter().enumerate().map(of_rows).sum()
    }

    #[inline]
    fn term(&self, number: u32, column: usize) -> &[u8] {
        if let Some(kept) = self.kept.get(column).and_then(Keeping::terms) {
            return kept.term(number);
        }
        let number = number as usize;
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1],
        };
        &self.bytes[start..self.ends[number]]
    }
}

/// Some solutions, written.
pub struct WrittenRows {
    rows: usize,
    ready: VecDeque<Vec<u8>>,
    /// What is put together when it is asked for.
    rest: Option<Pieces>,
    /// Bytes of the different terms.
    term_bytes: usize,
}

impl WrittenRows {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The next of what they are in the format, about 64 KiB or one row; `None` at the end.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        let ready = self.ready.pop_front();
        ready.or_else(|| self.rest.as_mut()?.next())
    }
}

/// Rows of written terms as pieces of the answer.
struct Pieces {
    cells: WrittenCells,
    writer: Arc<dyn SolutionWriter>,
    /// Whether the rows begin the answer.
    is_first: bool,
    rows: Range<usize>,
    rows_per_piece: usize,
    /// What a piece takes in the mean, with some room.
    bytes_per_piece: usize,
}

impl Iterator for Pieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.rows.is_empty() {
            return None;
        }
        let end = self.rows.end.min(self.rows.start + self.rows_per_piece);
        let part = self.rows.start..end;
        let is_first = self.is_first && part.start == 0;
        self.rows.start = end;
        let mut bytes = Vec::with_capacity(self.bytes_per_piece);
        self.writer
            .write_rows(&self.cells, part, is_first, &mut bytes);
        Some(bytes)
    }
}

/// The solutions of a `SELECT`, written; see the module's documentation.
pub struct WrittenStream {
    slices: Slices,
    writer: Arc<dyn SolutionWriter>,
    /// Whether a slice was taken.
    is_begun: bool,
    /// Whether there are no more slices.
    is_ended: bool,
    under_way: VecDeque<Task>,
    /// A slice that is to be written here, after those under way.
    held: Option<RecordBatch>,
    /// What comes after them.
    error: Option<QueryError>,
    room: Arc<WritingRoom>,
}

/// Where slices were written, for the next ones: no more than are written at a time.
#[derive(Default)]
struct WritingRoom(Mutex<Vec<WrittenCells>>);

impl WritingRoom {
    fn take(&self) -> WrittenCells {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Keeps the room, without what a long text took and nobody else will need.
    fn give_back(&self, mut cells: WrittenCells) {
        if cells.bytes.capacity() > ROOM_BYTES_MAX {
            cells.bytes = Vec::new();
        }
        let rows = cells.columns.first().map_or(0, Vec::len);
        for kept in &mut cells.kept {
            kept.look_back(rows);
        }
        cells.bytes.clear();
        cells.ends.clear();
        cells.columns.clear();
        self.0.lock().push(cells);
    }
}

impl SolutionStream {
    /// The solutions from here on, as bytes of a format.
    pub fn written(self, writer: Arc<dyn SolutionWriter>) -> WrittenStream {
        WrittenStream {
            slices: self.slices,
            writer,
            is_begun: false,
            is_ended: false,
            under_way: VecDeque::new(),
            held: None,
            error: None,
            room: Arc::default(),
        }
    }
}

impl Stream for WrittenStream {
    /// After an error nothing follows.
    type Item = Result<WrittenRows, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let error = match ready!(this.poll_written(cx)) {
                None => return Poll::Ready(None),
                Some(Ok(written)) => {
                    this.slices.rows_per_slice.adapt(written.term_bytes);
                    return Poll::Ready(Some(Ok(written)));
                }
                Some(Err(Unwritten::TooMuchAtOnce { slice, is_first })) => {
                    this.slices.halve(&slice);
                    this.is_begun = !is_first;
                    continue;
                }
                Some(Err(Unwritten::Failed(error))) => error,
            };
            this.is_ended = true;
            this.slices.end();
            this.under_way.clear();
            (this.held, this.error) = (None, None);
            return Poll::Ready(Some(Err(error)));
        }
    }
}

impl WrittenStream {
    /// What comes of the next slice, or why nothing does. Parts of one that was too much come
    /// before those under way.
    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<WrittenRows, Unwritten>>> {
        if let Some(part) = self.slices.next_part() {
            return Poll::Ready(Some(self.work(part).run()));
        }
        while !self.is_ended && self.held.is_none() && self.under_way.len() < SLICES_AHEAD_MAX {
            match self.slices.poll_next(cx) {
                Poll::Ready(Some(Ok(slice))) => self.take(slice),
                Poll::Ready(Some(Err(error))) => {
                    self.error = Some(error);
                    self.is_ended = true;
                }
                Poll::Ready(None) => self.is_ended = true,
                Poll::Pending => break,
            }
        }
        if let Some(task) = self.under_way.front_mut() {
            let written = ready!(Pin::new(task).poll(cx));
            self.under_way.pop_front();
            Poll::Ready(Some(written))
        } else if let Some(slice) = self.held.take() {
            Poll::Ready(Some(self.work(slice).run()))
        } else if let Some(error) = self.error.take() {
            Poll::Ready(Some(Err(Unwritten::Failed(error))))
        } else if self.is_ended {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }

    /// The next rows; `None` at the end. After an error nothing follows.
    pub async fn next(&mut self) -> Option<Result<WrittenRows, QueryError>> {
        StreamExt::next(self).await
    }

    /// Begins to write a slice on another thread, or keeps it.
    fn take(&mut self, slice: RecordBatch) {
        match self.place_for(&slice) {
            Some((runtime, thread)) => {
                let work = self.work(slice);
                let task = runtime.spawn(async move {
                    let _until_it_ends = thread;
                    work.run()
                });
                self.under_way.push_back(Task(task));
            }
            None => self.held = Some(slice),
        }
    }

    /// Where a slice is written by a task, if it is, and the thread that is counted for it.
    fn place_for(&self, slice: &RecordBatch) -> Option<(Handle, Option<Busy>)> {
        let workers = self.slices.decoder.context().workers();
        let may_go_ahead = self.is_begun
            && slice.num_rows() >= ROWS_AHEAD_MIN
            && workers.threads() > 1
            && !workers.is_crowded();
        let runtime = may_go_ahead.then(Handle::try_current)?.ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        match self.under_way.is_empty() {
            true => Some((runtime, None)),
            false => Some((runtime, Some(workers.try_extra()?))),
        }
    }

    fn work(&mut self, slice: RecordBatch) -> Work {
        Work {
            decoder: self.slices.decoder.clone(),
            columns: Arc::clone(&self.slices.columns),
            writer: Arc::clone(&self.writer),
            room: Arc::clone(&self.room),
            slice,
            is_first: !std::mem::replace(&mut self.is_begun, true),
        }
    }
}

/// A slice that is to be written.
struct Work {
    decoder: Decoder,
    columns: Arc<[Option<usize>]>,
    writer: Arc<dyn SolutionWriter>,
    room: Arc<WritingRoom>,
    slice: RecordBatch,
    is_first: bool,
}

/// Why a slice was not written.
enum Unwritten {
    /// Its terms are too much at once.
    TooMuchAtOnce { slice: RecordBatch, is_first: bool },
    /// The answer ends.
    Failed(QueryError),
}

impl Work {
    fn run(self) -> Result<WrittenRows, Unwritten> {
        let rows = self.slice.num_rows();
        let mut cells = self.room.take();
        let term_bytes = match self.write_terms(&mut cells) {
            Ok(term_bytes) => term_bytes,
            Err(DecodeError::TooMuchAtOnce) => {
                self.room.give_back(cells);
                let (slice, is_first) = (self.slice, self.is_first);
                return Err(Unwritten::TooMuchAtOnce { slice, is_first });
            }
            Err(DecodeError::Failed(error)) => return Err(Unwritten::Failed(error)),
        };
        let cell_bytes = cells.cell_bytes(0..rows);
        let count = cell_bytes.div_ceil(PIECE_BYTES).max(1);
        let rows_per_piece = rows.div_ceil(count).max(1);
        let beside = rows_per_piece * self.writer.row_bytes(self.columns.len());
        let mut pieces = Pieces {
            cells,
            writer: self.writer,
            is_first: self.is_first,
            rows: 0..rows,
            rows_per_piece,
            bytes_per_piece: cell_bytes / count * 9 / 8 + beside,
        };
        let mut written = WrittenRows {
            rows,
            ready: VecDeque::new(),
            rest: None,
            term_bytes,
        };
        if cell_bytes > TOGETHER_BYTES_MAX {
            written.rest = Some(pieces);
        } else {
            written.ready.extend(&mut pieces);
            self.room.give_back(pieces.cells);
        }
        Ok(written)
    }
}

impl Work {
    /// Writes the terms of the slice; how many bytes they took.
    fn write_terms(&self, cells: &mut WrittenCells) -> Result<usize, DecodeError> {
        let rows = self.slice.num_rows();
        cells.kept.resize_with(self.columns.len(), Keeping::default);
        // Those that are kept are numbered by themselves.
        let alone = |(column, kept): (&Option<usize>, &Keeping)| match kept.terms() {
            Some(_) => None,
            None => *column,
        };
        let alone: Vec<Option<usize>> = self.columns.iter().zip(&cells.kept).map(alone).collect();
        let mut numbering = Numbering::of(&self.slice, &alone);
        cells.ends.reserve(numbering.len());
        for ids in &numbering.ids {
            self.decoder.for_each_term(ids, rows, |term| {
                self.writer.write_term(&term, &mut cells.bytes);
                cells.ends.push(cells.bytes.len());
            })?;
        }
        cells.columns = std::mem::take(&mut numbering.columns);
        let mut term_bytes = cells.bytes.len();
        for (place, kept) in cells.kept.iter_mut().enumerate() {
            let Some(column) = self.columns[place] else {
                continue;
            };
            let ids = self.slice.column(column).as_primitive::<UInt64Type>();
            if let Keeping::Kept(terms) = kept {
                let added = terms.add(
                    ids,
                    |term, out| self.writer.write_term(term, out),
                    |ids, found| self.decoder.for_each_term(ids, rows, found),
                    &mut cells.columns[place],
                );
                if added.is_err() {
                    // Of some of them there are numbers and no bytes.
                    *kept = Keeping::GivenUp;
                }
                term_bytes += added?;
            } else if rows >= ROWS_AHEAD_MIN
                && let Some(different) = numbering.different(&alone, place)
            {
                kept.decide(ids, different, self.decoder.pool());
            }
        }
        Ok(term_bytes)
    }
}

/// A slice that is being written; no more when this is dropped.
struct Task(JoinHandle<Result<WrittenRows, Unwritten>>);

impl Future for Task {
    type Output = Result<WrittenRows, Unwritten>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(written) => Poll::Ready(written),
            // As if it had panicked here.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {
                let given_up = QueryError::internal("a part of the answer was given up");
                Poll::Ready(Err(Unwritten::Failed(given_up)))
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
