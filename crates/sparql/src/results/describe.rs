//! `DESCRIBE`: concise bounded descriptions, all triples of a term and of its blank nodes.
//!
//! A resource is looked up once, and its rows are read some at a time, however many there are: what
//! stands in memory is one batch, and the resources that are known, which are counted against the
//! memory pool. Rows of a resource that differ by their graphs only stand side by side, so no
//! triple has to be remembered. Between batches the stream gives way, so that time limits and
//! clients that leave are noticed.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use orrery_storage::{Cursor, Permutation, RowRange};
use orrery_term::{TermId, TermKind};

use super::TripleBatch;
use super::decode::{Decoder, IdStream};
use super::triples::Found;
use crate::error::QueryError;

/// What a resource costs in the set of those that were seen and the queue of those that are to
/// come.
const RESOURCE_BYTES: usize = 32;
/// Resources that one batch looks up at most.
const RESOURCES_PER_BATCH: usize = 256;

/// The descriptions of all terms in some columns of the solutions, from the given graphs or from
/// any.
pub(crate) fn describe(
    ids: IdStream,
    decoder: Decoder,
    (columns, graphs): (Vec<usize>, Option<Arc<[TermId]>>),
    pool: &Arc<dyn MemoryPool>,
    limit_bytes: u64,
) -> BoxStream<'static, Result<TripleBatch, QueryError>> {
    let view = decoder.context().view();
    let cursor = view.index(Permutation::Spog).map(|spog| spog.cursor());
    let walk = Walk {
        ids: Some(ids),
        columns,
        graphs,
        known: Known::new(pool, limit_bytes),
        cursor,
        current: None,
        found: Found::default(),
        decoder,
    };
    stream::try_unfold(walk, |mut walk| async move {
        let batch = walk.next().await?;
        Ok(batch.map(|batch| (batch, walk)))
    })
    .boxed()
}

/// Resources that were seen, and those of them that are still to be described.
struct Known {
    open: VecDeque<TermId>,
    seen: HashSet<TermId>,
    reservation: MemoryReservation,
    limit_bytes: u64,
}

impl Known {
    fn new(pool: &Arc<dyn MemoryPool>, limit_bytes: u64) -> Self {
        Self {
            open: VecDeque::new(),
            seen: HashSet::new(),
            reservation: MemoryConsumer::new("resources of DESCRIBE").register(pool),
            limit_bytes,
        }
    }

    /// Notes a term. Returns whether it is new and cannot be a subject, so that there is nothing to
    /// look up.
    fn visit(&mut self, id: TermId) -> bool {
        // An IRI may have come by an update; a literal that did is no subject, and nothing is
        // found.
        let can_be_subject = matches!(
            id.kind(),
            TermKind::Iri | TermKind::BlankNode | TermKind::Delta
        );
        let is_new = self.seen.insert(id);
        if is_new && can_be_subject {
            self.open.push_back(id);
        }
        is_new && !can_be_subject
    }

    /// Counts what was visited since the last time.
    fn count(&self) -> Result<(), QueryError> {
        self.reservation
            .try_resize(self.seen.len() * RESOURCE_BYTES)
            .map_err(|error| QueryError::from_datafusion(error, self.limit_bytes))
    }
}

/// A resource whose rows are being read.
struct Current {
    subject: TermId,
    /// Rows that are still to be read.
    rows: RowRange,
    /// Predicate and object of the last triple.
    last: Option<[TermId; 2]>,
}

/// Descriptions in the making.
struct Walk {
    /// The solutions, until all are read.
    ids: Option<IdStream>,
    columns: Vec<usize>,
    graphs: Option<Arc<[TermId]>>,
    known: Known,
    /// None where there are no quads.
    cursor: Option<Cursor>,
    current: Option<Current>,
    found: Found<3>,
    decoder: Decoder,
}

impl Walk {
    async fn next(&mut self) -> Result<Option<TripleBatch>, QueryError> {
        loop {
            if let Some(batch) = self.found.next(&self.decoder)? {
                return Ok(Some(batch));
            }
            let has_work = self.current.is_some() || !self.known.open.is_empty();
            if !has_work && !self.read_solutions().await? {
                return Ok(None);
            }
            let triples = self.look_up()?;
            self.known.count()?;
            self.found.add(triples);
            if self.found.is_empty() {
                // Rows of other graphs may be many.
                tokio::task::yield_now().await;
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
        for &at in &self.columns {
            let column = batch.column(at).as_primitive::<UInt64Type>();
            let ids = column.iter().flatten().map(TermId::from_bits);
            let without_rows = ids.filter(|id| self.known.visit(*id)).count();
            // As much as a look-up that finds nothing: else the cost would tell which terms others
            // have.
            self.decoder.context().note_touches(without_rows as u64);
        }
        self.known.count()?;
        Ok(true)
    }

    /// The triples of a batch's rows, of the resource that is being read and those after it.
    fn look_up(&mut self) -> Result<Vec<[TermId; 3]>, QueryError> {
        let Some(cursor) = &mut self.cursor else {
            self.known.open.clear();
            return Ok(Vec::new());
        };
        let mut triples = Vec::new();
        let mut rows_left = self.found.rows() as u64;
        let mut resources_left = RESOURCES_PER_BATCH;
        let mut columns = Columns::default();
        while rows_left > 0 {
            let mut current = match self.current.take() {
                Some(current) => current,
                None if resources_left == 0 => break,
                None => {
                    let Some(subject) = self.known.open.pop_front() else {
                        break;
                    };
                    resources_left -= 1;
                    let rows = cursor.seek(&[subject])?;
                    Current {
                        subject,
                        rows,
                        last: None,
                    }
                }
            };
            let end = current.rows.end.min(current.rows.start + rows_left);
            let part = RowRange::new(current.rows.start, end);
            columns.read(cursor, part)?;
            rows_left -= part.len();
            // The look-up is one of them, if it found nothing.
            self.decoder.context().note_touches(part.len().max(1));
            current.rows.start = end;
            for [predicate, object, graph] in columns.rows() {
                if (self.graphs.as_ref()).is_some_and(|graphs| !graphs.contains(&graph)) {
                    continue;
                }
                if current.last.replace([predicate, object]) == Some([predicate, object]) {
                    continue;
                }
                if object.kind() == TermKind::BlankNode {
                    self.known.visit(object);
                }
                triples.push([current.subject, predicate, object]);
            }
            if !current.rows.is_empty() {
                self.current = Some(current);
            }
        }
        Ok(triples)
    }
}

/// Predicates, objects and graphs of some rows.
#[derive(Default)]
struct Columns {
    predicates: Vec<u64>,
    objects: Vec<u64>,
    graphs: Vec<u64>,
}

impl Columns {
    fn read(&mut self, cursor: &mut Cursor, rows: RowRange) -> Result<(), QueryError> {
        let columns = [&mut self.predicates, &mut self.objects, &mut self.graphs];
        for (column, values) in (1..).zip(columns) {
            values.clear();
            cursor.read(rows, column, values)?;
        }
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = [TermId; 3]> + '_ {
        let pairs = self.predicates.iter().zip(&self.objects).zip(&self.graphs);
        pairs.map(|((&predicate, &object), &graph)| {
            [predicate, object, graph].map(TermId::from_bits)
        })
    }
}
