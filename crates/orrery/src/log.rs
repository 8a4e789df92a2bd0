//! The log: lines on standard error, as text for people or as JSON for programs.
//!
//! A server writes a line per request, and a write call takes as long as a part of a point query.
//! So request lines are gathered for [`GATHER_TIME`] and written together by a thread; every other
//! line is written at once, after the waiting ones. A process that is killed loses the waiting
//! lines.

mod json_format;
mod line_format;
mod time;

use std::io::{self, IsTerminal as _, Write};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::json_format::JsonFormat;
use self::line_format::{ACCESS, LineFormat};
use crate::arguments::LogFormat;

/// How long a line waits for others.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// Bytes of waiting lines beyond which the caller writes them itself.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The waiting lines; the rest is written when this is dropped.
pub(crate) struct Log<W: LogSink = StandardError>(Arc<Lines<W>>);

/// The destination of lines.
pub(crate) trait LogSink: Send + Sync + 'static {
    /// Writes what `take` returns. Two calls never overlap, `take` included, so that lines keep
    /// their order.
    fn write(&self, take: impl FnOnce() -> Vec<u8>) -> io::Result<()>;
}

/// Standard error.
pub(crate) struct StandardError;

struct Lines<W> {
    waiting: Mutex<Vec<u8>>,
    arrived: Condvar,
    /// Whether the writing thread could be started; known from the first gathered line on.
    has_writer: OnceLock<bool>,
    sink: W,
}

/// Starts the log; `ORRERY_LOG` takes `level` or `target=level,target=level`.
pub(crate) fn start(is_verbose: bool, format: LogFormat) -> Log {
    let default = if is_verbose {
        LevelFilter::DEBUG
    } else {
        LevelFilter::INFO
    };
    let filter = std::env::var("ORRERY_LOG")
        .ok()
        .and_then(|text| text.parse::<Targets>().ok())
        .unwrap_or_else(|| {
            // openraft logs a page per step of an election and per member.
            let targets = Targets::new().with_default(default);
            let targets = targets.with_target("openraft", default.min(LevelFilter::WARN));
            // object_store logs a line per attempt; our own messages report the results.
            match is_verbose {
                true => targets,
                false => targets.with_target("object_store", LevelFilter::WARN),
            }
        });
    let log = Log::new(StandardError);
    let has_colours = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(Log(Arc::clone(&log.0)));
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => {
            let lines = lines
                .with_ansi(has_colours)
                .event_format(LineFormat::new(has_colours));
            registry.with(lines).with(filter).init();
        }
        LogFormat::Json => {
            let lines = lines.with_ansi(false).event_format(JsonFormat);
            registry.with(lines).with(filter).init();
            // Rust's own report of a panic has several lines.
            std::panic::set_hook(Box::new(log_panic));
        }
    }
    log
}

/// Writes a line of JSON regardless of the filter.
pub(crate) fn write_json(level: &str, message: &str) {
    let line = json_format::line(level, "orrery", message, "");
    // If standard error is closed, there is nowhere to report it.
    let _ = io::stderr().write_all(line.as_bytes());
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let thread = thread::current();
    tracing::error!(
        target: "panic",
        place = place.as_deref().unwrap_or_default(),
        thread = thread.name().unwrap_or_default(),
        "{}",
        panic.payload_as_str().unwrap_or("a panic without words")
    );
}

impl LogSink for StandardError {
    fn write(&self, take: impl FnOnce() -> Vec<u8>) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        stderr.write_all(&take())
    }
}

impl<W: LogSink> Log<W> {
    fn new(sink: W) -> Self {
        Self(Arc::new(Lines {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            has_writer: OnceLock::new(),
            sink,
        }))
    }
}

impl<W: LogSink> Drop for Log<W> {
    fn drop(&mut self) {
        // At the end there is nowhere to report an error.
        let _ = self.0.write_with(&[]);
    }
}

