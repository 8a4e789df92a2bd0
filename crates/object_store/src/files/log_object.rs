//! The format of the objects of a log file.
//!
//! Each sync of a log file puts one object, or several where it is long: `log/<log id>/<number>`,
//! ten digits, dense from zero, put only where none is. Little endian:
//!
//! ```text
//! magic "ORRERYLO" | kind u8 (1 bytes, 2 fence) | epoch u64 | offset u64 | length of the whole file after it u64 |
//! crc32c u32 of everything else | bytes, which stand at the offset
//! ```
//!
//! A fence is what a new writer puts behind all objects of the writers before it: their next put is
//! refused.

use bytes::Bytes;

const MAGIC: &[u8; 8] = b"ORRERYLO";
const KIND_BYTES: u8 = 1;
const KIND_FENCE: u8 = 2;
const CRC_AT: usize = 33;
const HEADER_BYTES: usize = CRC_AT + 4;

/// An object of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogObject {
    /// The turn of the writer that put it.
    pub(crate) epoch: u64,
    pub(crate) content: LogContent,
}

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogContent {
    Bytes {
        offset: u64,
        /// Of the file after it.
        length: u64,
        bytes: Bytes,
    },
    Fence,
}

impl LogObject {
    pub(crate) fn to_bytes(&self) -> Bytes {
        let (kind, offset, length, content) = match &self.content {
            LogContent::Bytes {
                offset,
                length,
                bytes,
            } => (KIND_BYTES, *offset, *length, &bytes[..]),
            LogContent::Fence => (KIND_FENCE, 0, 0, &[][..]),
        };
        let mut out = Vec::with_capacity(HEADER_BYTES + content.len());
        out.extend_from_slice(MAGIC);
        out.push(kind);
        for number in [self.epoch, offset, length] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&out), content);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(content);
        Bytes::from(out)
    }

    /// What is wrong with the bytes otherwise.
    pub(crate) fn parse(object: &Bytes) -> Result<Self, &'static str> {
        let Some((header, content)) = object.split_at_checked(HEADER_BYTES) else {
            return Err("it is shorter than its header");
        };
        if !header.starts_with(MAGIC) {
            return Err("it does not begin as an object of a log");
        }
        let word = |at: usize| {
            let bytes = header[at..].first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..CRC_AT]), content);
        if header[CRC_AT..] != crc.to_le_bytes() {
            return Err("it does not match its checksum");
        }
        let (epoch, offset, length) = (word(9), word(17), word(25));
        let content = match header[8] {
            KIND_BYTES if offset.checked_add(content.len() as u64) == Some(length) => {
                LogContent::Bytes {
                    offset,
                    length,
                    bytes: object.slice(HEADER_BYTES..),
                }
            }
            KIND_BYTES => return Err("its bytes do not end where the file does"),
            KIND_FENCE => LogContent::Fence,
            _ => return Err("it is of an unknown kind; use a newer program"),
        };
        Ok(Self { epoch, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_back_and_no_flipped_bit_is_believed() {
        let bytes = LogContent::Bytes {
            offset: 7,
            length: 12,
            bytes: Bytes::from_static(b"bytes"),
        };
        for content in [bytes, LogContent::Fence] {
            let object = LogObject { epoch: 3, content };
            let whole = object.to_bytes();
            assert_eq!(LogObject::parse(&whole), Ok(object));
            for bit in 0..whole.len() * 8 {
                let mut damaged = whole.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(LogObject::parse(&damaged.into()).is_err(), "bit {bit}");
            }
            for length in 0..whole.len() {
                assert!(LogObject::parse(&whole.slice(..length)).is_err());
            }
        }
    }
}
