//! The progress report of a running load.

use crate::error::LoadError;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Weak;
use std::time::Duration;

/// How often the terminal is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// A stage of a load, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Reading and parsing the sources, collecting terms.
    Parse,
    /// Merging the sorted terms of all batches, numbering them, writing the dictionary.
    Terms,
    /// Sorting the quads into each permutation and writing it.
    Permutations,
    /// Putting everything on the disk and making it visible.
    Publish,
}

impl Stage {
    /// The stage's name, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Terms => "terms",
            Self::Permutations => "permutations",
            Self::Publish => "publish",
        }
    }
}

/// Hears how a load goes. Methods are called from several threads, a few times a second.
pub trait Progress: Sync {
    /// A stage begins. `total` is what [`Progress::advance`] will reach, if it is known: bytes of
    /// the sources (as they are on disk) while parsing, terms and rows afterwards.
    fn begin(&self, stage: Stage, total: Option<u64>) {
        let _ = (stage, total);
    }
    /// The running stage has come this far; `quads` were read in all.
    fn advance(&self, position: u64, quads: u64) {
        let _ = (position, quads);
    }
    /// A statement was skipped (one of the first few) because of `--skip-errors`.
    fn skipped(&self, message: &str) {
        let _ = message;
    }
    /// Something that people should know, and that is no error (the first few such).
    fn warned(&self, message: &str) {
        let _ = message;
    }
    /// The load is over, well or not.
    fn end(&self) {}
    /// Whether the load shall give up; asked a few times a second at least.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentProgress;

impl Progress for SilentProgress {}

/// Reports nothing, and gives a load up once nobody waits for it: the owner of this is dropped.
#[derive(Debug, Clone)]
pub struct WhileAwaited(pub Weak<()>);

impl Progress for WhileAwaited {
    fn is_cancelled(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A bar on the terminal with rate and time left; draws nothing if standard error is no terminal.
#[derive(Debug)]
pub struct TerminalProgress {
    bar: ProgressBar,
}

impl TerminalProgress {
    /// A bar that appears with the first stage.
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::no_length(),
        }
    }
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for TerminalProgress {
    fn begin(&self, stage: Stage, total: Option<u64>) {
        let template = match (stage, total) {
            (Stage::Parse, Some(_)) => {
                "{prefix:13} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left, {msg}"
            }
            (Stage::Parse, None) => "{prefix:13} {spinner} {bytes} {bytes_per_sec}, {msg}",
            (_, Some(_)) => "{prefix:13} {wide_bar} {human_pos}/{human_len}, {eta} left, {msg}",
            (_, None) => "{prefix:13} {spinner} {elapsed}",
        };
        // The templates are constants; one that indicatif refused would only look plain.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.set_style(style);
        self.bar.set_prefix(stage.name());
        self.bar.set_message("");
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.bar.reset();
        self.bar.enable_steady_tick(TICK);
    }

    fn advance(&self, position: u64, quads: u64) {
        self.bar.set_position(position);
        let seconds = self.bar.elapsed().as_secs_f64();
        if seconds == 0.0 {
            return;
        }
        // Only while parsing there are statements to tell.
        let (count, unit) = match quads {
            0 => (position, ""),
            _ => (quads, " statements"),
        };
        let thousands_per_second = count as f64 / seconds / 1000.0;
        self.bar
            .set_message(format!("{thousands_per_second:.0}k{unit}/s"));
    }

    fn skipped(&self, message: &str) {
        self.bar.suspend(|| eprintln!("skipped: {message}"));
    }

    fn warned(&self, message: &str) {
        self.bar.suspend(|| eprintln!("warning: {message}"));
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The error of a load that shall give up.
pub(crate) fn check_cancelled(progress: &dyn Progress) -> Result<(), LoadError> {
    match progress.is_cancelled() {
        true => Err(LoadError::Cancelled),
        false => Ok(()),
    }
}
