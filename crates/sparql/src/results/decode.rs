//! The decoding of batches of ids to batches of terms.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::stream::{BoxStream, StreamExt};
use orrery_operators::context::QueryContext;
use orrery_term::{Term, TermId};

use super::batch::{SolutionBatch, UNBOUND};
use super::numbering::Numbering;
use crate::error::QueryError;

/// Ids of a query, coming in batches.
pub(crate) type IdStream = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Shorter texts are not looked at one by one: a batch of them is part of the query's working set.
const LONG_TEXT_BYTES: usize = 1 << 20;
/// How often a text is there while it is written: as a term, escaped for the format, and on its way
/// to the client.
const COPIES_OF_TEXT: usize = 3;

/// Texts of so many bytes are not decoded together where fewer rows at a time are possible.
const AT_ONCE_BYTES_MAX: usize = 4 * SLICE_BYTES_MAX;

/// Why ids were not decoded.
pub(super) enum DecodeError {
    /// Their texts are more than [`AT_ONCE_BYTES_MAX`]: fewer rows are to be decoded at a time.
    TooMuchAtOnce,
    /// The query ends.
    Failed(QueryError),
}

impl From<QueryError> for DecodeError {
    fn from(error: QueryError) -> Self {
        Self::Failed(error)
    }
}

/// Reads the terms of ids.
#[derive(Clone)]
pub(crate) struct Decoder {
    context: Arc<QueryContext>,
    pool: Arc<dyn MemoryPool>,
    limit_bytes: u64,
}

impl Decoder {
    /// Long literals are copied only if `pool` has room for them.
    pub(crate) fn new(
        context: Arc<QueryContext>,
        pool: &Arc<dyn MemoryPool>,
        limit_bytes: u64,
    ) -> Self {
        Self {
            context,
            pool: Arc::clone(pool),
            limit_bytes,
        }
    }

    pub(crate) fn context(&self) -> &Arc<QueryContext> {
        &self.context
    }

    /// Where memory is reserved that answers take.
    pub(super) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// The terms of ids of so many rows, which are sorted and distinct, in their order.
    pub(super) fn terms(
        &self,
        ids: &[TermId],
        rows: usize,
    ) -> Result<Vec<Term<'static>>, DecodeError> {
        let mut terms = Vec::with_capacity(ids.len());
        self.for_each_term(ids, rows, |term| terms.push(term.into_owned()))?;
        debug_assert_eq!(terms.len(), ids.len());
        Ok(terms)
    }

    /// Calls `found` with the term of each id of so many rows, as it is to be shown, in the order
    /// of the ids, which are sorted and distinct.
    pub(super) fn for_each_term(
        &self,
        ids: &[TermId],
        rows: usize,
        mut found: impl FnMut(Term<'_>),
    ) -> Result<(), DecodeError> {
        let mut long_texts: Option<MemoryReservation> = None;
        let mut refused = None;
        let mut all_bytes = 0;
        let is_too_much = |bytes: usize| rows > 1 && bytes > AT_ONCE_BYTES_MAX;
        let tags = self.context.language_tags();
        let read = self.context.terms(ids, |_, term| {
            let bytes = text_bytes(&term);
            all_bytes += bytes;
            if is_too_much(all_bytes) {
                return;
            }
            if bytes > LONG_TEXT_BYTES && refused.is_none() {
                let consumer = || MemoryConsumer::new("long literals of the answer");
                let texts = long_texts.get_or_insert_with(|| consumer().register(&self.pool));
                refused = texts.try_grow(COPIES_OF_TEXT * bytes).err();
            }
            if refused.is_none() {
                found(tags.in_term(term));
            }
        });
        read.map_err(QueryError::from)?;
        match refused {
            _ if is_too_much(all_bytes) => Err(DecodeError::TooMuchAtOnce),
            Some(error) => Err(QueryError::from_datafusion(error, self.limit_bytes).into()),
            None => Ok(()),
        }
    }

    /// The solutions of a batch; `columns` says which column each variable has, if any.
    pub(super) fn batch(
        &self,
        batch: &RecordBatch,
        columns: &[Option<usize>],
    ) -> Result<SolutionBatch, DecodeError> {
        let rows = batch.num_rows();
        let numbering = Numbering::of(batch, columns);
        let mut terms = Vec::with_capacity(numbering.len());
        for ids in &numbering.ids {
            self.for_each_term(ids, rows, |term| terms.push(term.into_owned()))?;
        }
        Ok(SolutionBatch::new(rows, numbering.columns, terms))
    }
}

/// The place of an id among sorted ids that contain it.
pub(crate) fn number_of(ids: &[TermId], id: TermId) -> u32 {
    let at = ids.binary_search(&id).unwrap_or_else(|at| at);
    u32::try_from(at).unwrap_or(UNBOUND)
}

/// Rows of the first slice, before it is known how long the terms are.
const SLICE_ROWS_START: usize = 1_024;
/// Most rows of a slice.
const SLICE_ROWS_MAX: usize = 8_192;
/// Text of a slice beyond which the next one has fewer rows.
const SLICE_BYTES_MAX: usize = 2 << 20;

