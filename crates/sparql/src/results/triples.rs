//! `CONSTRUCT`: triples, or quads, from solutions and a template.
//!
//! Triples are made of ids; duplicates are dropped by a set of ids over the whole answer (24 bytes
//! a triple, counted against the memory pool), unless there can be none; terms are decoded per batch.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::stream::BoxStream;
use orrery_term::TermId;

use super::TripleBatch;
use super::decode::{Decoder, IdStream, number_of};
use super::template::Template;
use crate::error::QueryError;

/// What a triple costs in the set of those that were given.
const TRIPLE_BYTES: usize = 48;

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

/// Triples of ids with their terms.
pub(super) fn decoded(
    decoder: &Decoder,
    triples: &[[TermId; 3]],
) -> Result<TripleBatch, QueryError> {
    let terms = triples.as_flattened().len();
    decoder.context().note_touches(terms as u64);
    let mut ids: Vec<TermId> = triples.iter().flatten().copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let terms = decoder.terms(&ids)?;
    let numbers = triples
        .iter()
        .map(|triple| triple.map(|id| number_of(&ids, id)))
        .collect();
    Ok(TripleBatch::new(numbers, terms))
}

/// Quads of ids with their terms.
fn decoded_quads(decoder: &Decoder, quads: &[[TermId; 4]]) -> Result<TripleBatch, QueryError> {
    let mut ids: Vec<TermId> = quads.iter().flatten().copied().collect();
    ids.retain(|id| *id != TermId::DEFAULT_GRAPH);
    decoder.context().note_touches(ids.len() as u64);
    ids.sort_unstable();
    ids.dedup();
    let terms = decoder.terms(&ids)?;
    let number = |id| number_of(&ids, id);
    let triples = quads.iter().map(|[s, p, o, _]| [*s, *p, *o].map(number));
    let graphs = quads.iter().map(|quad| match quad[3] {
        TermId::DEFAULT_GRAPH => None,
        graph => Some(number(graph)),
    });
    let triples = TripleBatch::new(triples.collect(), terms);
    Ok(triples.of_graphs(graphs.collect()))
}

/// The quads of a template for each solution.
fn construct_quads(
    ids: IdStream,
    decoder: Decoder,
    template: Template,
    mut given: Option<Given<4>>,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    ids.map(move |batch| {
        let mut quads = template.quads(&batch?, decoder.context())?;
        if let Some(given) = &mut given {
            given.retain_new(&mut quads)?;
        }
        decoded_quads(&decoder, &quads)
    })
    .filter(|batch| {
        let is_empty = matches!(batch, Ok(batch) if batch.is_empty());
        futures::future::ready(!is_empty)
    })
    .boxed()
}

/// The triples of a template for each solution, or its quads. `gives_each_once` says that none comes twice.
pub(crate) fn construct(
    ids: IdStream,
    decoder: Decoder,
    (template, gives_each_once): (Template, bool),
    pool: &Arc<dyn MemoryPool>,
    limit_bytes: u64,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    if template.has_graphs() {
        let given = (!gives_each_once).then(|| Given::new(pool, limit_bytes));
        return construct_quads(ids, decoder, template, given);
    }
    let mut given = (!gives_each_once).then(|| Given::new(pool, limit_bytes));
    ids.map(move |batch| {
        let mut triples = template.instances(&batch?, decoder.context())?;
        if let Some(given) = &mut given {
            given.retain_new(&mut triples)?;
        }
        decoded(&decoder, &triples)
    })
    .filter(|batch| {
        let is_empty = matches!(batch, Ok(batch) if batch.is_empty());
        futures::future::ready(!is_empty)
    })
    .boxed()
}
