//! The log's files: `log/<20 digits>`, each a row of frames, the newest appended to.
//!
//! A file takes frames until it has 64 MiB. Nothing is overwritten: a log that is cut, or purged,
//! has a frame that says so, and files go from the oldest on when all of their entries are purged.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::log::frame::{Found, Frame, another_follows, decode};
use crate::types::{Entry, LogId};

const DIRECTORY: &str = "log";

/// One file.
#[derive(Debug)]
struct LogFile {
    number: u64,
    /// The greatest index of an entry in it.
    last_index: Option<u64>,
}

/// The files, and where the next frame goes.
pub(crate) struct LogFiles {
    disk: Arc<dyn Disk>,
    file_bytes_max: u64,
    files: Vec<LogFile>,
    /// Length of the newest.
    length: u64,
    /// What failed; nothing is written after that, since nobody knows what is on disk.
    failed: Option<String>,
}

/// What the files say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Contents {
    /// Entries up to this one are part of a snapshot.
    pub purged: Option<LogId>,
    /// An entry that is known to be committed.
    pub committed: Option<LogId>,
    /// The entries, with the bytes of each.
    pub entries: VecDeque<(Entry, usize)>,
}

impl Contents {
    /// The index that the next entry has.
    pub(crate) fn next_index(&self) -> u64 {
        let last = self
            .entries
            .back()
            .map(|(entry, _)| entry.log_id.index)
            .or(self.purged.map(|id| id.index));
        last.map_or(0, |index| index + 1)
    }

    /// Takes in what a frame says. `Err` says why it does not fit to those before.
    fn take(&mut self, frame: Frame) -> Result<(), String> {
        match frame {
            Frame::Entries { committed, entries } => {
                self.committed = committed.max(self.committed);
                for (entry, bytes) in entries {
                    let (index, next) = (entry.log_id.index, self.next_index());
                    // Files that were purged go from the oldest on, so that the first entry may be
                    // one before the purge.
                    let is_first = self.entries.is_empty()
                        && self.purged.is_none_or(|purged| index <= purged.index);
                    if index != next && !is_first {
                        return Err(format!("entry {index} follows where {next} should be"));
                    }
                    self.entries.push_back((entry, bytes));
                }
            }
            Frame::Cut(index) => self.cut(index),
            Frame::Purged(upto) => self.purge(upto),
        }
        Ok(())
    }

    /// Removes an entry and those after it.
    pub(crate) fn cut(&mut self, index: u64) {
        while self
            .entries
            .back()
            .is_some_and(|(entry, _)| entry.log_id.index >= index)
        {
            self.entries.pop_back();
        }
    }

    /// Removes an entry and those before it.
    pub(crate) fn purge(&mut self, upto: LogId) {
        self.purged = self.purged.max(Some(upto));
        while self
            .entries
            .front()
            .is_some_and(|(entry, _)| entry.log_id.index <= upto.index)
        {
            self.entries.pop_front();
        }
    }
}

impl LogFiles {
    /// Reads all files, and cuts off a tail that was being written when the machine stopped.
    pub(crate) fn open(disk: Arc<dyn Disk>, file_bytes_max: u64) -> Result<(Self, Contents)> {
        let names = disk.list(DIRECTORY)?;
        let mut files = Self {
            disk,
            file_bytes_max,
            files: Vec::new(),
            length: 0,
            failed: None,
        };
        let mut contents = Contents::default();
        let last = names.len().saturating_sub(1);
        for (position, name) in names.iter().enumerate() {
            let number = name.parse().map_err(|_| Error::Damaged {
                path: format!("{DIRECTORY}/{name}"),
                detail: "a file of the log has a number for a name".to_owned(),
            })?;
            files.read(number, position == last, &mut contents)?;
        }
        let first = contents.purged.map_or(0, |purged| purged.index + 1);
        if let Some((entry, _)) = contents.entries.front()
            && entry.log_id.index != first
        {
            let detail = format!(
                "the first entry is {} where {first} should be",
                entry.log_id.index
            );
            return Err(Error::Damaged {
                path: DIRECTORY.to_owned(),
                detail,
            });
        }
        Ok((files, contents))
    }

    fn read(&mut self, number: u64, is_last: bool, contents: &mut Contents) -> Result<()> {
        let path = path(number);
        let damaged = |detail: String| Error::Damaged {
            path: path.clone(),
            detail,
        };
        let bytes = Bytes::from(self.disk.read(&path)?.unwrap_or_default());
        let mut file = LogFile {
            number,
            last_index: None,
        };
        let mut at = 0;
        loop {
            match decode(&bytes, at).map_err(|error| damaged(format!("at byte {at}: {error}")))? {
                Found::Frame(frame, end) => {
                    if let Frame::Entries { entries, .. } = &frame {
                        file.last_index = entries
                            .iter()
                            .map(|(entry, _)| entry.log_id.index)
                            .max()
                            .max(file.last_index);
                    }
                    contents
                        .take(frame)
                        .map_err(|detail| damaged(format!("at byte {at}: {detail}")))?;
                    at = end;
                }
                Found::End => break,
                Found::Broken => {
                    let behind = another_follows(&bytes, at, contents.next_index());
                    if !is_last || behind.is_some() {
                        let behind = behind.map_or("another file follows".to_owned(), |start| {
                            format!("a whole write follows at {start}")
                        });
                        return Err(damaged(format!(
                            "the write at byte {at} is broken, and {behind}"
                        )));
                    }
                    tracing::warn!(
                        path,
                        at,
                        lost_bytes = bytes.len() - at,
                        "cut off what was being written when the node stopped"
                    );
                    self.disk.truncate(&path, at as u64)?;
                    self.disk.sync(&path)?;
                    break;
                }
            }
        }
        self.length = at as u64;
        self.files.push(file);
        Ok(())
    }

    /// Writes a frame, and syncs it.
    pub(crate) fn write(&mut self, frame: &Bytes, last_index: Option<u64>) -> Result<()> {
        if let Some(failed) = &self.failed {
            return Err(Error::Stopped(format!(
                "a write to its log failed: {failed}"
            )));
        }
        let written = self.write_and_sync(frame, last_index);
        if let Err(error) = &written {
            self.failed = Some(error.to_string());
        }
        written
    }

    fn write_and_sync(&mut self, frame: &Bytes, last_index: Option<u64>) -> Result<()> {
        let is_new = self.files.is_empty() || self.length >= self.file_bytes_max;
        if is_new {
            let number = self.files.last().map_or(1, |file| file.number + 1);
            self.files.push(LogFile {
                number,
                last_index: None,
            });
            self.length = 0;
        }
        let Some(file) = self.files.last_mut() else {
            return Ok(());
        };
        let path = path(file.number);
        self.disk.write_at(&path, self.length, frame)?;
        self.disk.sync(&path)?;
        if is_new {
            self.disk.sync_directory(DIRECTORY)?;
        }
        file.last_index = file.last_index.max(last_index);
        self.length += frame.len() as u64;
        Ok(())
    }

    /// Removes the oldest files that have nothing but purged entries.
    pub(crate) fn remove_purged(&mut self, upto: u64) -> Result<()> {
        let is_purged = |file: &LogFile| file.last_index.is_none_or(|last| last <= upto);
        while self.files.len() > 1 && is_purged(&self.files[0]) {
            self.disk.remove(&path(self.files[0].number))?;
            self.disk.sync_directory(DIRECTORY)?;
            self.files.remove(0);
        }
        Ok(())
    }
}

fn path(number: u64) -> String {
    format!("{DIRECTORY}/{number:020}")
}
