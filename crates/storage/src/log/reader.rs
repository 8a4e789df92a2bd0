//! Reading a log file back, and telling a torn tail from damage.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::header::{read_up_to, u32_at, u64_at};
use super::record::LogRecord;
use super::{FRAME_BYTES, KIND_COMMIT, KIND_MARK, LogHeader, PREFIX_BYTES, RECORD_BYTES_MAX};
use crate::io::FileSystem;
use crate::{Error, Result};

const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Reads a log file from its first record, or from any later one, to its end.
///
/// Needs no lock: while a writer appends, the end is where it was when it was reached.
pub struct LogReader<'a> {
    file_system: &'a dyn FileSystem,
    path: PathBuf,
    header: LogHeader,
    salt: u32,
    input: BufReader<Box<dyn Read + Send>>,
    position: u64,
    /// Everything before it is known to have been on the disk.
    durable: u64,
    next_commit: Option<u64>,
    torn_bytes: Option<u64>,
}

/// A record and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRecord {
    /// Its first byte in the file.
    pub start: u64,
    /// The byte after its last one.
    pub end: u64,
    /// The record.
    pub record: LogRecord,
}

/// Where a log file ends in truth; what a writer needs to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The byte after the last whole record.
    pub position: u64,
    /// Everything before this byte is known to have been on the disk.
    pub durable: u64,
    /// Bytes after `position` that are no record: what a writer left that was killed, or that is writing now.
    pub torn_bytes: u64,
    pub(super) salt: u32,
}

/// What stands at a position.
enum Frame {
    Commit(LogRecord, u64),
    /// Nothing, or a mark: the file ends here.
    End,
    /// Bytes that are no record, with all that follows them.
    Bad(Vec<u8>),
}

impl fmt::Debug for LogReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("path", &self.path)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<'a> LogReader<'a> {
    /// Opens a log file at its first record.
    pub fn open(file_system: &'a dyn FileSystem, path: &Path) -> Result<Self> {
        let mut input = file_system.open(path)?;
        let (header, salt, position) = LogHeader::read(&mut *input, path)?;
        Ok(Self {
            file_system,
            path: path.to_path_buf(),
            next_commit: Some(header.first_commit),
            header,
            salt,
            input: BufReader::with_capacity(READ_BUFFER_BYTES, input),
            position,
            durable: position,
            torn_bytes: None,
        })
    }

    /// Opens a log file at the record that begins at a byte, as [`LoggedRecord`] or [`super::Appended`] gave it.
    pub fn open_at(file_system: &'a dyn FileSystem, path: &Path, start: u64) -> Result<Self> {
        let mut reader = Self::open(file_system, path)?;
        if start < reader.position {
            return Err(Error::invalid_input(path, "no record begins in the header"));
        }
        if start > reader.position {
            reader.next_commit = None;
            reader.durable = start;
        }
        reader.go_to(start)?;
        Ok(reader)
    }

    fn go_to(&mut self, start: u64) -> Result<()> {
        let input = self.file_system.open_at(&self.path, start)?;
        self.input = BufReader::with_capacity(READ_BUFFER_BYTES, input);
        self.position = start;
        Ok(())
    }

    /// What the file says about itself.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The next record; `None` at the end, however often it is asked.
    ///
    /// Fails with [`Error::Corrupt`] where a record that had been on the disk can no longer be read.
    pub fn next_record(&mut self) -> Result<Option<LoggedRecord>> {
        if self.torn_bytes.is_some() {
            return Ok(None);
        }
        let start = self.position;
        let mut frame = self.read_frame()?;
        if let Frame::Bad(rest) = &frame
            && self.was_durable(rest)
        {
            // Perhaps a writer finished the record after it was read here, and more after it: look again.
            self.go_to(start)?;
            frame = self.read_frame()?;
        }
        match frame {
            Frame::Commit(record, bytes) => {
                self.expect_commit(record.commit)?;
                self.position += bytes;
                Ok(Some(LoggedRecord {
                    start,
                    end: self.position,
                    record,
                }))
            }
            Frame::End => {
                self.torn_bytes = Some(0);
                Ok(None)
            }
            Frame::Bad(rest) if self.was_durable(&rest) => Err(Error::corrupt(
                &self.path,
                start,
                "the record of a commit does not match its checksum, and it was whole once",
            )),
            Frame::Bad(rest) => {
                self.torn_bytes = Some(rest.len() as u64);
                Ok(None)
            }
        }
    }

    /// Where the file ends; reads on to it if there are records left.
    pub fn end(&mut self) -> Result<LogEnd> {
        while self.next_record()?.is_some() {}
        Ok(LogEnd {
            position: self.position,
            durable: self.durable.min(self.position),
            torn_bytes: self.torn_bytes.unwrap_or(0),
            salt: self.salt,
        })
    }

    fn read_frame(&mut self) -> Result<Frame> {
        let mut bytes = Vec::with_capacity(FRAME_BYTES);
        read_up_to(&mut self.input, FRAME_BYTES, &mut bytes, &self.path)?;
        if bytes.is_empty() {
            return Ok(Frame::End);
        }
        if let Some(length) = frame_length(&bytes) {
            read_up_to(&mut self.input, length, &mut bytes, &self.path)?;
        }
        let Some((durable, kind)) = self.check_frame(&bytes, self.position) else {
            read_up_to(&mut self.input, usize::MAX, &mut bytes, &self.path)?;
            return Ok(Frame::Bad(bytes));
        };
        self.durable = self.durable.max(durable);
        if kind == KIND_MARK {
            return Ok(Frame::End);
        }
        let content = &bytes[FRAME_BYTES + PREFIX_BYTES..];
        match LogRecord::decode(content) {
            Some(record) => Ok(Frame::Commit(record, bytes.len() as u64)),
            None => Err(Error::corrupt(
                &self.path,
                self.position,
                "a record has the right checksum but not the form of a commit",
            )),
        }
    }

    /// The durable position and the kind of the record that begins with these bytes, if it is one and whole.
    fn check_frame(&self, bytes: &[u8], start: u64) -> Option<(u64, u8)> {
        let length = frame_length(bytes)?;
        let content = bytes.get(FRAME_BYTES..FRAME_BYTES + length)?;
        let durable = u64_at(content, 0)?;
        let kind = *content.get(8)?;
        let is_plausible = durable <= start && matches!(kind, KIND_COMMIT | KIND_MARK);
        let crc = || crc32c::crc32c_append(self.salt, content);
        (is_plausible && u32_at(bytes, 4)? == crc()).then_some((durable, kind))
    }

    /// Whether a record after the bad one at the present position says that the bad one had been on the disk.
    fn was_durable(&self, rest: &[u8]) -> bool {
        let mut offsets = 1..rest.len();
        offsets.any(|offset| {
            let bytes = &rest[offset..];
            let start = self.position + offset as u64;
            // Nearly all offsets end here, before any checksum is computed.
            u64_at(bytes, FRAME_BYTES).is_some_and(|durable| durable > self.position)
                && self.check_frame(bytes, start).is_some()
        })
    }

    fn expect_commit(&mut self, found: u64) -> Result<()> {
        if let Some(expected) = self.next_commit
            && expected != found
        {
            let what = format!("it has commit {found} where commit {expected} belongs");
            return Err(Error::corrupt(&self.path, self.position, what));
        }
        self.next_commit = Some(found + 1);
        Ok(())
    }
}

fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = u32_at(bytes, 0)? as usize;
    (PREFIX_BYTES..=RECORD_BYTES_MAX)
        .contains(&length)
        .then_some(length)
}
