//! Inline strings: up to seven bytes and a length.
//!
//! The bytes stand first, padded with zeros, the length last: ids sort as the strings do, and `"a"`
//! differs from `"a\0"`.

/// Longest string inside an id, in bytes.
const BYTES_MAX: usize = 7;

/// A string of at most seven bytes, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortString {
    bytes: [u8; BYTES_MAX],
    length: u8,
}

impl ShortString {
    /// The text. Damaged bits that are no UTF-8 read as an empty string.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

#[inline]
pub(super) fn encode(lexical: &str) -> Option<u64> {
    let bytes = lexical.as_bytes();
    if bytes.len() > BYTES_MAX {
        return None;
    }
    let mut wide = [0u8; 8];
    wide[1..=bytes.len()].copy_from_slice(bytes);
    Some((u64::from_be_bytes(wide) << 4) | bytes.len() as u64)
}

#[inline]
pub(super) fn decode(payload: u64) -> ShortString {
    let wide = (payload >> 4).to_be_bytes();
    let mut bytes = [0; BYTES_MAX];
    bytes.copy_from_slice(&wide[1..]);
    ShortString {
        bytes,
        length: ((payload & 15) as u8).min(BYTES_MAX as u8),
    }
}
