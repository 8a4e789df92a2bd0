//! From batches of ids to batches of terms.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::stream::{self, BoxStream, StreamExt};
use orrery_operators::context::QueryContext;
use orrery_term::{Term, TermId};

use super::{SolutionBatch, UNBOUND};
use crate::error::QueryError;

/// Ids of a query, coming in batches.
pub(crate) type IdStream = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Shorter texts are not looked at one by one: a batch of them is part of the query's working set.
const LONG_TEXT_BYTES: usize = 1 << 20;
/// How often a text is there while it is written: as a term, escaped for the format, and on its way to the client.
const COPIES_OF_TEXT: usize = 3;

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

    /// The terms of ids that are sorted and distinct, in their order.
    pub(crate) fn terms(&self, ids: &[TermId]) -> Result<Vec<Term<'static>>, QueryError> {
        let mut terms = Vec::with_capacity(ids.len());
        let mut long_texts: Option<MemoryReservation> = None;
        let mut refused = None;
        let tags = self.context.language_tags();
        self.context.terms(ids, |_, term| {
            let bytes = text_bytes(&term);
            if bytes > LONG_TEXT_BYTES && refused.is_none() {
                let consumer = || MemoryConsumer::new("long literals of the answer");
                let texts = long_texts.get_or_insert_with(|| consumer().register(&self.pool));
                refused = texts.try_grow(COPIES_OF_TEXT * bytes).err();
            }
            if refused.is_none() {
                terms.push(tags.in_term(term.into_owned()));
            }
        })?;
        if let Some(error) = refused {
            return Err(QueryError::from_datafusion(error, self.limit_bytes));
        }
        debug_assert_eq!(terms.len(), ids.len());
        Ok(terms)
    }

    /// The solutions of a batch; `columns` says which column each variable has, if any.
    fn batch(
        &self,
        batch: &RecordBatch,
        columns: &[Option<usize>],
    ) -> Result<SolutionBatch, QueryError> {
        let rows = batch.num_rows();
        let (ids, numbers) = number_cells(batch, columns);
        let terms = self.terms(&ids)?;
        Ok(SolutionBatch::new(rows, numbers, terms))
    }
}

/// The distinct ids of some columns, ascending, and for each cell the number of its id among them. Cells are sorted with
/// their places: to look up each cell's id among the distinct ones would be a binary search a cell.
fn number_cells(batch: &RecordBatch, columns: &[Option<usize>]) -> (Vec<TermId>, Vec<Vec<u32>>) {
    let rows = batch.num_rows();
    let mut numbers = vec![vec![UNBOUND; rows]; columns.len()];
    let mut cells: Vec<(u64, u32, u32)> = Vec::with_capacity(rows * columns.len());
    for (variable, at) in (0..).zip(columns) {
        let Some(at) = at else { continue };
        let column = batch.column(*at).as_primitive::<UInt64Type>();
        let bound = (0..).zip(column).filter_map(|(row, id)| Some((id?, row)));
        cells.extend(bound.map(|(id, row)| (id, variable, row)));
    }
    cells.sort_unstable();
    let mut ids: Vec<TermId> = Vec::new();
    for (bits, variable, row) in cells {
        let id = TermId::from_bits(bits);
        if ids.last() != Some(&id) {
            ids.push(id);
        }
        let number = u32::try_from(ids.len() - 1).unwrap_or(UNBOUND);
        numbers[variable as usize][row as usize] = number;
    }
    (ids, numbers)
}

/// The place of an id among sorted ids that contain it.
pub(crate) fn number_of(ids: &[TermId], id: TermId) -> u32 {
    let at = ids.binary_search(&id).unwrap_or_else(|at| at);
    u32::try_from(at).unwrap_or(UNBOUND)
}

/// Decodes a stream of ids; after an error nothing follows.
///
/// Terms can be long, so a batch is decoded in slices: fewer rows where the last slice was large, more
/// where it was small.
pub(crate) fn solutions(
    ids: IdStream,
    decoder: Decoder,
    columns: Vec<Option<usize>>,
) -> BoxStream<'static, Result<SolutionBatch, QueryError>> {
    let state = Slices {
        ids,
        decoder,
        columns,
        batch: None,
        rows_per_slice: SliceRows::start(),
    };
    stream::unfold(state, |mut state| async move {
        let slice = state.next().await?;
        Some((slice, state))
    })
    .boxed()
}

/// Rows of the first slice, before it is known how long the terms are.
const SLICE_ROWS_START: usize = 1_024;
/// Most rows of a slice, and fewest.
const SLICE_ROWS_MAX: usize = 8_192;
const SLICE_ROWS_MIN: usize = 64;
/// Text of a slice beyond which the next one has fewer rows.
const SLICE_BYTES_MAX: usize = 2 << 20;

/// A stream of batches, given out in slices.
struct Slices {
    ids: IdStream,
    decoder: Decoder,
    columns: Vec<Option<usize>>,
    /// What is left of the last batch.
    batch: Option<RecordBatch>,
    rows_per_slice: SliceRows,
}

impl Slices {
    async fn next(&mut self) -> Option<Result<SolutionBatch, QueryError>> {
        let batch = loop {
            match self.batch.take() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                Some(_) | None => match self.ids.next().await? {
                    Ok(batch) => self.batch = Some(batch),
                    Err(error) => return Some(Err(error)),
                },
            }
        };
        let rows = batch.num_rows().min(self.rows_per_slice.rows());
        let slice = self.decoder.batch(&batch.slice(0, rows), &self.columns);
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        if let Ok(slice) = &slice {
            self.rows_per_slice.adapt(slice.terms());
        }
        Some(slice)
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

    /// Takes fewer rows if the last ones, with these terms, had much text, and more if they had little.
    pub(super) fn adapt(&mut self, terms: &[Term<'_>]) {
        let bytes: usize = terms.iter().map(text_bytes).sum();
        if bytes > SLICE_BYTES_MAX {
            self.0 = SLICE_ROWS_MIN.max(self.0 / 2);
        } else if bytes < SLICE_BYTES_MAX / 4 {
            self.0 = SLICE_ROWS_MAX.min(self.0 * 2);
        }
    }
}

/// About the bytes of a term.
fn text_bytes(term: &Term<'_>) -> usize {
    let text = match term {
        Term::Iri(iri) => iri.len(),
        Term::Literal(literal) => literal.lexical.len(),
        Term::BlankNode(_) | Term::Triple(_) => 0,
    };
    size_of::<Term<'static>>() + text
}
