//! `CONSTRUCT` and `DESCRIBE`: triples from solutions.
//!
//! Triples are made of ids; duplicates are dropped by a set of ids over the whole answer (24 bytes
//! a triple, counted against the memory pool), unless there can be none; terms are decoded per batch.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use orrery_storage::Permutation;
use orrery_term::{TermId, TermKind};

use super::TripleBatch;
use super::decode::{Decoder, IdStream, number_of};
use super::template::Template;
use crate::error::QueryError;

/// What a triple costs in the set of those that were given.
const TRIPLE_BYTES: usize = 48;
/// Resources that one step of a `DESCRIBE` looks up.
const RESOURCES_PER_BATCH: usize = 256;

/// Triples given so far.
struct Given {
    triples: HashSet<[TermId; 3]>,
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl Given {
    fn new(pool: &Arc<dyn MemoryPool>, limit_bytes: u64) -> Self {
        Self {
            triples: HashSet::new(),
            reservation: MemoryConsumer::new("triples of the answer").register(pool),
            limit_bytes,
        }
    }

    /// Keeps the triples that are new.
    fn retain_new(&mut self, triples: &mut Vec<[TermId; 3]>) -> Result<(), QueryError> {
        triples.retain(|triple| self.triples.insert(*triple));
        self.reservation
            .try_grow(triples.len() * TRIPLE_BYTES)
            .map_err(|error| QueryError::from_datafusion(error, self.limit_bytes))
    }
}

fn decoded(decoder: &Decoder, triples: &[[TermId; 3]]) -> Result<TripleBatch, QueryError> {
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

/// The triples of a template for each solution. `gives_each_once` says that none comes twice.
pub(crate) fn construct(
    ids: IdStream,
    decoder: Decoder,
    (template, gives_each_once): (Template, bool),
    pool: &Arc<dyn MemoryPool>,
    limit_bytes: u64,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
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

/// The concise bounded descriptions of all terms in some columns of the solutions: every triple, in
/// the given graphs or in any, with the term as its subject, and so on through blank nodes.
pub(crate) fn describe(
    ids: IdStream,
    decoder: Decoder,
    (columns, graphs): (Vec<usize>, Option<Arc<[TermId]>>),
    pool: &Arc<dyn MemoryPool>,
    limit_bytes: u64,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    let walk = Walk {
        ids: Some(ids),
        columns,
        graphs,
        open: VecDeque::new(),
        seen: HashSet::new(),
        given: Given::new(pool, limit_bytes),
        decoder,
    };
    stream::try_unfold(walk, |mut walk| async move {
        let batch = walk.next().await?;
        Ok(batch.map(|batch| (batch, walk)))
    })
    .boxed()
}

/// A description in the making.
struct Walk {
    /// The solutions, until all are read.
    ids: Option<IdStream>,
    columns: Vec<usize>,
    graphs: Option<Arc<[TermId]>>,
    open: VecDeque<TermId>,
    seen: HashSet<TermId>,
    given: Given,
    decoder: Decoder,
}

impl Walk {
    async fn next(&mut self) -> Result<Option<TripleBatch>, QueryError> {
        loop {
            if self.open.is_empty() && !self.read_solutions().await? {
                return Ok(None);
            }
            let mut triples = self.look_up()?;
            self.given.retain_new(&mut triples)?;
            if !triples.is_empty() {
                return Ok(Some(decoded(&self.decoder, &triples)?));
            }
        }
    }

    /// Takes the terms of some further solutions; false at the end.
    async fn read_solutions(&mut self) -> Result<bool, QueryError> {
        let Some(ids) = &mut self.ids else {
            return Ok(false);
        };
        let Some(batch) = ids.next().await else {
            self.ids = None;
            return Ok(false);
        };
        let batch = batch?;
        for at in self.columns.clone() {
            let column = batch.column(at).as_primitive::<UInt64Type>();
            for id in column.iter().flatten().map(TermId::from_bits) {
                self.visit(id);
            }
        }
        Ok(true)
    }

    fn visit(&mut self, id: TermId) {
        // An IRI may have come by an update; a literal that did is no subject, and nothing is found.
        let can_be_subject = matches!(
            id.kind(),
            TermKind::Iri | TermKind::BlankNode | TermKind::Delta
        );
        if can_be_subject && self.seen.insert(id) {
            self.open.push_back(id);
        }
    }

    /// The triples of some resources.
    fn look_up(&mut self) -> Result<Vec<[TermId; 3]>, QueryError> {
        let index = self
            .decoder
            .context()
            .snapshot()
            .index(Permutation::Spog)
            .cloned();
        let Some(index) = index else {
            self.open.clear();
            return Ok(Vec::new());
        };
        let mut cursor = index.cursor();
        let mut triples = Vec::new();
        let (mut predicates, mut objects, mut graphs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RESOURCES_PER_BATCH {
            let Some(subject) = self.open.pop_front() else {
                break;
            };
            let range = cursor.seek(&[subject])?;
            predicates.clear();
            objects.clear();
            graphs.clear();
            cursor.read(range, 1, &mut predicates)?;
            cursor.read(range, 2, &mut objects)?;
            cursor.read(range, 3, &mut graphs)?;
            for ((predicate, object), graph) in predicates.iter().zip(&objects).zip(&graphs) {
                let graph = TermId::from_bits(*graph);
                if (self.graphs.as_ref()).is_some_and(|graphs| !graphs.contains(&graph)) {
                    continue;
                }
                let object = TermId::from_bits(*object);
                if object.kind() == TermKind::BlankNode {
                    self.visit(object);
                }
                triples.push([subject, TermId::from_bits(*predicate), object]);
            }
        }
        Ok(triples)
    }
}
