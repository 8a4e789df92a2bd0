//! The memory estimate of JSON bytes, without decoding them.

use memchr::memchr2;

use crate::{Error, Result, SqlState};

/// A record may have so many bytes, as one of CSV: it is in memory as a whole.
pub(super) const RECORD_BYTES_MAX: usize = 64 << 20;
/// Lists and objects within each other; the columns are looked for no deeper either.
const DEPTH_MAX: usize = 128;

/// A byte is in the decoder's buffer, which doubles while the old one is there, or in that and in
/// an array.
const TIMES_DECODED: usize = 4;
/// A value has an element and an offset in such buffers, and a place in an array.
const DECODED_VALUE_BYTES: usize = 64;
/// An object has a value in each column that it may have.
const DECODED_FIELD_BYTES: usize = 24;
/// A value by itself, in a list that doubles.
const VALUE_BYTES: usize = 96;
/// An object by itself: a node of a tree.
const OBJECT_BYTES: usize = 768;

/// Where in a text of JSON the next byte is.
#[derive(Debug, Default)]
pub(super) struct Shape {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    in_number: bool,
}

/// What was seen of it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    pub(super) bytes: usize,
    values: usize,
    objects: usize,
}

impl Seen {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            values: self.values.saturating_add(other.values),
            objects: self.objects.saturating_add(other.objects),
        }
    }

    /// Memory to decode it as rows that have so many fields, those within others included.
    pub(super) fn decoded_bytes(&self, fields: usize) -> usize {
        let of_object = DECODED_FIELD_BYTES.saturating_mul(fields);
        (self.bytes.saturating_mul(TIMES_DECODED))
            .saturating_add(self.values.saturating_mul(DECODED_VALUE_BYTES))
            .saturating_add(self.objects.saturating_mul(of_object))
    }

    /// Memory for it as values by themselves.
    pub(super) fn value_bytes(&self) -> usize {
        (self.bytes.saturating_mul(2))
            .saturating_add(self.values.saturating_mul(VALUE_BYTES))
            .saturating_add(self.objects.saturating_mul(OBJECT_BYTES))
    }
}

impl Shape {
    /// Goes over the bytes that come next.
    ///
    /// # Errors
    /// When they are nested too deeply.
    pub(super) fn pass(&mut self, bytes: &[u8], seen: &mut Seen) -> Result<()> {
        seen.bytes = seen.bytes.saturating_add(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.in_text {
                if std::mem::take(&mut self.is_escaped) {
                    at += 1;
                    continue;
                }
                let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) else {
                    return Ok(());
                };
                at += found;
                match bytes[at] {
                    b'"' => self.in_text = false,
                    _ => self.is_escaped = true,
                }
                at += 1;
                continue;
            }
            let was_in_number = std::mem::take(&mut self.in_number);
            match byte {
                b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' => {
                    seen.values += usize::from(!was_in_number);
                    self.in_number = true;
                }
                b'"' => {
                    seen.values += 1;
                    self.in_text = true;
                }
                // null, true, false.
                b'n' | b't' | b'f' => seen.values += 1,
                b'[' | b'{' => {
                    seen.values += 1;
                    seen.objects += usize::from(*byte == b'{');
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        let what = format!("JSON is nested more than {DEPTH_MAX} deep");
                        return Err(Error::new(SqlState::StatementTooComplex, what));
                    }
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }
}

/// A record that is longer than any may be.
pub(super) fn too_long() -> Error {
    let what = format!("a record has more than {RECORD_BYTES_MAX} bytes");
    Error::new(SqlState::ProgramLimitExceeded, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_texts_is_no_value_and_pieces_do_not_matter() {
        let text = br#"{"a[{": "\"[1, 2]\\", "b": [1, -2.5e+3, true, null, {}]}"#;
        for size in [1, 2, 7, text.len()] {
            let (mut shape, mut seen) = (Shape::default(), Seen::default());
            for piece in text.chunks(size) {
                shape.pass(piece, &mut seen).unwrap();
            }
            assert_eq!(shape.depth, 0);
            assert!(!shape.in_text);
            assert_eq!(seen.bytes, text.len());
            assert_eq!(seen.objects, 2);
            // Three texts, a list, two objects, two numbers, two words; `true` ends like a number.
            assert_eq!(seen.values, 11);
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let (mut shape, mut seen) = (Shape::default(), Seen::default());
        let deep = "[".repeat(DEPTH_MAX);
        shape.pass(deep.as_bytes(), &mut seen).unwrap();
        let error = shape.pass(b"[", &mut seen).unwrap_err();
        assert_eq!(error.state.code(), "54001");
    }
}
