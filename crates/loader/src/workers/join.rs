//! The merge of several sorted batches into one.
//!
//! A batch is a run of the merge of all terms, with files and buffers of its own, and tells every
//! term that it has. Where texts come in pieces, or many threads parse one, batches would be small
//! and many; joined, terms that they share stand and travel once. All batches must be of the same
//! process, whose labels large literals have.
//!
//! Cost: each key is read once more (`loser_tree`) and copied, and the quads are renumbered in
//! place.

use crate::ingest::arena::{Arena, KeyRef};
use crate::ingest::batch::{MemoryBatch, SortedTerms};
use crate::merge::loser_tree::{LoserTree, RunKeys};

/// The terms of batches, with the place of each in its own.
struct Runs(Vec<(SortedTerms, usize)>);

impl RunKeys for Runs {
    #[inline]
    fn key(&self, run: usize) -> &[u8] {
        let (terms, at) = &self.0[run];
        terms.key(terms.local_at(*at))
    }
}

/// Joins batches; holds them and the joined one for a while.
pub(super) fn join(mut batches: Vec<MemoryBatch>) -> Option<MemoryBatch> {
    if batches.len() <= 1 {
        return batches.pop();
    }
    let quad_count = batches.iter().map(|batch| batch.quad_count).sum();
    let (terms, mut quads): (Vec<_>, Vec<_>) = batches
        .into_iter()
        .map(|batch| ((batch.terms, 0), batch.quads))
        .unzip();
    let mut runs = Runs(terms);
    let mut maps: Vec<Vec<u32>> = runs
        .0
        .iter()
        .map(|(terms, _)| vec![0; terms.local_limit()])
        .collect();
    let has_key: Vec<bool> = runs.0.iter().map(|(terms, _)| terms.len() > 0).collect();
    let mut tree = LoserTree::new(&has_key, &runs);
    let mut arena = Arena::default();
    let mut keys: Vec<KeyRef> = Vec::new();
    let mut current = Vec::new();
    while let Some((run, is_new)) = tree.first() {
        if is_new {
            current.clear();
            current.extend_from_slice(runs.key(run));
            keys.push(arena.push(&current));
        }
        let (terms, at) = &mut runs.0[run];
        maps[run][terms.local_at(*at) as usize] = (keys.len() - 1) as u32;
        *at += 1;
        let has_key = *at < terms.len();
        tree.replace_first(has_key, &current, &runs);
    }
    for (batch, map) in quads.iter_mut().zip(&maps) {
        for quad in batch.iter_mut().flatten() {
            *quad = quad.map(|local| map[local as usize]);
        }
    }
    Some(MemoryBatch {
        terms: SortedTerms::in_order(arena, keys),
        quads: quads.into_iter().flatten().collect(),
        quad_count,
    })
}

/// Gathers batches until they are worth a run of their own.
#[derive(Default)]
pub(super) struct Pool {
    batches: Vec<MemoryBatch>,
    bytes: usize,
}

impl Pool {
    /// Takes a batch; gives what is to go on once there are `bytes_min` bytes.
    pub(super) fn push(&mut self, batch: MemoryBatch, bytes_min: usize) -> Option<MemoryBatch> {
        self.bytes += batch.memory_bytes();
        self.batches.push(batch);
        match self.bytes >= bytes_min {
            true => self.take(),
            false => None,
        }
    }

    /// What is left.
    pub(super) fn take(&mut self) -> Option<MemoryBatch> {
        self.bytes = 0;
        join(std::mem::take(&mut self.batches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::batch::seal;
    use crate::ingest::interner::Interner;
    use proptest::prelude::*;

    fn batch(statements: &[[u8; 3]]) -> MemoryBatch {
        let mut interner = Interner::new(None);
        for statement in statements {
            let terms = statement.map(|n| interner.checked_iri(&format!("urn:{}", n % 40)));
            crate::parse::ntriples::TermSink::quad(
                &mut interner,
                terms[0],
                terms[1],
                terms[2],
                None,
            );
        }
        seal(interner.take())
    }

    fn quads(batch: &MemoryBatch) -> Vec<[Vec<u8>; 4]> {
        let quads = batch.quads.iter().flatten();
        quads
            .map(|quad| quad.map(|local| batch.terms.key(local).to_vec()))
            .collect()
    }

    proptest! {
        #[test]
        fn joined_batches_hold_all_quads_and_each_term_once(
            parts in proptest::collection::vec(proptest::collection::vec(any::<[u8; 3]>(), 0..50), 0..6)
        ) {
            let batches: Vec<MemoryBatch> = parts.iter().map(|part| batch(part)).collect();
            let expected: Vec<_> = batches.iter().flat_map(quads).collect();
            let Some(joined) = join(batches) else {
                prop_assert!(parts.is_empty());
                return Ok(());
            };
            prop_assert_eq!(joined.quad_count, expected.len() as u64);
            prop_assert_eq!(quads(&joined), expected);
            let terms = &joined.terms;
            let keys: Vec<&[u8]> = (0..terms.len()).map(|rank| terms.key(terms.local_at(rank))).collect();
            prop_assert!(keys.is_sorted_by(|a, b| a < b));
        }
    }
}
