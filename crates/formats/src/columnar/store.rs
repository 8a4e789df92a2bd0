//! The rows of an answer until the types of its columns are known: in memory, and beyond
//! [`MEMORY_BYTES`] in a temporary file that has no name and goes with the process.
//!
//! ```text
//! unbound       0x00
//! blank node    0x01 number as eight bytes
//! other term    0x02 length as four bytes, term key
//! ```
//! Numbers are little-endian.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};

use orrery_term::{Term, parse_key, write_key};

use crate::FormatError;

/// Rows are kept in memory up to here.
const MEMORY_BYTES: usize = 1 << 20;
/// Buffer of the file.
const FILE_BUFFER_BYTES: usize = 1 << 16;

const UNBOUND: u8 = 0;
const BLANK_NODE: u8 = 1;
const KEY: u8 = 2;

/// Rows being written.
#[derive(Debug)]
pub(super) struct RowStore {
    temp_dir: PathBuf,
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    key: Vec<u8>,
    rows: u64,
}

/// Rows being read, in their order.
#[derive(Debug)]
pub(super) struct RowReader {
    source: Source,
    temp_dir: PathBuf,
    key: Vec<u8>,
    rows_left: u64,
}

#[derive(Debug)]
enum Source {
    Memory(Cursor<Vec<u8>>),
    File(BufReader<File>),
}

fn spill_error(temp_dir: &Path, error: impl std::fmt::Display) -> FormatError {
    FormatError::Spill {
        directory: temp_dir.to_owned(),
        message: error.to_string(),
    }
}

impl RowStore {
    pub(super) fn new(temp_dir: &Path) -> Self {
        Self {
            temp_dir: temp_dir.to_owned(),
            memory: Vec::new(),
            file: None,
            key: Vec::new(),
            rows: 0,
        }
    }

    /// Appends a term, or that there is none.
    pub(super) fn push(&mut self, term: Option<&Term<'_>>) -> Result<(), FormatError> {
        match term {
            None => self.memory.push(UNBOUND),
            Some(Term::BlankNode(number)) => {
                self.memory.push(BLANK_NODE);
                self.memory.extend_from_slice(&number.to_le_bytes());
            }
            Some(term) => {
                self.key.clear();
                write_key(term, &mut self.key);
                let length = u32::try_from(self.key.len())
                    .map_err(|_| spill_error(&self.temp_dir, "a term is larger than 4 GiB"))?;
                self.memory.push(KEY);
                self.memory.extend_from_slice(&length.to_le_bytes());
                self.memory.extend_from_slice(&self.key);
            }
        }
        if self.memory.len() >= MEMORY_BYTES {
            self.spill()
                .map_err(|error| spill_error(&self.temp_dir, error))?;
        }
        Ok(())
    }

    pub(super) fn end_row(&mut self) {
        self.rows += 1;
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.temp_dir)?;
                self.file
                    .insert(BufWriter::with_capacity(FILE_BUFFER_BYTES, file))
            }
        };
        file.write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }

    /// All rows again, from the first.
    pub(super) fn into_reader(mut self) -> Result<RowReader, FormatError> {
        let source = self
            .reopen()
            .map_err(|error| spill_error(&self.temp_dir, error))?;
        Ok(RowReader {
            source,
            temp_dir: self.temp_dir,
            key: self.key,
            rows_left: self.rows,
        })
    }

    fn reopen(&mut self) -> io::Result<Source> {
        if self.file.is_none() {
            let rows = std::mem::take(&mut self.memory);
            return Ok(Source::Memory(Cursor::new(rows)));
        }
        self.spill()?;
        let Some(file) = self.file.take() else {
            return Err(io::Error::other("the file is gone"));
        };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Source::File(BufReader::with_capacity(
            FILE_BUFFER_BYTES,
            file,
        )))
    }
}

impl RowReader {
    /// Whether there is a further row; its terms are then read one by one.
    pub(super) fn begin_row(&mut self) -> bool {
        let has_row = self.rows_left > 0;
        self.rows_left = self.rows_left.saturating_sub(1);
        has_row
    }

    /// Gives the next term of the row to `take`; returns how many bytes it has.
    pub(super) fn next(
        &mut self,
        take: impl FnOnce(Option<&Term<'_>>),
    ) -> Result<usize, FormatError> {
        self.read(take)
            .map_err(|error| spill_error(&self.temp_dir, error))
    }

    fn read(&mut self, take: impl FnOnce(Option<&Term<'_>>)) -> io::Result<usize> {
        let mut tag = [0];
        self.source.read_exact(&mut tag)?;
        match tag[0] {
            UNBOUND => {
                take(None);
                Ok(1)
            }
            BLANK_NODE => {
                let mut number = [0; 8];
                self.source.read_exact(&mut number)?;
                take(Some(&Term::BlankNode(u64::from_le_bytes(number))));
                Ok(1 + number.len())
            }
            KEY => {
                let mut length = [0; 4];
                self.source.read_exact(&mut length)?;
                self.key.resize(u32::from_le_bytes(length) as usize, 0);
                self.source.read_exact(&mut self.key)?;
                take(Some(&parse_key(&self.key).map_err(io::Error::other)?));
                Ok(self.key.len())
            }
            other => Err(io::Error::other(format!("unknown mark {other}"))),
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Memory(memory) => memory.read(buffer),
            Self::File(file) => file.read(buffer),
        }
    }
}
