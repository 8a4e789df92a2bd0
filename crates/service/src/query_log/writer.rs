//! The query log's writing thread: turns entries into lines, and lines into files, which it
//! rotates.
//!
//! ```text
//! wait for an entry -> gather -> lines of both logs -> file of the day -> remove the oldest files
//! ```
//!
//! Entries that could not be written are counted per log, and the number is written after the first
//! lines that succeed.

use crate::query_log::files::{LogFile, LogFiles};
use crate::query_log::message::{Counts, Finished, Message};
use crate::query_log::options::{QUERY_LOG_BYTES_MIN, QueryLogOptions};
use crate::query_log::strike::strike;

use orrery_query_log::{Day, Entry, FileName, Line, Series, Time, shape_of};
use orrery_storage::{ByteCount, reason};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Size from which a file is closed.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Minimum number of files within the bound of the log's size, so that a removal takes only a part.
const FILES_MIN: u64 = 4;
/// How long entries are gathered. While the thread sleeps, requests need no system call to wake it
/// up.
const GATHER_TIME: Duration = Duration::from_millis(100);
/// Bytes of lines that are written together.
const BATCH_BYTES: usize = 256 << 10;
/// Time after which a failed disk is tried again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long the end waits for requests that are ending.
const FINISH_MAX: Duration = Duration::from_secs(2);
/// File names tried when another process creates files, too.
const NAMES_MAX: usize = 100;

/// The clock that decides the day.
pub(crate) type Clock = Box<dyn Fn() -> Time + Send>;

/// The state of the writing thread.
pub(crate) struct Writer {
    files: Box<dyn LogFiles>,
    clock: Clock,
    queries: Lines,
    slow: Lines,
    /// Closed files of both logs, with their lengths.
    closed: BTreeMap<FileName, u64>,
    bytes_max: u64,
    file_bytes_max: u64,
    /// Time of the disk's last failure; none if it works.
    failed: Option<Instant>,
    retry_after: Duration,
}

/// One of the two logs.
#[derive(Debug, Default)]
struct Lines {
    open: Option<OpenFile>,
    waiting: Vec<u8>,
    /// Entries in `waiting`.
    entries: u64,
    /// Lost entries that the log does not mention yet.
    dropped: u64,
}

#[derive(Debug)]
struct OpenFile {
    name: FileName,
    file: Box<dyn LogFile>,
    bytes: u64,
}

impl Lines {
    fn add(&mut self, entry: &Entry) {
        match entry.write(&mut self.waiting) {
            Ok(()) => self.entries += 1,
            Err(_) => self.dropped += 1,
        }
    }

    fn open_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.bytes)
    }
}

impl Writer {
    pub(crate) fn new(
        files: Box<dyn LogFiles>,
        clock: Clock,
        options: &QueryLogOptions,
    ) -> io::Result<Self> {
        let bytes_max = options.bytes_max;
        if bytes_max < QUERY_LOG_BYTES_MIN {
            let text = format!(
                "{} are not enough; give it {} at least",
                ByteCount(bytes_max),
                ByteCount(QUERY_LOG_BYTES_MIN)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            closed: files.list()?.into_iter().collect(),
            files,
            clock,
            queries: Lines::default(),
            slow: Lines::default(),
            bytes_max,
            file_bytes_max: FILE_BYTES_MAX.min(bytes_max / FILES_MIN),
            failed: None,
            retry_after: RETRY_AFTER,
        })
    }

    /// Sets another retry time, for tests with a failing disk.
    #[cfg(test)]
    pub(crate) fn retrying_after(self, retry_after: Duration) -> Self {
        Self {
            retry_after,
            ..self
        }
    }

    /// Writes until the end is requested, or no sender is left.
    pub(crate) fn run(mut self, receiver: &Receiver<Message>, counts: &Counts) {
        while let Ok(first) = receiver.recv() {
            let mut is_last = matches!(first, Message::Finish);
            if !is_last {
                std::thread::sleep(GATHER_TIME);
            }
            self.take(first, counts);
            for message in receiver.try_iter() {
                is_last |= matches!(message, Message::Finish);
                self.take(message, counts);
            }
            if is_last {
                self.take_rest(receiver, counts);
            }
            self.write_all(counts);
            if is_last {
                break;
            }
        }
        self.close();
    }

    /// Takes entries of requests that are ending at this moment.
    fn take_rest(&mut self, receiver: &Receiver<Message>, counts: &Counts) {
        let started = Instant::now();
        while started.elapsed() < FINISH_MAX {
            // Read before the channel: entries brought until then are in it.
            let finished = counts.finished();
            match (receiver.recv_timeout(Duration::from_millis(5)), finished) {
                (Ok(message), _) => self.take(message, counts),
                (Err(RecvTimeoutError::Timeout), Finished::NotAll) => {}
                (Err(RecvTimeoutError::Timeout), Finished::All)
                | (Err(RecvTimeoutError::Disconnected), _) => return,
            }
        }
    }

