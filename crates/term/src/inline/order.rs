//! Comparison of inline values by the bits of their ids.
//!
//! Ids of one kind ascend with their values, but for what stands below the value to give the text
//! back: the datatype of an integer, the digits of a decimal, the zone of a date. [`ValueOrder`]
//! says which bits are which, so that a whole column can be compared in a loop without decoding an
//! id.

use super::calendar::{FRACTION_DIGITS_BITS, ZONE_BITS};
use super::number::{BIAS, DETAIL_BITS};
use crate::id::{PAYLOAD_MASK, TermId, TermKind};

/// Which bits of an id are its value; see the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueOrder {
    /// Two ids that agree in these bits can be compared.
    pub alike: u64,
    /// So many low bits do not belong to the value: the ids above them are equal or ordered as the
    /// values are.
    pub shift: u32,
}

impl TermId {
    /// How to compare this id with others of its kind; `None` for booleans and for what is not
    /// inline.
    #[inline]
    pub const fn value_order(self) -> Option<ValueOrder> {
        let (zone, shift) = match self.kind() {
            TermKind::Integer | TermKind::Decimal => (0, DETAIL_BITS),
            TermKind::Double | TermKind::DoublePlain | TermKind::ShortString => (0, 0),
            // A date with a zone and one without have no order where they are less than 14 hours
            // apart, so the zones must be the same.
            TermKind::Date => ((1 << ZONE_BITS) - 1, ZONE_BITS),
            TermKind::DateTime => (
                ((1 << ZONE_BITS) - 1) << FRACTION_DIGITS_BITS,
                ZONE_BITS + FRACTION_DIGITS_BITS,
            ),
            TermKind::Special
            | TermKind::BlankNode
            | TermKind::Iri
            | TermKind::Literal
            | TermKind::TripleTerm
            | TermKind::Boolean
            | TermKind::Delta
            | TermKind::QueryLocal => return None,
        };
        Some(ValueOrder {
            alike: !PAYLOAD_MASK | zone,
            shift,
        })
    }

    /// The value of an integer of whatever integer type that is inside the id. Two operations and a
    /// comparison.
    #[inline]
    pub const fn integer_value(self) -> Option<i64> {
        match self.kind() {
            TermKind::Integer => Some((self.payload() >> DETAIL_BITS) as i64 - BIAS),
            _ => None,
        }
    }
}
