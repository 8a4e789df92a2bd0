//! Sort keys of triple terms, before and after their blank nodes are numbered.
//!
//! In the dictionary a triple term's key names blank nodes by their numbers, which the merge gives
//! out. Until then they stand in the sort key by file and label:
//!
//! ```text
//! numbered   'B' number, 12 hexadecimal digits          (orrery_term::key)
//! pending    'B' 'n' file number (u32, big-endian) label 0x00
//! ```
//!
//! Numbers ascend with file and label, and those of the load are greater than all of the database,
//! as 'n' is greater than any digit. So the order of the sort keys is the order of the keys, and
//! the merge, which meets blank nodes before triple terms, can put the numbers in as it goes. It
//! keeps the numbers of those only that occur in a triple term: each batch says which by a *mark*,
//! the blank node's sort key and a byte that no label holds.
//!
//! Cost: the merge holds the labels of the blank nodes within triple terms in memory, some
//! twenty bytes and the label each. This is not bounded by the memory that the load was given.

use crate::ingest::sort_keys::{BLANK_NODE_KEY, DEFAULT_GRAPH_KEY, INLINE_KEY};
use orrery_term::key::{begin_triple_key, blank_node_part, key_part, leaf_part_length};
use orrery_term::{TRIPLE_DEPTH_MAX, TermId, write_key};

/// First byte of the key of a triple term, and of each one within.
pub(crate) const TRIPLE_KEY: u8 = orrery_term::key::FIRST_TRIPLE_KEY[0];
/// After the first byte of a blank node within a sort key: its number is not known yet.
const PENDING: u8 = b'n';
/// Ends the mark of a blank node that occurs in a triple term.
const MARK: u8 = 1;
/// Bytes of the file number in a blank node's sort key.
const FILE_NUMBER_BYTES: usize = 4;
/// Bytes of a numbered blank node within a key.
const NUMBERED_BYTES: usize = 13;

/// Appends the sort key of the triple term with these sort keys of its parts; false if it were
/// nested too deeply, and then `out` is of no use.
pub(crate) fn write_triple_key(parts: [&[u8]; 3], out: &mut Vec<u8>) -> bool {
    begin_triple_key(out);
    for part in parts {
        match part.first() {
            Some(&BLANK_NODE_KEY) => {
                out.extend_from_slice(&[BLANK_NODE_KEY, PENDING]);
                out.extend_from_slice(&part[1..]);
                out.push(0);
            }
            Some(&INLINE_KEY) => {
                let mut bits = [0; 8];
                bits.copy_from_slice(&part[1..9]);
                let id = TermId::from_bits(u64::from_be_bytes(bits));
                if let Some(term) = id.to_inline_term() {
                    let mut key = Vec::new();
                    write_key(&term, &mut key);
                    key_part(&key, out);
                }
            }
            Some(_) => key_part(part, out),
            None => {}
        }
    }
    let depth = Tokens(out).filter(|token| *token == Token::Triple).count();
    depth <= TRIPLE_DEPTH_MAX
}

/// Appends the mark of a blank node, given its sort key.
pub(crate) fn write_mark(blank_node: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(blank_node);
    out.push(MARK);
}

/// The sort key of the blank node that a sort key marks, if it is a mark.
pub(crate) fn marked(key: &[u8]) -> Option<&[u8]> {
    match key {
        [BLANK_NODE_KEY, .., MARK] => Some(&key[..key.len() - 1]),
        _ => None,
    }
}

/// File number and label of the blank nodes of a triple term's sort key that have no number yet.
pub(crate) fn pending_blank_nodes(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    Tokens(key).filter_map(|token| match token {
        Token::Pending(node) => Some(node),
        Token::Triple | Token::Other(_) => None,
    })
}

/// The numbers of the blank nodes that occur in triple terms.
#[derive(Debug, Default)]
pub(crate) struct MarkedNodes {
    /// File numbers and labels, one after the other, ascending.
    names: Vec<u8>,
    /// Where each name ends, and the blank node's number.
    nodes: Vec<(usize, u64)>,
}

impl MarkedNodes {
    /// Notes the number of a blank node, given its sort key. Keys must ascend.
    pub(crate) fn push(&mut self, key: &[u8], number: u64) {
        self.names.extend_from_slice(&key[1..]);
        self.nodes.push((self.names.len(), number));
    }

    fn name(&self, index: usize) -> &[u8] {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.nodes[before].0);
        &self.names[start..self.nodes[index].0]
    }

    fn number(&self, name: &[u8]) -> Option<u64> {
        let (mut low, mut high) = (0, self.nodes.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.name(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.nodes[middle].1),
            }
        }
        None
    }

    /// Puts the key of a triple term into `out`, which is emptied first: its sort key with numbers
    /// for labels. `None` if a blank node has no number; batches mark all of them, so then one is
    /// damaged.
    pub(crate) fn write_key(&self, sort_key: &[u8], out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        for token in Tokens(sort_key) {
            match token {
                Token::Triple => out.push(TRIPLE_KEY),
                Token::Pending(name) => blank_node_part(self.number(name)?, out),
                Token::Other(bytes) => out.extend_from_slice(bytes),
            }
        }
        Some(())
    }
}

