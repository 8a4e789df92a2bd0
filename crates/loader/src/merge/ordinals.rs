//! Ordinals: the distinct terms of a load numbered in the order of their ids.
//!
//! Sorting works on ordinals, packed into one number a quad (`row_packing`), and only what is
//! written is turned into term ids. The order is
//!
//! ```text
//! 0                  the default graph
//! 1 ...              blank nodes of the database that come with its latest changes
//! ...                the blank nodes of the load, numbered on from those of the database
//! ... IRIs, literals, triple terms: all terms of the dictionary, old and new, by rank
//! ... values         the terms that live inside their ids
//! ```

use crate::error::LoadError;
use crate::ingest::sort_keys::{
    BLANK_NODE_KEY, DEFAULT_GRAPH_KEY, INLINE_KEY, NUMBERED_BLANK_NODE_KEY,
};
use crate::ingest::triple_keys::{MarkedNodes, is_triple, marked, pending_blank_nodes};
use orrery_term::{TermId, key::FIRST_LITERAL_KEY};

/// Number of a distinct term within one load.
pub(crate) type Ordinal = u32;

/// Turns ordinals into term ids.
#[derive(Debug)]
pub(crate) struct OrdinalSpace {
    /// Ascending, all below the first new one.
    numbered_blank_nodes: Vec<u64>,
    first_blank_node: u64,
    blank_nodes: u64,
    iris: u64,
    triple_terms: u64,
    dictionary_terms: u64,
    inline: Vec<TermId>,
}

impl OrdinalSpace {
    /// The id of the term with this ordinal.
    #[inline]
    pub(crate) fn term_id(&self, ordinal: Ordinal) -> TermId {
        let Some(index) = u64::from(ordinal).checked_sub(1) else {
            return TermId::DEFAULT_GRAPH;
        };
        let numbered = self.numbered_blank_nodes.len() as u64;
        let Some(index) = index.checked_sub(numbered) else {
            return TermId::blank_node(self.numbered_blank_nodes[index as usize]);
        };
        let Some(rank) = index.checked_sub(self.blank_nodes) else {
            return TermId::blank_node(self.first_blank_node + index);
        };
        if rank < self.iris {
            TermId::iri(rank)
        } else if rank < self.dictionary_terms - self.triple_terms {
            TermId::literal(rank)
        } else if rank < self.dictionary_terms {
            TermId::triple_term(rank)
        } else {
            self.inline[(rank - self.dictionary_terms) as usize]
        }
    }

    /// The first number that no blank node has.
    pub(crate) fn next_blank_node(&self) -> u64 {
        self.first_blank_node + self.blank_nodes
    }

    /// Ordinals run below this.
    pub(crate) fn limit(&self) -> u64 {
        let numbered = self.numbered_blank_nodes.len() as u64;
        let inline = self.inline.len() as u64;
        1 + numbered + self.blank_nodes + self.dictionary_terms + inline
    }

    /// Terms in the dictionary.
    pub(crate) fn dictionary_terms(&self) -> u64 {
        self.dictionary_terms
    }
}

/// Gives out ordinals to sort keys in their order.
#[derive(Debug)]
pub(crate) struct Numbering {
    space: OrdinalSpace,
    next: u64,
    marked_nodes: MarkedNodes,
    /// Space for [`DictionaryKey::Other`].
    key_buffer: Vec<u8>,
}

/// What stands in the dictionary for a sort key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DictionaryKey<'a> {
    /// Nothing.
    None,
    /// The same bytes.
    Same,
    /// Others: a triple term whose blank nodes have got their numbers.
    Other(&'a [u8]),
}

impl Numbering {
    /// New blank nodes are numbered from `first_blank_node`.
    pub(crate) fn new(first_blank_node: u64) -> Self {
        Self {
            space: OrdinalSpace {
                numbered_blank_nodes: Vec::new(),
                first_blank_node,
                blank_nodes: 0,
                iris: 0,
                triple_terms: 0,
                dictionary_terms: 0,
                inline: Vec::new(),
            },
            next: 1,
            marked_nodes: MarkedNodes::default(),
            key_buffer: Vec::new(),
        }
    }

