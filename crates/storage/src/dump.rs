//! All quads as terms, in the order of SPOG.
//!
//! Rows are read in batches of some thousand; the ids of a batch are sorted and each distinct one is decoded once, in
//! rank order. Memory stays at one batch.

use std::sync::Arc;

use orrery_term::{Term, TermId};

use crate::index::{COLUMNS, Permutation, Scan};
use crate::{Error, Result, Snapshot};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8 * 1024;

/// A quad as terms; the default graph has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuadRef<'a> {
    /// The subject.
    pub subject: &'a Term<'static>,
    /// The predicate.
    pub predicate: &'a Term<'static>,
    /// The object.
    pub object: &'a Term<'static>,
    /// The graph's name; `None` in the default graph.
    pub graph: Option<&'a Term<'static>>,
}

/// Some thousand consecutive quads.
#[derive(Debug, Default)]
pub struct QuadBatch {
    /// Distinct ids in ascending order, and the term of each.
    ids: Vec<u64>,
    terms: Vec<Term<'static>>,
    rows: Vec<[u64; COLUMNS]>,
}

impl QuadBatch {
    /// Number of quads.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no quad.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The quads.
    pub fn iter(&self) -> impl Iterator<Item = QuadRef<'_>> {
        // Every id of a row was entered into `ids`.
        let term = |id: u64| &self.terms[self.ids.partition_point(|&other| other < id)];
        self.rows.iter().map(move |&[s, p, o, g]| QuadRef {
            subject: term(s),
            predicate: term(p),
            object: term(o),
            graph: (g != TermId::DEFAULT_GRAPH.bits()).then(|| term(g)),
        })
    }

    /// Takes up other quads.
    pub(crate) fn fill(&mut self, snapshot: &Snapshot, quads: &[[TermId; COLUMNS]]) -> Result<()> {
        self.rows.clear();
        self.rows
            .extend(quads.iter().map(|quad| quad.map(TermId::bits)));
        self.decode(snapshot)
    }

    fn decode(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.ids.clear();
        self.ids.extend(self.rows.iter().flatten());
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.retain(|&id| id != TermId::DEFAULT_GRAPH.bits());
        let ids: Vec<TermId> = self.ids.iter().map(|&id| TermId::from_bits(id)).collect();
        self.terms.clear();
        snapshot.terms(&ids, |_, term| self.terms.push(term.into_owned()))
    }
}

/// Reads all quads, batch by batch.
#[derive(Debug)]
pub struct Quads {
    snapshot: Arc<Snapshot>,
    scan: Scan,
    batch: QuadBatch,
}

impl Snapshot {
    /// All quads in the order of SPOG.
    pub fn quads(self: &Arc<Self>) -> Result<Quads> {
        let index = self.index(Permutation::Spog).ok_or_else(|| {
            Error::corrupt(self.directory(), 0, "the permutation SPOG is missing")
        })?;
        Ok(Quads {
            snapshot: Arc::clone(self),
            scan: index.scan(index.all(), [true; COLUMNS]),
            batch: QuadBatch::default(),
        })
    }
}

impl Quads {
    /// The next quads, or `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<&QuadBatch>> {
        self.batch.rows.clear();
        while self.batch.rows.len() < BATCH_ROWS {
            let Some(vector) = self.scan.next_vector()? else {
                break;
            };
            let columns: [&[u64]; COLUMNS] = std::array::from_fn(|column| vector.column(column));
            let rows = 0..vector.rows().len() as usize;
            self.batch
                .rows
                .extend(rows.map(|row| columns.map(|column| column[row])));
        }
        if self.batch.rows.is_empty() {
            return Ok(None);
        }
        self.batch.decode(&self.snapshot)?;
        Ok(Some(&self.batch))
    }
}
