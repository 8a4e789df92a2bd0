//! The reader of log files, which tells a torn tail from damage.
//!
//! The end is where no record begins any more: at the end of the file, at a mark, at bytes that are
//! none. What stands there is searched ([`super::tail`]) for a record which says that all before it
//! had been on the disk. If there is one, then what can no longer be read was whole once, also
//! where an old mark came back in its place; that is damage.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::header::{ReadHeader, VERSION, read_up_to, u32_at, u64_at};
use super::record::{LogRecord, RecordError};
use super::tail::Tail;
use super::{
    FRAME_BYTES, KIND_COMMIT, KIND_MARK, KIND_UNSECTIONED_CLEARING_COMMIT, KIND_UNSECTIONED_COMMIT,
    LogHeader, MARK_BYTES, PREFIX_BYTES, frame_length, mark_bytes,
};
use crate::files::io::FileSystem;
use crate::{Error, Result};

const READ_BUFFER_BYTES: usize = 256 * 1024;
/// With so many bits flipped at most, what stands at the end is taken for the mark. The beginning
/// of a record of the same length differs in half of the bits of the checksum.
const FLIPPED_BITS_MAX: u32 = 8;

/// Reads a log file from its first record, or from any later one, to its end.
///
/// Needs no lock: while a writer appends, the end is where it was when it was reached.
pub struct LogReader<'a> {
    file_system: &'a dyn FileSystem,
    path: PathBuf,
    header: LogHeader,
    salt: u32,
    is_current: bool,
    input: BufReader<Box<dyn Read + Send>>,
    position: u64,
    /// Everything before it is known to have been on the disk.
    durable: u64,
    next_commit: Option<u64>,
    /// Once the end was reached.
    tail: Option<LogTail>,
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

/// The true end of a log file, from which a writer continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The byte after the last whole record.
    pub position: u64,
    /// Everything before this byte is known to have been on the disk.
    pub durable: u64,
    /// What stands behind.
    pub tail: LogTail,
    /// Whether this program appends to files of this version.
    pub is_current: bool,
    pub(super) salt: u32,
}

/// The bytes behind the last whole record of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTail {
    /// The mark that a writer puts there when all is on the disk: nothing is missing.
    Mark,
    /// Nothing: the last writer was killed before its mark, or is writing now, or the file was cut
    /// off there.
    Nothing,
    /// A mark that is not whole, torn or damaged: no commit is missing.
    BrokenMark,
    /// So many bytes that are no record: what a writer left that was killed, or is writing now; or
    /// a last commit that is damaged, which looks the same.
    Torn(u64),
}

impl LogEnd {
    /// Bytes behind the last record that are neither record nor mark.
    pub fn torn_bytes(&self) -> u64 {
        match self.tail {
            LogTail::Mark | LogTail::Nothing => 0,
            LogTail::BrokenMark => MARK_BYTES as u64,
            LogTail::Torn(bytes) => bytes,
        }
    }

    /// Tells the file from another of the same name.
    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// The mark that belongs behind the last record, for a copy of the file up to there.
    pub fn mark(&self) -> Vec<u8> {
        mark_bytes(self.salt, self.position)
    }
}