    /// The ordinal of the next larger sort key, and its key in the dictionary.
    pub(crate) fn number(&mut self, key: &[u8]) -> Result<(Ordinal, DictionaryKey<'_>), LoadError> {
        let is_dictionary = match key.first() {
            Some(&DEFAULT_GRAPH_KEY) => return Ok((0, DictionaryKey::None)),
            Some(&NUMBERED_BLANK_NODE_KEY) => {
                let number = payload(key);
                self.space.numbered_blank_nodes.push(number);
                false
            }
            Some(&BLANK_NODE_KEY) => {
                if let Some(node) = marked(key) {
                    // The mark follows the blank node's own key and is no term.
                    let before = self.space.blank_nodes.checked_sub(1);
                    let before = before.ok_or(LoadError::DamagedStage)?;
                    self.marked_nodes
                        .push(node, self.space.first_blank_node + before);
                    return Ok(((self.next - 1) as Ordinal, DictionaryKey::None));
                }
                self.space.blank_nodes += 1;
                false
            }
            Some(&INLINE_KEY) => {
                self.space.inline.push(TermId::from_bits(payload(key)));
                false
            }
            _ => {
                self.space.dictionary_terms += 1;
                self.space.iris += u64::from(key < FIRST_LITERAL_KEY);
                self.space.triple_terms += u64::from(is_triple(key));
                true
            }
        };
        let ordinal = self.next;
        self.next += 1;
        let ordinal = Ordinal::try_from(ordinal).map_err(|_| LoadError::TooManyTerms {
            terms: ordinal,
            limit: u64::from(Ordinal::MAX),
        })?;
        if !is_dictionary {
            return Ok((ordinal, DictionaryKey::None));
        }
        if !is_triple(key) || pending_blank_nodes(key).next().is_none() {
            return Ok((ordinal, DictionaryKey::Same));
        }
        let written = self.marked_nodes.write_key(key, &mut self.key_buffer);
        written.ok_or(LoadError::DamagedStage)?;
        Ok((ordinal, DictionaryKey::Other(&self.key_buffer)))
    }

    /// The way back, once all keys are numbered.
    pub(crate) fn finish(self) -> OrdinalSpace {
        self.space
    }
}

/// The number behind the first byte of a key.
fn payload(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&key[1..9]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::interner::Interner;
    use crate::parse::ntriples::TermSink;

    #[test]
    fn the_order_of_ordinals_is_the_order_of_ids() {
        let mut interner = Interner::new(None);
        for n in 0..50 {
            interner.numbered_blank_node(n % 6);
            interner.blank_node(&format!("b{n}"));
            interner.checked_iri(&format!("urn:{n}"));
            interner.string(&format!("a long string {n}"));
            interner.string(&format!("s{n}"));
            interner.checked_typed(&n.to_string(), "http://www.w3.org/2001/XMLSchema#integer");
            interner.checked_typed(&format!("0{n}"), "http://www.w3.org/2001/XMLSchema#integer");
        }
        let terms = crate::ingest::batch::seal(interner.take()).terms;
        let mut numbering = Numbering::new(7);
        let mut numbered = 0;
        for rank in 0..terms.len() {
            let (ordinal, key) = numbering.number(terms.key(terms.local_at(rank))).unwrap();
            assert_eq!(ordinal as usize, rank);
            numbered += u64::from(key != DictionaryKey::None);
        }
        let space = numbering.finish();
        assert_eq!(space.dictionary_terms(), numbered);
        assert_eq!(space.next_blank_node(), 57);
        assert_eq!(space.term_id(0), TermId::DEFAULT_GRAPH);
        let ids: Vec<TermId> = (0..terms.len() as u32).map(|n| space.term_id(n)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(space.limit(), ids.len() as u64);
    }
}
