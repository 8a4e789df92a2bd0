//! A search at the damaged end of a log for a later record, which proves that the bytes were once
//! complete.
//!
//! Any byte may begin such a record, and what looks like its length may reach to the end, so the
//! checksums of all that look like records would take a time that grows with the square of the
//! tail, which whoever writes literals could arrange. Therefore the sums of all prefixes are
//! computed once, at every [`STEP_BYTES`], and the sum of any range follows from two of them: the
//! sum of a whole is that of its first part, moved by the length of the second, xor that of the
//! second.

use crc32c::{crc32c_append, crc32c_combine};

use super::header::{u32_at, u64_at};
use super::{FRAME_BYTES, PREFIX_BYTES, frame_length};

/// Between two sums that are kept.
const STEP_BYTES: usize = 128;

/// The bytes from a position of the log file to its end.
pub(super) struct Tail<'b> {
    bytes: &'b [u8],
    /// Where they begin in the file.
    position: u64,
    salt: u32,
    /// Of the bytes before each step; computed when the first is needed.
    sums: Vec<u32>,
    /// Bytes whose checksum was computed: the cost, for the test.
    pub(super) summed_bytes: u64,
}

impl<'b> Tail<'b> {
    pub(super) fn new(bytes: &'b [u8], position: u64, salt: u32) -> Self {
        Self {
            bytes,
            position,
            salt,
            sums: Vec::new(),
            summed_bytes: 0,
        }
    }

    /// Whether a whole record behind the first byte, of whatever kind, says that the first byte had
    /// been on the disk.
    pub(super) fn was_durable(&mut self) -> bool {
        (1..self.bytes.len()).any(|offset| self.is_witness(offset))
    }

    fn is_witness(&mut self, offset: usize) -> bool {
        let bytes = &self.bytes[offset..];
        // Nearly all offsets end here, before any checksum is computed.
        let start = self.position + offset as u64;
        let tells = |durable: u64| self.position < durable && durable <= start;
        if !u64_at(bytes, FRAME_BYTES).is_some_and(tells) {
            return false;
        }
        let (Some(length), Some(crc)) = (frame_length(bytes), u32_at(bytes, 4)) else {
            return false;
        };
        let content = offset + FRAME_BYTES;
        length >= PREFIX_BYTES
            && content + length <= self.bytes.len()
            && crc32c_combine(self.salt, self.sum(content, content + length), length) == crc
    }

    /// The checksum of a range.
    fn sum(&mut self, from: usize, to: usize) -> u32 {
        let (before, until) = (self.sum_before(from), self.sum_before(to));
        crc32c_combine(before, until, to - from)
    }

    fn sum_before(&mut self, end: usize) -> u32 {
        if self.sums.is_empty() {
            self.sums.reserve(self.bytes.len() / STEP_BYTES + 1);
            let mut sum = 0;
            self.sums.push(sum);
            for step in self.bytes.chunks_exact(STEP_BYTES) {
                sum = crc32c_append(sum, step);
                self.sums.push(sum);
            }
            self.summed_bytes += self.bytes.len() as u64;
        }
        let step = end / STEP_BYTES;
        let rest = &self.bytes[step * STEP_BYTES..end];
        self.summed_bytes += rest.len() as u64;
        crc32c_append(self.sums[step], rest)
    }
}