/// What stands at a position.
enum Frame {
    Commit(Box<LogRecord>, u64),
    /// All bytes from there to the end of the file: none, a mark and what follows it, or anything
    /// else.
    Tail(Vec<u8>),
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
        let ReadHeader {
            header,
            version,
            salt,
            bytes: position,
        } = LogHeader::read(&mut *input, path)?;
        Ok(Self {
            file_system,
            path: path.to_path_buf(),
            next_commit: Some(header.first_commit),
            header,
            salt,
            is_current: version == VERSION,
            input: BufReader::with_capacity(READ_BUFFER_BYTES, input),
            position,
            durable: position,
            tail: None,
        })
    }

    /// Opens a log file at the record that begins at a byte, as [`LoggedRecord`] or
    /// [`super::Appended`] gave it.
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

    /// The file's header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The next record; `None` at the end, however often it is asked.
    ///
    /// Fails with [`Error::Corrupt`] where a record that had been on the disk can no longer be
    /// read, and with [`Error::UnknownRecord`] or [`Error::UnknownSection`] at one that a newer
    /// program wrote.
    pub fn next_record(&mut self) -> Result<Option<LoggedRecord>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let start = self.position;
        let mut frame = self.read_frame()?;
        if self.is_damage(&frame) {
            // Perhaps a writer finished the record after it was read here, and more after it: look
            // again.
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
                    record: *record,
                }))
            }
            Frame::Tail(_) if self.is_damage(&frame) => Err(Error::corrupt(
                &self.path,
                start,
                "a commit was whole there once, and can no longer be read",
            )),
            Frame::Tail(bytes) => {
                self.tail = Some(self.tail_of(&bytes));
                Ok(None)
            }
        }
    }

    /// Whether there was a record once where now there is none.
    fn is_damage(&self, frame: &Frame) -> bool {
        match frame {
            Frame::Commit(..) => false,
            Frame::Tail(bytes) => Tail::new(bytes, self.position, self.salt).was_durable(),
        }
    }

    fn tail_of(&self, bytes: &[u8]) -> LogTail {
        if bytes.is_empty() {
            return LogTail::Nothing;
        }
        let mark = mark_bytes(self.salt, self.position);
        if let Some(rest) = bytes.strip_prefix(&*mark) {
            return match rest.len() {
                0 => LogTail::Mark,
                // What was written over the mark reached the disk without its beginning.
                torn => LogTail::Torn(torn as u64),
            };
        }
        let flipped = bytes.iter().zip(&mark).map(|(a, b)| (a ^ b).count_ones());
        match bytes.len() == mark.len() && flipped.sum::<u32>() <= FLIPPED_BITS_MAX {
            true => LogTail::BrokenMark,
            false => LogTail::Torn(bytes.len() as u64),
        }
    }

    /// The end of the file; reads any records that are left.
    pub fn end(&mut self) -> Result<LogEnd> {
        while self.next_record()?.is_some() {}
        Ok(LogEnd {
            position: self.position,
            durable: self.durable.min(self.position),
            tail: self.tail.unwrap_or(LogTail::Nothing),
            is_current: self.is_current,
            salt: self.salt,
        })
    }

    fn read_frame(&mut self) -> Result<Frame> {
        let mut bytes = Vec::with_capacity(FRAME_BYTES);
        read_up_to(&mut self.input, FRAME_BYTES, &mut bytes, &self.path)?;
        if let Some(length) = frame_length(&bytes) {
            read_up_to(&mut self.input, length, &mut bytes, &self.path)?;
        }
        let checked = self.check_frame(&bytes, self.position);
        if let Some((durable, _)) = checked {
            self.durable = self.durable.max(durable);
        }
        match checked {
            None | Some((_, KIND_MARK)) => {
                read_up_to(&mut self.input, usize::MAX, &mut bytes, &self.path)?;
                Ok(Frame::Tail(bytes))
            }
            Some((_, KIND_COMMIT)) => self.commit(&bytes, LogRecord::decode),
            Some((_, KIND_UNSECTIONED_COMMIT)) => self.commit(&bytes, |content| {
                LogRecord::decode_unsectioned(content, false).ok_or(RecordError::Form)
            }),
            Some((_, KIND_UNSECTIONED_CLEARING_COMMIT)) => self.commit(&bytes, |content| {
                LogRecord::decode_unsectioned(content, true).ok_or(RecordError::Form)
            }),
            // The salt is in the checksum: this is no accident, and nothing to be cut off.
            Some((_, kind)) => Err(Error::UnknownRecord {
                path: self.path.clone(),
                offset: self.position,
                kind,
            }),
        }
    }

    /// The commit of a whole record.
    fn commit(
        &self,
        bytes: &[u8],
        decode: impl FnOnce(&[u8]) -> std::result::Result<LogRecord, RecordError>,
    ) -> Result<Frame> {
        match decode(&bytes[FRAME_BYTES + PREFIX_BYTES..]) {
            Ok(record) => Ok(Frame::Commit(Box::new(record), bytes.len() as u64)),
            Err(RecordError::UnknownSection(kind)) => Err(Error::UnknownSection {
                path: self.path.clone(),
                offset: self.position,
                kind,
            }),
            Err(RecordError::Form) => Err(Error::corrupt(
                &self.path,
                self.position,
                "a record has the right checksum but not the form of a commit",
            )),
        }
    }

    /// The durable position and the kind of the record that begins with these bytes, if it is one
    /// and whole.
    fn check_frame(&self, bytes: &[u8], start: u64) -> Option<(u64, u8)> {
        let length = frame_length(bytes)?;
        let content = bytes.get(FRAME_BYTES..FRAME_BYTES + length)?;
        let durable = u64_at(content, 0)?;
        let kind = *content.get(8)?;
        let crc = || crc32c::crc32c_append(self.salt, content);
        (durable <= start && u32_at(bytes, 4)? == crc()).then_some((durable, kind))
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