impl<W: LogSink> Lines<W> {
    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        // No code leaves half a line under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the waiting lines, and this one.
    fn write_with(&self, line: &[u8]) -> io::Result<()> {
        self.sink.write(|| {
            let mut lines = std::mem::take(&mut *self.waiting());
            lines.extend_from_slice(line);
            lines
        })
    }

    /// Leaves a line to the writing thread, which the first line starts.
    fn gather(self: &Arc<Self>, line: &[u8]) -> io::Result<()> {
        let has_writer = *self.has_writer.get_or_init(|| {
            let lines = Arc::clone(self);
            let thread = thread::Builder::new().name("orrery-log".to_owned());
            thread.spawn(move || lines.write_forever()).is_ok()
        });
        let mut waiting = self.waiting();
        if !has_writer || waiting.len() + line.len() > WAITING_BYTES_MAX {
            drop(waiting);
            return self.write_with(line);
        }
        let is_first = waiting.is_empty();
        waiting.extend_from_slice(line);
        drop(waiting);
        if is_first {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn write_forever(&self) {
        loop {
            let waiting = self.waiting();
            let waited = self.arrived.wait_while(waiting, |lines| lines.is_empty());
            drop(waited);
            thread::sleep(GATHER_TIME);
            // If standard error is closed, there is nowhere to report it.
            let _ = self.write_with(&[]);
        }
    }
}

/// The writer of one line; the formatter writes each line whole.
pub(crate) struct LineWriter<'l, W> {
    lines: &'l Arc<Lines<W>>,
    is_gathered: bool,
}

impl<W: LogSink> Write for LineWriter<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.is_gathered {
            true => self.lines.gather(line)?,
            false => self.lines.write_with(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'l, W: LogSink> MakeWriter<'l> for Log<W> {
    type Writer = LineWriter<'l, W>;

    fn make_writer(&'l self) -> Self::Writer {
        LineWriter {
            lines: &self.0,
            is_gathered: false,
        }
    }

    fn make_writer_for(&'l self, metadata: &Metadata<'_>) -> Self::Writer {
        LineWriter {
            is_gathered: metadata.target() == ACCESS,
            ..self.make_writer()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    struct Sent(Mutex<Sender<String>>);

    impl LogSink for Sent {
        fn write(&self, take: impl FnOnce() -> Vec<u8>) -> io::Result<()> {
            let sender = self.0.lock().unwrap();
            let text = String::from_utf8(take()).unwrap();
            sender.send(text).map_err(io::Error::other)
        }
    }

    fn log() -> (Log<Sent>, Receiver<String>) {
        let (sender, written) = channel();
        (Log::new(Sent(Mutex::new(sender))), written)
    }

    #[test]
    fn lines_of_requests_are_written_together_without_a_further_one() {
        let (log, written) = log();
        log.0.gather(b"one\n").unwrap();
        log.0.gather(b"two\n").unwrap();
        let mut all = String::new();
        while all.lines().count() < 2 {
            all += &written.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        assert_eq!(all, "one\ntwo\n");
    }

    #[test]
    fn another_line_is_written_at_once_after_those_that_wait() {
        let (log, written) = log();
        log.0.gather(b"one\n").unwrap();
        log.make_writer().write_all(b"two\n").unwrap();
        let all: String = written.try_iter().collect();
        assert_eq!(all, "one\ntwo\n");
    }

    #[test]
    fn the_end_of_the_program_and_a_full_buffer_write_what_waits() {
        let (log, written) = log();
        let line = [b'x'; WAITING_BYTES_MAX / 2 + 1];
        log.0.gather(&line).unwrap();
        log.0.gather(&line).unwrap();
        let bytes =
            |texts: &Receiver<String>| texts.try_iter().map(|text| text.len()).sum::<usize>();
        assert_eq!(bytes(&written), 2 * line.len());
        log.0.gather(&line).unwrap();
        drop(log);
        assert_eq!(bytes(&written), line.len());
    }
}
