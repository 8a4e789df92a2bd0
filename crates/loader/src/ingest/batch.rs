//! Batches: the sorted terms and quads that one worker collected within its share of memory.
//!
//! A sealed batch has its terms in the order of their sort keys. It stays in memory if the whole
//! input fits there; else it goes to three files of the stage directory:
//!
//! ```text
//! batch-000001.terms   per term, in order of the keys: length (u32) key
//! batch-000001.quads   per quad: subject, predicate, object, graph (u32 each), numbers in that order
//! batch-000001.map     per term, written by the merge: its ordinal (u32)
//! ```
//!
//! All integers are little-endian.

use crate::ingest::arena::{Arena, KeyRef};
use crate::ingest::interner::{DEFAULT_GRAPH, InternedTerms, LocalQuad};
use crate::ingest::key_sort::sorted_order;
use crate::ingest::sort_keys::BLANK_NODE_KEY;
use crate::ingest::stage_dir::StageDir;
use crate::ingest::triple_keys::{is_triple, pending_blank_nodes};
use orrery_storage::Result;
use orrery_term::key::FIRST_TRIPLE_KEY;

/// The distinct terms of a batch, sorted.
#[derive(Debug)]
pub(crate) struct SortedTerms {
    arena: Arena,
    keys: Vec<KeyRef>,
    /// Local numbers in the order of the sort keys.
    order: Vec<u32>,
}

impl SortedTerms {
    /// Terms whose keys are pushed in order, without duplicates.
    pub(crate) fn in_order(arena: Arena, keys: Vec<KeyRef>) -> Self {
        let order = (0..keys.len() as u32).collect();
        Self { arena, keys, order }
    }

    /// How many terms there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The places in the order, by local number.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.local_limit()];
        for (rank, &local) in (0..).zip(&self.order) {
            ranks[local as usize] = rank;
        }
        ranks
    }

    /// Local numbers run below this; a few may be of no term, see [`drop_orphans`].
    pub(crate) fn local_limit(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that the terms hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.arena.allocated_bytes()
            + self.keys.capacity() * size_of::<KeyRef>()
            + self.order.capacity() * size_of::<u32>()
    }

    /// The local number of the term at this place in the order.
    pub(crate) fn local_at(&self, rank: usize) -> u32 {
        self.order[rank]
    }

    /// The sort key of a local number.
    #[inline]
    pub(crate) fn key(&self, local: u32) -> &[u8] {
        self.arena.get(self.keys[local as usize])
    }
}

/// A sealed batch in memory; its quads hold local numbers.
#[derive(Debug)]
pub(crate) struct MemoryBatch {
    pub(crate) terms: SortedTerms,
    pub(crate) quads: Vec<Vec<LocalQuad>>,
    pub(crate) quad_count: u64,
}

impl MemoryBatch {
    /// Bytes that the batch holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let quads = self.quads.iter().map(Vec::capacity).sum::<usize>();
        self.terms.memory_bytes() + quads * size_of::<LocalQuad>()
    }
}

/// A sealed batch in the stage directory.
#[derive(Debug, Clone)]
pub(crate) struct SpilledBatch {
    /// What its file names begin with.
    name: String,
    pub(crate) term_count: usize,
    pub(crate) quad_count: u64,
    /// Which of its terms are predicates, and which graphs, ascending.
    pub(crate) predicates: Vec<u32>,
    pub(crate) graphs: Vec<u32>,
}

impl SpilledBatch {
    pub(crate) fn terms_file(&self) -> String {
        format!("{}.terms", self.name)
    }

    pub(crate) fn quads_file(&self) -> String {
        format!("{}.quads", self.name)
    }

    pub(crate) fn map_file(&self) -> String {
        format!("{}.map", self.name)
    }
}

/// Sorts the terms of a batch.
pub(crate) fn seal(batch: InternedTerms) -> MemoryBatch {
    let mut order = sorted_order(&batch.arena, &batch.keys);
    if batch.has_orphans {
        drop_orphans(&mut order, &batch);
    }
    MemoryBatch {
        terms: SortedTerms {
            arena: batch.arena,
            keys: batch.keys,
            order,
        },
        quads: batch.quads,
        quad_count: batch.quad_count,
    }
}

/// Leaves out the terms that came with wrong statements only.
fn drop_orphans(order: &mut Vec<u32>, batch: &InternedTerms) {
    let key_of = |local: u32| batch.arena.get(batch.keys[local as usize]);
    let mut is_used = vec![false; batch.keys.len()];
    is_used[DEFAULT_GRAPH as usize] = true;
    for &local in batch.quads.iter().flatten().flatten() {
        is_used[local as usize] = true;
    }
    // Blank nodes within triple terms need their numbers, and the merge their marks.
    let triples = order.partition_point(|&local| key_of(local) < FIRST_TRIPLE_KEY);
    let mut key = Vec::new();
    for &triple in &order[triples..] {
        if !is_used[triple as usize] || !is_triple(key_of(triple)) {
            continue;
        }
        for name in pending_blank_nodes(key_of(triple)) {
            key.clear();
            key.push(BLANK_NODE_KEY);
            key.extend_from_slice(name);
            // The mark is the next one after the blank node.
            let node = order.partition_point(|&local| key_of(local) < key.as_slice());
            for &local in order.iter().skip(node).take(2) {
                is_used[local as usize] = true;
            }
        }
    }
    order.retain(|&local| is_used[local as usize]);
}

/// Writes a batch to the stage directory.
pub(crate) fn spill(batch: MemoryBatch, stage: &StageDir, number: u32) -> Result<SpilledBatch> {
    let MemoryBatch {
        terms,
        quads,
        quad_count,
    } = batch;
    let mut spilled = SpilledBatch {
        name: format!("batch-{number:06}"),
        term_count: terms.len(),
        quad_count,
        predicates: Vec::new(),
        graphs: Vec::new(),
    };
    let mut file = stage.writer(&spilled.terms_file())?;
    let rank_of = terms.ranks();
    for rank in 0..terms.len() {
        let key = terms.key(terms.local_at(rank));
        file.append(&(key.len() as u32).to_le_bytes())?;
        file.append(key)?;
    }
    file.flush()?;
    drop(terms);
    let mut file = stage.writer(&spilled.quads_file())?;
    let mut is_predicate = vec![false; spilled.term_count];
    let mut is_graph = vec![false; spilled.term_count];
    for quad in quads.iter().flatten() {
        let ranks = quad.map(|local| rank_of[local as usize]);
        is_predicate[ranks[1] as usize] = true;
        is_graph[ranks[3] as usize] = true;
        let mut record = [0; 16];
        for (bytes, rank) in record.chunks_exact_mut(4).zip(ranks) {
            bytes.copy_from_slice(&rank.to_le_bytes());
        }
        file.append(&record)?;
    }
    file.flush()?;
    spilled.predicates = places(&is_predicate);
    spilled.graphs = places(&is_graph);
    Ok(spilled)
}

/// Where a mark is set.
fn places(marks: &[bool]) -> Vec<u32> {
    let marked = marks.iter().zip(0..).filter(|&(&is_set, _)| is_set);
    marked.map(|(_, place)| place).collect()
}
