//! `CONSTRUCT`: triples, or quads, from solutions and a template.
//!
//! Triples are made of ids; duplicates are dropped by a set of ids over the whole answer (24 bytes
//! a triple, counted against the memory pool), unless there can be none; terms are decoded for some
//! of them at a time, as many as their texts allow ([`Found`]).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::future::Either;
use futures::stream::{self, BoxStream};
use orrery_operators::context::QueryContext;
use orrery_term::TermId;

use super::TripleBatch;
use super::decode::{DecodeError, Decoder, IdStream, SliceRows, number_of};
use super::template::Template;
use crate::error::QueryError;

/// What a triple costs in the set of those that were given.
const TRIPLE_BYTES: usize = 48;

/// So many triples are made at a time, or those of one solution.
const MADE_AT_ONCE: usize = 1 << 16;

/// Triples given so far.
struct Given<const N: usize> {
    triples: HashSet<[TermId; N]>,
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl<const N: usize> Given<N> {
    fn new(pool: &Arc<dyn MemoryPool>, limit_bytes: u64) -> Self {
        Self {
            triples: HashSet::new(),
            reservation: MemoryConsumer::new("triples of the answer").register(pool),
            limit_bytes,
        }
    }

    /// Keeps the triples that are new.
    fn retain_new(&mut self, triples: &mut Vec<[TermId; N]>) -> Result<(), QueryError> {
        triples.retain(|triple| self.triples.insert(*triple));
        self.reservation
            .try_grow(triples.len() * (TRIPLE_BYTES * N / 3))
            .map_err(|error| QueryError::from_datafusion(error, self.limit_bytes))
    }
}

/// Triples or quads that were found and are still to be given out, as many at a time as their texts
/// allow.
pub(super) struct Found<const N: usize> {
    left: VecDeque<[TermId; N]>,
    rows: SliceRows,
}

impl<const N: usize> Default for Found<N> {
    fn default() -> Self {
        Self {
            left: VecDeque::new(),
            rows: SliceRows::start(),
        }
    }
}

impl<const N: usize> Found<N> {
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// How many are to be found at a time.
    pub(super) fn rows(&self) -> usize {
        self.rows.rows()
    }

    pub(super) fn add(&mut self, found: Vec<[TermId; N]>) {
        match self.left.is_empty() {
            true => self.left = found.into(),
            false => self.left.extend(found),
        }
    }

    /// The next of them with their terms; none if nothing is left.
    pub(super) fn next(&mut self, decoder: &Decoder) -> Result<Option<TripleBatch>, QueryError> {
        loop {
            let count = self.left.len().min(self.rows.rows());
            if count == 0 {
                return Ok(None);
            }
            let next = &self.left.make_contiguous()[..count];
            match decoded(decoder, next) {
                Ok(batch) => {
                    self.left.drain(..count);
                    self.rows.adapt_to(&batch.terms);
                    return Ok(Some(batch));
                }
                Err(DecodeError::TooMuchAtOnce) => self.rows.halve(count),
                Err(DecodeError::Failed(error)) => return Err(error),
            }
        }
    }
}

/// Triples of ids, or quads, with their terms.
fn decoded<const N: usize>(
    decoder: &Decoder,
    found: &[[TermId; N]],
) -> Result<TripleBatch, DecodeError> {
    let mut ids: Vec<TermId> = found.as_flattened().to_vec();
    ids.retain(|id| *id != TermId::DEFAULT_GRAPH);
    let touches = ids.len() as u64;
    ids.sort_unstable();
    ids.dedup();
    let terms = decoder.terms(&ids, found.len())?;
    decoder.context().note_touches(touches);
    let number = |id| number_of(&ids, id);
    let triples = found.iter().map(|row| [row[0], row[1], row[2]].map(number));
    let triples = TripleBatch::new(triples.collect(), terms);
    if N == 3 {
        return Ok(triples);
    }
    let graphs = found.iter().map(|row| match row[N - 1] {
        TermId::DEFAULT_GRAPH => None,
        graph => Some(number(graph)),
    });
    Ok(triples.of_graphs(graphs.collect()))
}

/// The triples of a template for each solution, or its quads. `gives_each_once` says that none
/// comes twice.
pub(crate) fn construct(
    ids: IdStream,
    decoder: Decoder,
    (template, gives_each_once): (Template, bool),
    pool: &Arc<dyn MemoryPool>,
    limit_bytes: u64,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    let rows = (MADE_AT_ONCE / template.len().max(1)).max(1);
    let batches = in_parts(ids, rows);
    if template.has_graphs() {
        let given = (!gives_each_once).then(|| Given::<4>::new(pool, limit_bytes));
        let make = move |batch: &_, context: &_| template.quads(batch, context);
        return constructed(batches, decoder, make, given);
    }
    let given = (!gives_each_once).then(|| Given::<3>::new(pool, limit_bytes));
    let make = move |batch: &_, context: &_| template.instances(batch, context);
    constructed(batches, decoder, make, given)
}

/// Batches of so many rows at most.
fn in_parts(ids: IdStream, rows: usize) -> IdStream {
    ids.flat_map(move |batch| match batch {
        Err(error) => Either::Left(stream::iter([Err(error)])),
        Ok(batch) => {
            let starts = (0..batch.num_rows()).step_by(rows);
            Either::Right(stream::iter(starts.map(move |start| {
                let count = rows.min(batch.num_rows() - start);
                Ok(batch.slice(start, count))
            })))
        }
    })
    .boxed()
}

/// What `make` makes of each batch, as far as it was not given yet.
fn constructed<const N: usize>(
    batches: IdStream,
    decoder: Decoder,
    make: impl Fn(&RecordBatch, &QueryContext) -> Result<Vec<[TermId; N]>, QueryError> + Send + 'static,
    given: Option<Given<N>>,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    let start = (batches, decoder, make, given, Found::default());
    stream::try_unfold(start, |mut state| async move {
        let (batches, decoder, make, given, found) = &mut state;
        loop {
            if let Some(batch) = found.next(decoder)? {
                return Ok(Some((batch, state)));
            }
            let Some(batch) = batches.next().await.transpose()? else {
                return Ok(None);
            };
            let mut made = make(&batch, decoder.context())?;
            if let Some(given) = given {
                given.retain_new(&mut made)?;
            }
            found.add(made);
        }
    })
    .boxed()
}
