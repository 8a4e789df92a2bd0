//! Cutting a text into blocks of whole lines, so that several workers can parse one file.

use memchr::{memchr, memchr_iter, memrchr};
use std::io::{self, Read};

/// The longest line that is accepted, however much memory there is. A line must stand in memory whole.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 30;

/// Whole lines, except that the last block of a text may end without a line end.
#[derive(Debug)]
pub(crate) struct Block {
    /// Number of the first line in its file, counted from 1.
    pub(crate) first_line: u64,
    buffer: Vec<u8>,
    length: usize,
}

impl Block {
    /// The lines.
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Its memory, for another block.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// Reads a text block by block.
pub(crate) struct BlockReader<R> {
    input: R,
    block_bytes: usize,
    line_bytes_max: usize,
    /// The beginning of a line whose end is not read yet.
    rest: Vec<u8>,
    next_line: u64,
    is_ended: bool,
}

impl<R: Read> BlockReader<R> {
    /// Blocks of about `block_bytes`, longer only if a single line is longer. A line of `line_bytes_max` is an error.
    pub(crate) fn new(input: R, block_bytes: usize, line_bytes_max: usize) -> Self {
        Self {
            input,
            block_bytes,
            line_bytes_max: line_bytes_max.min(LINE_BYTES_MAX),
            rest: Vec::new(),
            next_line: 1,
            is_ended: false,
        }
    }

    /// The next block, or `None` at the end of the text. `buffer` is that of an earlier block, or empty;
    /// what it holds is of no meaning, but keeping it spares clearing the memory.
    pub(crate) fn next_block(&mut self, mut buffer: Vec<u8>) -> io::Result<Option<Block>> {
        let mut length = self.rest.len();
        buffer.resize(buffer.len().max(length), 0);
        buffer[..length].copy_from_slice(&self.rest);
        self.rest.clear();
        let mut wanted = self.block_bytes.max(length + 1);
        while !self.is_ended {
            length = self.fill(&mut buffer, length, wanted)?;
            if self.is_ended {
                break;
            }
            if let Some(end) = last_line_end(&buffer[..length]) {
                self.rest.extend_from_slice(&buffer[end..length]);
                length = end;
                break;
            }
            if length >= self.line_bytes_max {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "line {} is longer than {} bytes, which is the limit; it grows with the memory that is given, up to 1 GiB",
                        self.next_line, self.line_bytes_max
                    ),
                ));
            }
            wanted = (length * 2).min(self.line_bytes_max);
        }
        if length == 0 {
            return Ok(None);
        }
        let first_line = self.next_line;
        self.next_line += line_ends(&buffer[..length]);
        Ok(Some(Block {
            first_line,
            buffer,
            length,
        }))
    }

    /// Reads until `buffer` holds `wanted` bytes or the text is at its end. Returns how many it holds.
    fn fill(&mut self, buffer: &mut Vec<u8>, length: usize, wanted: usize) -> io::Result<usize> {
        buffer.resize(buffer.len().max(wanted), 0);
        let mut length = length;
        while length < wanted {
            match self.input.read(&mut buffer[length..wanted]) {
                Ok(0) => {
                    self.is_ended = true;
                    break;
                }
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }
}

/// Where the last whole line ends. A carriage return counts only in a text without line feeds,
/// and only if it is surely no half of a pair.
fn last_line_end(bytes: &[u8]) -> Option<usize> {
    memrchr(b'\n', bytes)
        .or_else(|| memrchr(b'\r', &bytes[..bytes.len().saturating_sub(1)]))
        .map(|at| at + 1)
}

/// How many lines end here: at line feeds, and at carriage returns without a line feed behind.
pub(crate) fn line_ends(bytes: &[u8]) -> u64 {
    let line_feeds = memchr_iter(b'\n', bytes).count();
    let carriage_returns = if memchr(b'\r', bytes).is_some() {
        memchr_iter(b'\r', bytes)
            .filter(|&at| bytes.get(at + 1) != Some(&b'\n'))
            .count()
    } else {
        0
    };
    (line_feeds + carriage_returns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_are_whole_lines_and_together_the_text(
            text in "[ab]{0,5}(\n|\r\n|\r)?([ab]{0,9}(\n|\r\n)){0,20}[ab]{0,3}",
            block_bytes in 1..40_usize,
        ) {
            let mut reader = BlockReader::new(text.as_bytes(), block_bytes, LINE_BYTES_MAX);
            let mut joined = Vec::new();
            let mut buffer = Vec::new();
            while let Some(block) = reader.next_block(buffer).unwrap() {
                prop_assert_eq!(block.first_line, line_ends(&joined) + 1);
                prop_assert!(joined.is_empty() || matches!(joined.last(), Some(b'\n' | b'\r')));
                joined.extend(block.text());
                buffer = block.into_buffer();
            }
            prop_assert_eq!(joined, text.as_bytes());
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let text = ["short", &"x".repeat(99), "short"].join("\n");
        let mut blocks = BlockReader::new(text.as_bytes(), 8, 101);
        let mut length = 0;
        while let Some(block) = blocks.next_block(Vec::new()).unwrap() {
            length += block.text().len();
        }
        assert_eq!(length, text.len());
        let mut blocks = BlockReader::new(text.as_bytes(), 8, 99);
        assert!(blocks.next_block(Vec::new()).unwrap().is_some());
        let error = blocks.next_block(Vec::new()).unwrap_err().to_string();
        assert!(
            error.starts_with("line 2 is longer than 99 bytes"),
            "{error}"
        );
    }
}