    fn take(&mut self, message: Message, counts: &Counts) {
        let Message::Entry(mut entry) = message else {
            return;
        };
        counts.taken(&entry);
        entry.shape = shape_of(entry.kind, &entry.text);
        strike(&mut entry.text);
        let plan = entry.plan.take();
        self.queries.add(&entry);
        if let Some(mut plan) = plan {
            strike(&mut plan);
            entry.plan = (!plan.is_empty()).then_some(plan);
            self.slow.add(&entry);
        }
        if self.queries.waiting.len() + self.slow.waiting.len() >= BATCH_BYTES {
            self.write_all(counts);
        }
    }

    /// Writes the waiting lines, or counts them as lost.
    fn write_all(&mut self, counts: &Counts) {
        self.queries.dropped += counts.dropped.swap(0, Ordering::Relaxed);
        for series in [Series::Queries, Series::Slow] {
            let is_early = self
                .failed
                .is_some_and(|failed| failed.elapsed() < self.retry_after);
            let written = match is_early {
                true => None,
                false => Some(self.write(series)),
            };
            let lines = self.lines(series);
            match &written {
                Some(Ok(())) => lines.dropped = 0,
                Some(Err(_)) | None => lines.dropped += lines.entries,
            }
            lines.entries = 0;
            lines.waiting.clear();
            match written {
                Some(Ok(())) | None => {}
                Some(Err(error)) => self.note_failure(&error),
            }
        }
    }

    fn lines(&mut self, series: Series) -> &mut Lines {
        match series {
            Series::Queries => &mut self.queries,
            Series::Slow => &mut self.slow,
        }
    }

    fn write(&mut self, series: Series) -> io::Result<()> {
        let lines = self.lines(series);
        let mut bytes = std::mem::take(&mut lines.waiting);
        if lines.dropped > 0 {
            Line::write_dropped(lines.dropped, &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        let day = (self.clock)().day();
        self.make_room(series, day, length)?;
        let open = self.opened(series, day)?;
        open.file.append(&bytes)?;
        open.bytes += length;
        // The buffer is reused.
        bytes.clear();
        self.lines(series).waiting = bytes;
        if self.failed.take().is_some() {
            tracing::info!("the query log is written again");
        }
        Ok(())
    }

    /// Closes the file if it must not grow, and removes the oldest files as far as needed.
    fn make_room(&mut self, series: Series, day: Day, bytes: u64) -> io::Result<()> {
        let file_bytes_max = self.file_bytes_max;
        let open = self.lines(series).open.as_ref();
        if open.is_some_and(|it| it.name.day != day || it.bytes + bytes > file_bytes_max) {
            self.close_file(series);
        }
        loop {
            let closed: u64 = self.closed.values().sum();
            let open = self.queries.open_bytes() + self.slow.open_bytes();
            if closed + open + bytes <= self.bytes_max {
                return Ok(());
            }
            let Some((&oldest, _)) = self.closed.first_key_value() else {
                // Both open files take at most half of the bound.
                return Ok(());
            };
            match self.files.remove(oldest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => drop(self.closed.remove(&oldest)),
            }
        }
    }

    fn close_file(&mut self, series: Series) {
        if let Some(OpenFile { name, bytes, .. }) = self.lines(series).open.take() {
            self.closed.insert(name, bytes);
        }
    }

    /// The file for new lines.
    fn opened(&mut self, series: Series, day: Day) -> io::Result<&mut OpenFile> {
        let open = match self.lines(series).open.take() {
            Some(open) => open,
            None => self.create(series, day)?,
        };
        Ok(self.lines(series).open.insert(open))
    }

    /// Begins a file: always a new one, for the last line of an old one may be incomplete.
    fn create(&self, series: Series, day: Day) -> io::Result<OpenFile> {
        let of_day = |name: &&FileName| name.day == day && name.series == series;
        let last = self.closed.keys().filter(of_day).map(|name| name.number);
        let first = last.max().unwrap_or(0).saturating_add(1);
        let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for number in (first..).take(NAMES_MAX) {
            let name = FileName {
                day,
                number,
                series,
            };
            result = self.files.create(name).map(|file| OpenFile {
                name,
                file,
                bytes: 0,
            });
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Ok(_) | Err(_) => break,
            }
        }
        result
    }

    /// Logs the first of consecutive failures, and gives up the open files.
    fn note_failure(&mut self, error: &io::Error) {
        if self.failed.replace(Instant::now()).is_none() {
            tracing::warn!(
                "the query log cannot be written: {}; queries go on, entries are lost and counted, and it is tried again",
                reason(error)
            );
        }
        for series in [Series::Queries, Series::Slow] {
            let is_empty = self.lines(series).open_bytes() == 0;
            let name = self.lines(series).open.as_ref().map(|open| open.name);
            self.close_file(series);
            // Otherwise each attempt would leave an empty file.
            if let Some(name) = name
                && is_empty
                && self.files.remove(name).is_ok()
            {
                self.closed.remove(&name);
            }
        }
    }

    /// Syncs all lines to the disk.
    fn close(&mut self) {
        for lines in [&mut self.queries, &mut self.slow] {
            if let Some(open) = &mut lines.open
                && let Err(error) = open.file.sync()
            {
                tracing::warn!("the end of the query log may be lost: {}", reason(&error));
            }
            let lost = lines.dropped;
            if lost > 0 {
                tracing::warn!("{lost} entries of the query log are lost");
            }
        }
    }
}