/// A piece of a triple term's sort key.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    /// The beginning of a triple term.
    Triple,
    /// A blank node without a number: file number and label.
    Pending(&'a [u8]),
    /// Any other part, or what cannot be read.
    Other(&'a [u8]),
}

/// The pieces of a triple term's sort key, of all levels in a row.
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.0;
        let (token, length) = match bytes {
            [] => return None,
            [TRIPLE_KEY, ..] => (Token::Triple, 1),
            [BLANK_NODE_KEY, PENDING, name @ ..] => {
                // The file number may hold zero bytes, the label does not.
                let label = name.get(FILE_NUMBER_BYTES..).unwrap_or_default();
                let end = label.iter().position(|&byte| byte == 0);
                let end = FILE_NUMBER_BYTES + end.unwrap_or(label.len());
                let name = &name[..end.min(name.len())];
                (Token::Pending(name), name.len() + 3)
            }
            [BLANK_NODE_KEY, ..] => (Token::Other(bytes), NUMBERED_BYTES),
            _ => {
                let length = leaf_part_length(bytes).unwrap_or(bytes.len());
                (Token::Other(bytes), length)
            }
        };
        let length = length.min(bytes.len());
        self.0 = &bytes[length..];
        Some(match token {
            Token::Other(bytes) => Token::Other(&bytes[..length]),
            other => other,
        })
    }
}

/// Whether a sort key is that of a triple term.
pub(crate) fn is_triple(key: &[u8]) -> bool {
    const { assert!(DEFAULT_GRAPH_KEY < BLANK_NODE_KEY && TRIPLE_KEY < INLINE_KEY) };
    key.first() == Some(&TRIPLE_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_term::{Term, Triple, inline, parse_key};

    fn blank(file: u32, label: &str) -> Vec<u8> {
        [&[BLANK_NODE_KEY], &file.to_be_bytes()[..], label.as_bytes()].concat()
    }

    fn iri(iri: &str) -> Vec<u8> {
        let mut key = Vec::new();
        write_key(&Term::iri(iri), &mut key);
        key
    }

    fn triple(subject: &[u8], object: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        assert!(write_triple_key([subject, &iri("urn:p"), object], &mut key));
        key
    }

    #[test]
    fn labels_become_numbers_and_the_order_stays() {
        let one = inline(&Term::string("one")).unwrap();
        let inline_key = [&[INLINE_KEY], &one.bits().to_be_bytes()[..]].concat();
        let mut numbered = Vec::new();
        let of_database = Triple::new(Term::BlankNode(6), Term::iri("urn:p"), Term::string("x"));
        write_key(&of_database.unwrap().into(), &mut numbered);
        let nodes = [
            blank(0, "a"),
            blank(0, "a-b"),
            blank(0, "ab"),
            blank(1, "a"),
        ];
        let mut marked_nodes = MarkedNodes::default();
        for (number, node) in (7..).zip(&nodes) {
            let mut mark = Vec::new();
            write_mark(node, &mut mark);
            assert_eq!(marked(&mark), Some(node.as_slice()));
            assert_eq!(marked(node), None);
            marked_nodes.push(node, number);
        }
        let mut sort_keys = [
            numbered,
            triple(&nodes[0], &nodes[3]),
            triple(&nodes[0], &inline_key),
            triple(&nodes[1], &iri("urn:o")),
            triple(&nodes[2], &triple(&nodes[3], &nodes[0])),
            triple(&nodes[3], &iri("urn:o")),
            triple(&iri("urn:s"), &nodes[1]),
        ];
        sort_keys.sort();
        let keys: Vec<Vec<u8>> = sort_keys
            .iter()
            .map(|sort_key| {
                let mut key = Vec::new();
                marked_nodes.write_key(sort_key, &mut key).unwrap();
                key
            })
            .collect();
        assert!(keys.is_sorted());
        let terms: Vec<String> = keys
            .iter()
            .map(|key| parse_key(key).unwrap().to_string())
            .collect();
        assert_eq!(
            terms,
            [
                "<<( _:b6 <urn:p> \"x\" )>>",
                "<<( _:b7 <urn:p> _:b10 )>>",
                "<<( _:b7 <urn:p> \"one\" )>>",
                "<<( _:b8 <urn:p> <urn:o> )>>",
                "<<( _:b9 <urn:p> <<( _:b10 <urn:p> _:b7 )>> )>>",
                "<<( _:b10 <urn:p> <urn:o> )>>",
                "<<( <urn:s> <urn:p> _:b8 )>>",
            ]
        );
        let unknown = triple(&blank(2, "a"), &iri("urn:o"));
        assert_eq!(marked_nodes.write_key(&unknown, &mut Vec::new()), None);
        assert_eq!(
            pending_blank_nodes(&sort_keys[4]).collect::<Vec<_>>(),
            [&nodes[2][1..], &nodes[3][1..], &nodes[0][1..]]
        );
    }

    #[test]
    fn nesting_has_a_limit() {
        let mut key = iri("urn:o");
        for _ in 0..TRIPLE_DEPTH_MAX {
            key = triple(&iri("urn:s"), &key);
        }
        let parts = [&iri("urn:s")[..], &iri("urn:p"), &key];
        assert!(!write_triple_key(parts, &mut Vec::new()));
    }
}