/// A stream of batches of ids, given out in slices.
///
/// Terms can be long, so a batch is decoded in slices: fewer rows where the last slice was large,
/// more where it was small.
pub(super) struct Slices {
    ids: IdStream,
    pub(super) decoder: Decoder,
    /// The column of each variable, if it has one.
    pub(super) columns: Arc<[Option<usize>]>,
    /// What is left of the last batch.
    batch: Option<RecordBatch>,
    /// Parts of slices that were too much to be decoded at once, in their order; they come before
    /// all others.
    parts: VecDeque<RecordBatch>,
    /// Nothing follows any more: after the end, or an error.
    is_ended: bool,
    /// How many rows may still come, and how many could in all, if that is bounded.
    room: Option<Room>,
    pub(super) rows_per_slice: SliceRows,
}

impl Slices {
    pub(super) fn new(ids: IdStream, decoder: Decoder, columns: &[Option<usize>]) -> Self {
        Self {
            ids,
            decoder,
            columns: columns.into(),
            batch: None,
            parts: VecDeque::new(),
            is_ended: false,
            room: None,
            rows_per_slice: SliceRows::start(),
        }
    }

    /// Ends with [`QueryError::TooManyRows`] where there are more rows.
    pub(super) fn limit(&mut self, rows_max: u64) {
        self.room = Some(Room::of(rows_max));
    }

    /// The next slice, which has rows, after those of which there are parts; after an error or the
    /// end nothing follows.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch, QueryError>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let batch = loop {
            if let Some(batch) = self.batch.take_if(|batch| batch.num_rows() > 0) {
                break batch;
            }
            match ready!(Pin::new(&mut self.ids).poll_next_unpin(cx)) {
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(error)) => {
                    self.end();
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.end();
                    return Poll::Ready(None);
                }
            }
        };
        let mut rows = batch.num_rows().min(self.rows_per_slice.rows());
        if let Some(room) = &mut self.room {
            match room.take(rows) {
                Ok(taken) => rows = taken,
                Err(error) => {
                    self.end();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        let terms = rows * self.columns.len();
        self.decoder.context().note_touches(terms as u64);
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Poll::Ready(Some(Ok(batch.slice(0, rows))))
    }

    /// The terms of the next slice; after an error nothing follows.
    pub(super) fn poll_decoded(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<SolutionBatch, QueryError>>> {
        loop {
            let slice = match self.next_part() {
                Some(part) => part,
                None => match ready!(self.poll_next(cx)) {
                    Some(Ok(slice)) => slice,
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => return Poll::Ready(None),
                },
            };
            let decoded = match self.decoder.batch(&slice, &self.columns) {
                Ok(decoded) => Ok(decoded),
                Err(DecodeError::TooMuchAtOnce) => {
                    self.halve(&slice);
                    continue;
                }
                Err(DecodeError::Failed(error)) => Err(error),
            };
            match &decoded {
                Ok(decoded) => self.rows_per_slice.adapt_to(decoded.terms()),
                Err(_) => self.end(),
            }
            return Poll::Ready(Some(decoded));
        }
    }

    /// The next part of a slice that was too much, if there is one.
    pub(super) fn next_part(&mut self) -> Option<RecordBatch> {
        self.parts.pop_front()
    }

    /// Puts a slice back that is too much to be decoded at once: its halves come next.
    pub(super) fn halve(&mut self, slice: &RecordBatch) {
        let rows = slice.num_rows();
        let half = rows.div_ceil(2);
        self.parts.push_front(slice.slice(half, rows - half));
        self.parts.push_front(slice.slice(0, half));
        self.rows_per_slice.adapt(AT_ONCE_BYTES_MAX);
    }

    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.batch = None;
        self.parts.clear();
    }
}

/// How many rows an answer may still have.
#[derive(Clone, Copy)]
pub(super) struct Room {
    left: u64,
    rows_max: u64,
}

impl Room {
    pub(super) fn of(rows_max: u64) -> Self {
        Self {
            left: rows_max,
            rows_max,
        }
    }

    /// Takes room for as many of some rows as there is.
    ///
    /// # Errors
    /// When there is none for any of them.
    pub(super) fn take(&mut self, rows: usize) -> Result<usize, QueryError> {
        if self.left == 0 && rows > 0 {
            let rows_max = self.rows_max;
            return Err(QueryError::TooManyRows { rows_max });
        }
        let taken = usize::try_from(self.left).map_or(rows, |left| rows.min(left));
        self.left -= taken as u64;
        Ok(taken)
    }
}

/// How many rows are decoded at a time.
pub(super) struct SliceRows(usize);

impl SliceRows {
    pub(super) fn start() -> Self {
        Self(SLICE_ROWS_START)
    }

    pub(super) fn rows(&self) -> usize {
        self.0
    }

    /// So many rows were too much at once.
    pub(super) fn halve(&mut self, rows: usize) {
        self.0 = rows.div_ceil(2);
    }

    /// Takes fewer rows if the last ones, with these terms, had much text, and more if they had
    /// little.
    pub(super) fn adapt_to(&mut self, terms: &[Term<'_>]) {
        self.adapt(terms.iter().map(text_bytes).sum());
    }

    /// The same by the bytes of the terms of the last rows.
    pub(super) fn adapt(&mut self, bytes: usize) {
        if bytes > SLICE_BYTES_MAX {
            self.0 = (self.0 / 2).max(1);
        } else if bytes < SLICE_BYTES_MAX / 4 {
            self.0 = SLICE_ROWS_MAX.min(self.0 * 2);
        }
    }
}

/// About the bytes of a term.
fn text_bytes(term: &Term<'_>) -> usize {
    size_of::<Term<'static>>() + term.text_bytes()
}
