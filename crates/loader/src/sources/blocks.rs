//! The splitter of a text into blocks of whole lines, so that several workers parse one file.
//!
//! A line that is too long for a block is handed out piece by piece.

use memchr::{memchr, memchr_iter, memchr2, memrchr};
use std::io::{self, Read};

/// A long line is read in pieces of this length.
const PIECE_BYTES: usize = 1 << 20;

/// Whole lines, except that the last block of a text may end without a line end.
#[derive(Debug)]
pub(crate) struct Block {
    /// Number of the first line in its file, counted from 1.
    pub(crate) first_line: u64,
    buffer: Vec<u8>,
    length: usize,
}

impl Block {
    /// These lines.
    pub(crate) fn of_lines(first_line: u64, lines: Vec<u8>) -> Self {
        Self {
            first_line,
            length: lines.len(),
            buffer: lines,
        }
    }

    /// The lines.
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Its memory, for another block.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// What comes next in a text.
#[derive(Debug)]
pub(crate) enum Next {
    /// Whole lines.
    Block(Block),
    /// A line that is too long for a block: [`BlockReader::long_line`] has to read it.
    LongLine {
        /// Its number in the file, counted from 1.
        number: u64,
    },
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
    /// Blocks of about `block_bytes`, longer only if a single line is longer. A line of
    /// `line_bytes_max` does not become a block.
    pub(crate) fn new(input: R, block_bytes: usize, line_bytes_max: usize) -> Self {
        Self {
            input,
            block_bytes,
            line_bytes_max,
            rest: Vec::new(),
            next_line: 1,
            is_ended: false,
        }
    }

    /// What comes next, or `None` at the end of the text. `buffer` is that of an earlier block, or
    /// empty; what it holds is of no meaning, but keeping it spares clearing the memory.
    pub(crate) fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Option<Next>> {
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
                buffer.truncate(length);
                self.rest = buffer;
                return Ok(Some(Next::LongLine {
                    number: self.next_line,
                }));
            }
            wanted = (length * 2).min(self.line_bytes_max.max(length + 1));
        }
        if length == 0 {
            return Ok(None);
        }
        let first_line = self.next_line;
        self.next_line += line_ends(&buffer[..length]);
        Ok(Some(Next::Block(Block {
            first_line,
            buffer,
            length,
        })))
    }

    /// Hands out the long line that comes next, piece by piece and without its end. An error of
    /// `take` leaves the rest of the line unread.
    pub(crate) fn long_line<E: From<io::Error>>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut piece = std::mem::take(&mut self.rest);
        let mut length = piece.len();
        loop {
            if let Some(end) = memchr2(b'\n', b'\r', &piece[..length]) {
                take(&piece[..end])?;
                let mut next = end + 1;
                if piece[end] == b'\r' {
                    if next == length {
                        length = self.fill(&mut piece, next, next + 1)?;
                    }
                    next += usize::from(piece[..length].get(next) == Some(&b'\n'));
                }
                self.rest.extend_from_slice(&piece[next..length]);
                self.next_line += 1;
                return Ok(());
            }
            take(&piece[..length])?;
            if self.is_ended {
                return Ok(());
            }
            length = self.fill(&mut piece, 0, PIECE_BYTES)?;
        }
    }

    /// Reads until `buffer` holds `wanted` bytes or the text is at its end. Returns how many it
    /// holds.
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
            let mut reader = BlockReader::new(text.as_bytes(), block_bytes, usize::MAX);
            let mut joined = Vec::new();
            let mut buffer = Vec::new();
            while let Some(next) = reader.next(buffer).unwrap() {
                let Next::Block(block) = next else { panic!("{next:?}") };
                prop_assert_eq!(block.first_line, line_ends(&joined) + 1);
                prop_assert!(joined.is_empty() || matches!(joined.last(), Some(b'\n' | b'\r')));
                joined.extend(block.text());
                buffer = block.into_buffer();
            }
            prop_assert_eq!(joined, text.as_bytes());
        }
    }

    /// Gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.1).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    proptest! {
        #[test]
        fn long_lines_are_handed_out_alone_and_nothing_is_lost(
            lines in proptest::collection::vec("[ab]{0,40}", 0..12),
            line_end in "\n|\r\n",
            block_bytes in 1..20_usize,
            line_bytes_max in 1..30_usize,
            read_bytes in 1..50_usize,
        ) {
            let text = lines.join(&line_end);
            let input = Trickle(text.as_bytes(), read_bytes);
            let mut reader = BlockReader::new(input, block_bytes, line_bytes_max);
            let mut found: Vec<String> = Vec::new();
            while let Some(next) = reader.next(Vec::new()).unwrap() {
                match next {
                    Next::Block(block) => {
                        prop_assert_eq!(block.first_line, found.len() as u64 + 1);
                        let block = std::str::from_utf8(block.text()).unwrap();
                        found.extend(block.lines().map(str::to_owned));
                    }
                    Next::LongLine { number } => {
                        prop_assert_eq!(number, found.len() as u64 + 1);
                        let mut line = Vec::new();
                        reader
                            .long_line(|piece| { line.extend_from_slice(piece); Ok::<_, io::Error>(()) })
                            .unwrap();
                        prop_assert!(line.len() + 1 >= line_bytes_max);
                        found.push(String::from_utf8(line).unwrap());
                    }
                }
            }
            let expected: Vec<&str> = text.lines().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
