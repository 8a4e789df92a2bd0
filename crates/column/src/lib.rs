//! The codecs of vectors of 1,024 ids.
//!
//! A column is cut into vectors of at most [`VECTOR_ROWS`] numbers. [`encode`] looks at one vector,
//! computes how many bytes each codec would need, and writes the smallest; [`decode`] brings the
//! numbers back. Vectors know nothing of each other, so any of them can be read alone.
//!
//! ```text
//! vector     codec u8 | rows - 1 u16 | body
//!
//! Constant   value u64
//! Frame      piece of the values
//! Delta      first value u64 | piece of the differences to the row before (wrapping)
//! Runs       runs - 1 u16 | list of the runs' values | piece of the runs' lengths - 1
//! Dictionary entries - 1 u8 | list of the distinct values, ascending | piece of the codes
//! Groups     groups - 1 u8 | per group: rows - 1 u16 | piece of the group numbers
//!            | per group: piece of its values in row order
//! list       0 u8 | piece of the values       or
//!            1 u8 | first value u64 | piece of the differences
//! piece      see `piece.rs`: frame of reference, shift, bit-packing, exceptions
//! ```
//!
//! What each is for: `Constant` the predicate in PSOG, the graph everywhere; `Delta` the sorted
//! column; `Runs` a sorted column with repetitions; `Dictionary` the predicate in SPOG; `Groups`
//! objects of mixed kinds (literals, IRIs, numbers: each kind gets its own base and width); `Frame`
//! everything else.
//!
//! Invariants: `decode(encode(v)) == v` for every vector; decoding any bytes at all ends in values
//! or in an error, never in a panic. Not done here: checksums (the block file has them) and any
//! meaning of the numbers, save that the top four bits tell the kind by which `Groups` divides.

mod bits;
mod decode;
mod encode;
mod piece;
mod plan;
mod search;

pub use decode::{EncodedVector, decode};
pub use encode::encode;

/// Rows of a full vector, and the greatest number of values that can be encoded at once.
pub const VECTOR_ROWS: usize = 1024;

/// A decoded vector; rows beyond the vector's own are of no meaning.
pub type VectorBuffer = [u64; VECTOR_ROWS];

/// How a vector is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// All values are the same.
    Constant = 0,
    /// Distances to the smallest value, bit-packed.
    Frame = 1,
    /// Distances to the value before, bit-packed.
    Delta = 2,
    /// Repeated values stored once with their number of repetitions.
    Runs = 3,
    /// Few distinct values, and per row which of them.
    Dictionary = 4,
    /// Values divided by their top four bits, each group with its own base and width.
    Groups = 5,
}

impl Codec {
    const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            0 => Self::Constant,
            1 => Self::Frame,
            2 => Self::Delta,
            3 => Self::Runs,
            4 => Self::Dictionary,
            5 => Self::Groups,
            _ => return None,
        })
    }
}

/// The bytes are not an encoded vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an encoded vector: {what}")]
pub struct DecodeError {
    /// Which rule the bytes break.
    pub what: &'static str,
}

impl DecodeError {
    const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

#[cfg(test)]
mod tests;
