//! Checks of rows: ids exist, and all permutations have the same hash.

use orrery_term::{TermId, TermKind};

use crate::quads::dictionary::Dictionary;
use crate::quads::index::COLUMNS;

/// Which ids exist.
pub(crate) struct Limits {
    iris: u64,
    first_triple_term: u64,
    terms: u64,
    blank_nodes: u64,
}

impl Limits {
    pub(crate) fn new(dictionary: &Dictionary, blank_nodes: u64) -> Self {
        Self {
            iris: dictionary.iri_count(),
            first_triple_term: dictionary.first_triple_term(),
            terms: dictionary.len(),
            blank_nodes,
        }
    }

    pub(crate) fn contain(&self, bits: u64) -> bool {
        let id = TermId::from_bits(bits);
        match id.checked_kind() {
            Some(TermKind::Iri) => id.payload() < self.iris,
            Some(TermKind::Literal) => (self.iris..self.first_triple_term).contains(&id.payload()),
            Some(TermKind::TripleTerm) => {
                (self.first_triple_term..self.terms).contains(&id.payload())
            }
            Some(TermKind::BlankNode) => id.payload() < self.blank_nodes,
            Some(TermKind::Special) => id == TermId::DEFAULT_GRAPH,
            Some(_) => id.is_inline(),
            None => false,
        }
    }
}

/// A hash of a quad; their sum does not depend on the order.
pub(crate) fn hash_quad(quad: [u64; COLUMNS]) -> u64 {
    quad.into_iter().fold(0, mix)
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 32)
}

/// A hash of some bytes.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    let words = words.map(|word| u64::from_le_bytes(*word));
    words.fold(bytes.len() as u64, mix)
}
