//! A partial parser of Thrift's compact protocol, to measure Parquet metadata.
//!
//! ```text
//! struct   (delta of the field's number << 4 | type, value)*, 0      a delta of 0: the number follows as a zigzag varint
//! list     size << 4 | type, values                                  a size of 15: it follows as a varint
//! i16-i64  zigzag varint       binary  length as a varint, bytes     double  8 bytes
//! true, false  in the type of the field; a byte in lists
//! ```
//!
//! A value takes a byte at least, so that no list is longer than what is left.

/// Structs and lists in each other.
const DEPTH_MAX: usize = 32;

const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const INTEGERS: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// The bytes are no struct of thrift's, or claim more than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// What was seen of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its bytes.
    pub(super) bytes: usize,
    /// Structs, lists and texts in it, itself too: each becomes something of its own in memory.
    pub(super) parts: usize,
}

/// Looks at the struct that bytes begin with. `see` gets each integer, with the numbers of the
/// fields that lead to it.
pub(super) fn walk(bytes: &[u8], see: &mut dyn FnMut(&[i16], i64)) -> Result<Seen, Malformed> {
    let mut walk = Walk {
        rest: bytes,
        parts: 0,
        path: Vec::new(),
        see,
    };
    walk.structure()?;
    Ok(Seen {
        bytes: bytes.len() - walk.rest.len(),
        parts: walk.parts,
    })
}

struct Walk<'b, 's> {
    rest: &'b [u8],
    parts: usize,
    path: Vec<i16>,
    see: &'s mut dyn FnMut(&[i16], i64),
}

impl Walk<'_, '_> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.rest = self.rest.get(bytes..).ok_or(Malformed)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn integer(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn structure(&mut self) -> Result<(), Malformed> {
        self.parts += 1;
        let mut field: i16 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.integer()?).map_err(|_| Malformed)?,
                delta => field.checked_add(i16::from(delta)).ok_or(Malformed)?,
            };
            let kind = head & 0x0f;
            if BOOLEANS.contains(&kind) {
                continue;
            }
            self.path.push(field);
            if self.path.len() > DEPTH_MAX {
                return Err(Malformed);
            }
            self.value(kind, DEPTH_MAX)?;
            self.path.pop();
        }
    }

    /// `depth`: how many lists may still be within each other.
    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Malformed> {
        match kind {
            BYTE => self.skip(1),
            _ if BOOLEANS.contains(&kind) => self.skip(1),
            _ if INTEGERS.contains(&kind) => {
                let value = self.integer()?;
                (self.see)(&self.path, value);
                Ok(())
            }
            DOUBLE => self.skip(8),
            UUID => self.skip(16),
            BINARY => {
                self.parts += 1;
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                self.skip(length)
            }
            STRUCT => self.structure(),
            _ if LISTS.contains(&kind) => {
                let head = self.byte()?;
                let size = match head >> 4 {
                    15 => self.varint()?,
                    size => u64::from(size),
                };
                self.values(size, &[head & 0x0f], depth)
            }
            MAP => {
                let size = self.varint()?;
                if size == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                self.values(size, &[kinds >> 4, kinds & 0x0f], depth)
            }
            _ => Err(Malformed),
        }
    }

    fn values(&mut self, size: u64, kinds: &[u8], depth: usize) -> Result<(), Malformed> {
        self.parts += 1;
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        if size > self.rest.len() as u64 {
            return Err(Malformed);
        }
        for _ in 0..size {
            for kind in kinds {
                self.value(*kind, depth)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Integers with the fields that lead to them.
    type Integers = Vec<(Vec<i16>, i64)>;

    fn integers(bytes: &[u8]) -> Result<(Seen, Integers), Malformed> {
        let mut found = Vec::new();
        let seen = walk(bytes, &mut |path, value| found.push((path.to_vec(), value)))?;
        Ok((seen, found))
    }

    #[test]
    fn fields_have_their_numbers_and_what_follows_is_left() {
        // 1: 7, 3: {1: -1, 17: 300}, 4: ["ab", "c"], 5: true; and a byte behind it.
        let bytes = [
            0x15, 14, 0x2c, 0x15, 1, 0x05, 34, 0xd8, 4, 0, 0x19, 0x28, 2, b'a', b'b', 1, b'c',
            0x11, 0, 99,
        ];
        let (seen, found) = integers(&bytes).unwrap();
        assert_eq!(found, [(vec![1], 7), (vec![3, 1], -1), (vec![3, 17], 300)]);
        let parts = 1 + 1 + 1 + 2;
        assert_eq!((seen.bytes, seen.parts), (bytes.len() - 1, parts));
    }

    #[test]
    fn what_claims_more_than_there_is_is_refused() {
        // A list of 2^31 - 1 structs, a text of a gigabyte, structs without end, a varint without
        // end.
        let list = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0];
        let text = [0x18, 0x80, 0x80, 0x80, 0x80, 0x04, b'x', 0];
        for bytes in [
            &list[..],
            &text,
            &[0x1c; 1_000],
            &[0x15; 20],
            &[0x16, 0xff],
            &[],
        ] {
            assert_eq!(integers(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok((seen, _)) = integers(&bytes) {
                prop_assert!(seen.bytes <= bytes.len() && seen.parts <= bytes.len());
            }
        }
    }
}
