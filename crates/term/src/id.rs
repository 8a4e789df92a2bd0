//! The 64-bit term id.
//!
//! ```text
//!  63   60 59                                                           0
//! +-------+--------------------------------------------------------------+
//! | kind  | payload: a rank in the dictionary, or the value itself        |
//! +-------+--------------------------------------------------------------+
//! ```
//!
//! A dictionary rank uses the low 48 bits of its payload. The twelve bits above
//! it are zero today: they are the room for a bucket (hash of the term), so that
//! a cluster can tell from the id alone which machine holds the text.

use std::fmt;

/// Number of payload bits in a [`TermId`].
pub(crate) const PAYLOAD_BITS: u32 = 60;
/// Mask of the payload.
pub(crate) const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;

/// What an id holds: the top four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TermKind {
    /// Not a term: the mark of the default graph.
    Special = 0,
    /// A numbered blank node; the payload is the number.
    BlankNode = 1,
    /// An IRI; the payload is its rank in the dictionary.
    Iri = 2,
    /// A literal that does not fit inline; the payload is its rank in the dictionary.
    Literal = 3,
    /// A triple term (RDF 1.2); the payload is its rank in the dictionary.
    TripleTerm = 4,
    /// `xsd:boolean`, `true` or `false`.
    Boolean = 5,
    /// `xsd:integer` and the types derived from it.
    Integer = 6,
    /// `xsd:decimal`.
    Decimal = 7,
    /// `xsd:double` written in its canonical form (`1.0E0`).
    Double = 8,
    /// `xsd:double` written without exponent (`0.1`).
    DoublePlain = 9,
    /// `xsd:date`.
    Date = 11,
    /// `xsd:dateTime`.
    DateTime = 12,
    /// `xsd:string` of at most seven bytes.
    ShortString = 13,
    /// A term that came by an update and that the base dictionary does not have; the payload
    /// is its index in the delta dictionary.
    Delta = 14,
    /// A term computed while a query runs; the payload is an index into that
    /// query's own table. Never stored.
    QueryLocal = 15,
}

impl TermKind {
    const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            0 => Self::Special,
            1 => Self::BlankNode,
            2 => Self::Iri,
            3 => Self::Literal,
            4 => Self::TripleTerm,
            5 => Self::Boolean,
            6 => Self::Integer,
            7 => Self::Decimal,
            8 => Self::Double,
            9 => Self::DoublePlain,
            11 => Self::Date,
            12 => Self::DateTime,
            13 => Self::ShortString,
            14 => Self::Delta,
            15 => Self::QueryLocal,
            _ => return None,
        })
    }
}

/// A term in eight bytes. Ordered by kind, then by payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TermId(u64);

impl TermId {
    /// The graph position of a quad in the default graph. Sorts before every term.
    pub const DEFAULT_GRAPH: Self = Self(1);
    /// The smallest id there can be.
    pub const MIN: Self = Self(0);
    /// The largest id there can be.
    pub const MAX: Self = Self(u64::MAX);
    /// Largest blank node number, and largest dictionary rank plus one.
    pub const PAYLOAD_LIMIT: u64 = 1 << 48;

    /// The id with exactly these bits, as it was stored. Any bits are accepted: what comes from
    /// a checksummed file is trusted, and an unknown kind shows in [`Self::checked_kind`].
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits to store.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn new(kind: TermKind, payload: u64) -> Self {
        debug_assert!(payload <= PAYLOAD_MASK);
        Self(((kind as u64) << PAYLOAD_BITS) | payload)
    }

    /// What the id holds. A tag that no version has given out reads as [`TermKind::Special`],
    /// which nothing can be looked up under.
    #[inline]
    pub const fn kind(self) -> TermKind {
        match TermKind::from_tag((self.0 >> PAYLOAD_BITS) as u8) {
            Some(kind) => kind,
            None => TermKind::Special,
        }
    }

    /// What the id holds, or `None` for a tag that this version does not know.
    pub const fn checked_kind(self) -> Option<TermKind> {
        TermKind::from_tag((self.0 >> PAYLOAD_BITS) as u8)
    }

    /// The sixty bits below the kind.
    #[inline]
    pub const fn payload(self) -> u64 {
        self.0 & PAYLOAD_MASK
    }

    /// The smallest id of a kind.
    pub const fn first_of(kind: TermKind) -> Self {
        Self::new(kind, 0)
    }

    /// The largest id of a kind.
    pub const fn last_of(kind: TermKind) -> Self {
        Self::new(kind, PAYLOAD_MASK)
    }

    /// The blank node of this number (below [`Self::PAYLOAD_LIMIT`]).
    #[inline]
    pub const fn blank_node(number: u64) -> Self {
        assert!(number < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::BlankNode, number)
    }

    /// The IRI of this rank in the dictionary (below [`Self::PAYLOAD_LIMIT`]).
    #[inline]
    pub const fn iri(rank: u64) -> Self {
        assert!(rank < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::Iri, rank)
    }

    /// The literal of this rank in the dictionary (below [`Self::PAYLOAD_LIMIT`]).
    #[inline]
    pub const fn literal(rank: u64) -> Self {
        assert!(rank < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::Literal, rank)
    }

    /// The triple term of this rank in the dictionary (below [`Self::PAYLOAD_LIMIT`]).
    #[inline]
    pub const fn triple_term(rank: u64) -> Self {
        assert!(rank < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::TripleTerm, rank)
    }

    /// The term at this index of the delta dictionary (below [`Self::PAYLOAD_LIMIT`]).
    #[inline]
    pub const fn delta(index: u64) -> Self {
        assert!(index < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::Delta, index)
    }

    /// The term at this index of the running query's own table.
    #[inline]
    pub const fn query_local(index: u64) -> Self {
        assert!(index < Self::PAYLOAD_LIMIT);
        Self::new(TermKind::QueryLocal, index)
    }

    /// Whether the text stands in the dictionary, with the payload as its rank.
    #[inline]
    pub const fn is_dictionary(self) -> bool {
        matches!(
            self.kind(),
            TermKind::Iri | TermKind::Literal | TermKind::TripleTerm
        )
    }

    /// Whether the id alone tells the whole literal.
    #[inline]
    pub const fn is_inline(self) -> bool {
        let tag = (self.0 >> PAYLOAD_BITS) as u8;
        tag >= TermKind::Boolean as u8 && tag <= TermKind::ShortString as u8
    }
}

impl fmt::Debug for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.checked_kind() {
            Some(TermKind::Special) if *self == Self::DEFAULT_GRAPH => f.write_str("DefaultGraph"),
            Some(kind) => write!(f, "{kind:?}({:#x})", self.payload()),
            None => write!(f, "Unknown({:#x})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_kind_then_payload() {
        let ascending = [
            TermId::DEFAULT_GRAPH,
            TermId::blank_node(0),
            TermId::blank_node(7),
            TermId::iri(0),
            TermId::iri(9),
            TermId::literal(10),
            TermId::triple_term(11),
            TermId::delta(3),
            TermId::query_local(0),
        ];
        assert!(ascending.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn an_unknown_tag_is_seen() {
        let id = TermId::from_bits(10 << PAYLOAD_BITS);
        assert_eq!(id.checked_kind(), None);
        assert_eq!(id.kind(), TermKind::Special);
        assert!(!id.is_dictionary());
    }
}
