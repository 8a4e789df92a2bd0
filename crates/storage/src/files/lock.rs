//! The writer's lock file, and what it says about the last writer.
//!
//! `DIR/LOCK` is two lines, the first filled up with spaces, so that each is written over the one
//! before in the same place. While a writer is at work, and after it was killed:
//!
//! ```text
//! process 4711
//! crc32c 0a1b2c3d        of the line before it
//! ```
//!
//! After a writer has closed the log in good order, the first line says so:
//!
//! ```text
//! closed log 000007.log with salt 89abcdef at byte 1234 after commit 17
//! ```
//!
//! The line about the process is on the disk before anything else is written, so as long as a line
//! about a closed log stands there, nobody has written since: that log must end exactly there, and
//! one that does not is damaged. Without the line, which a power cut may take, a last commit that
//! was cut off or damaged cannot be told from one that was never finished.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::io::{FileLock, FileSystem, LocalFileSystem};
use crate::{Error, Result};

pub(crate) const LOCK_FILE: &str = "LOCK";
/// Room for the longest line.
const LINE_BYTES: usize = 128;

/// Held by whoever changes a database; readers need none.
///
/// It is an advisory lock of the operating system on `DIR/LOCK`: it ends with the value or with the
/// process, so a killed load leaves nothing to clear up.
#[derive(Debug)]
pub struct WriterLock {
    directory: PathBuf,
    lock: Box<dyn FileLock>,
}

/// Where a writer has closed its log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosedLog {
    /// The file's name.
    pub(crate) name: String,
    /// Tells it from another file of the same name.
    pub(crate) salt: u32,
    /// The byte after the last record.
    pub(crate) position: u64,
    /// The last commit.
    pub(crate) commit: u64,
}

/// What the lock's file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockText {
    /// Nothing about the log: somebody writes, or was killed; or there is no such file.
    Nothing,
    Closed(ClosedLog),
    /// It does not match its checksum: a power cut, or damage.
    Unreadable,
}

impl WriterLock {
    /// Locks the database in a directory, without waiting.
    ///
    /// Fails with [`crate::Error::Locked`], naming the process, when another writer has it.
    pub fn acquire(directory: impl AsRef<Path>) -> Result<Self> {
        Self::acquire_with(&(Arc::new(LocalFileSystem) as _), directory)
    }

    /// Locks the database through a given file system.
    pub fn acquire_with(
        file_system: &Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let lock = file_system.lock(&directory.join(LOCK_FILE))?;
        lock.write(&with_checksum(&format!("process {}", std::process::id())))?;
        lock.sync()?;
        Ok(Self { directory, lock })
    }

    /// The directory of the database that is locked.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Fails if somebody else may have written since, see [`FileLock::confirm`].
    pub(crate) fn confirm(&self) -> Result<()> {
        self.lock.confirm()
    }

    /// Notes that the log was closed and is on the disk. Call it last, for nothing may be written
    /// after it.
    pub(crate) fn note_closed(&self, closed: &ClosedLog) -> Result<()> {
        let ClosedLog {
            name,
            salt,
            position,
            commit,
        } = closed;
        self.lock.write(&with_checksum(&format!(
            "closed log {name} with salt {salt:08x} at byte {position} after commit {commit}"
        )))
    }
}

impl ClosedLog {
    /// Whether this is about a log file with a name and a salt.
    pub(crate) fn is_of(&self, name: &str, salt: u32) -> bool {
        (self.name.as_str(), self.salt) == (name, salt)
    }

    /// What is to be said of a log that ends before.
    pub(crate) fn missing(&self) -> String {
        let Self {
            position, commit, ..
        } = self;
        format!(
            "no commit is whole from there on, but it was closed at byte {position} after commit {commit}"
        )
    }
}

impl LockText {
    /// Reads the lock's file of a database. Whoever compares it with the log reads this first.
    pub(crate) fn read(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        match file_system.read(&directory.join(LOCK_FILE)) {
            Ok(content) => Ok(Self::parse(&content)),
            // Who may not look at it can still read the database.
            Err(Error::NotFound { .. } | Error::PermissionDenied { .. }) => Ok(Self::Nothing),
            Err(error) => Err(error),
        }
    }

    fn parse(content: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(content) else {
            return Self::Unreadable;
        };
        // Earlier programs wrote the number of the process and nothing else.
        if text.trim_end().bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::Nothing;
        }
        let line = text.lines().next().unwrap_or_default().trim_end();
        if with_checksum(line) != content {
            return Self::Unreadable;
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["process", _] => Self::Nothing,
            [
                "closed",
                "log",
                name,
                "with",
                "salt",
                salt,
                "at",
                "byte",
                position,
                "after",
                "commit",
                commit,
            ] => {
                let salt = u32::from_str_radix(salt, 16);
                match (salt, position.parse(), commit.parse()) {
                    (Ok(salt), Ok(position), Ok(commit)) => Self::Closed(ClosedLog {
                        name: name.to_owned(),
                        salt,
                        position,
                        commit,
                    }),
                    _ => Self::Unreadable,
                }
            }
            _ => Self::Unreadable,
        }
    }
}

fn with_checksum(line: &str) -> Vec<u8> {
    let line = format!("{line:<LINE_BYTES$}");
    let crc = crc32c::crc32c(line.as_bytes());
    format!("{line}\ncrc32c {crc:08x}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_told_who_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let lock = WriterLock::acquire(directory.path()).unwrap();
        let error = WriterLock::acquire(directory.path()).unwrap_err();
        assert!(
            matches!(error, Error::Locked { holder: Some(holder), .. } if holder == std::process::id())
        );
        drop(lock);
        WriterLock::acquire(directory.path()).unwrap();
    }

    #[test]
    fn where_a_log_was_closed_is_read_back_and_no_flipped_bit_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let read = || LockText::read(&LocalFileSystem, path).unwrap();
        assert_eq!(read(), LockText::Nothing);
        let lock = WriterLock::acquire(path).unwrap();
        assert_eq!(read(), LockText::Nothing);
        let closed = ClosedLog {
            name: "000007.log".to_owned(),
            salt: 0x00ab_cdef,
            position: 1234,
            commit: 17,
        };
        lock.note_closed(&closed).unwrap();
        assert_eq!(read(), LockText::Closed(closed));
        let whole = std::fs::read(path.join(LOCK_FILE)).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LockText::parse(&damaged), LockText::Unreadable, "bit {bit}");
        }
        for length in 1..whole.len() {
            assert_eq!(LockText::parse(&whole[..length]), LockText::Unreadable);
        }
        assert_eq!(LockText::parse(b"4711\n"), LockText::Nothing);
        assert_eq!(LockText::parse(b""), LockText::Nothing);
    }
}
