//! The parts of a load's sources: whole sources, or byte ranges of large ones.
//!
//! A load by one process has a part for each source. Where other processes read files, too
//! (`workers`), those of N-Triples and N-Quads that are large and not compressed are cut behind
//! line ends, without reading more than what is around them. Lines are counted within a part; those
//! before it are counted only when one is to be told.
//!
//! Parts that others have taken come back if these fail, so whoever reads waits for them.

use crate::error::LoadError;
use crate::sources::looks::Looks;
use crate::sources::source::CheckedSource;
use memchr::{memchr, memchr_iter};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Bytes that are looked at a time for a line end.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// How long a reader waits before it looks whether the load has failed.
const WAIT: Duration = Duration::from_millis(50);

/// What of its source a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartInput {
    /// All of it.
    Whole,
    /// Whole lines of a file that is not compressed.
    Range(Range<u64>),
    /// What others have read.
    Given,
}

/// A part of a source.
#[derive(Debug)]
pub(crate) struct InputPart {
    pub(crate) source: CheckedSource,
    /// The number of the source: the scope of its blank nodes.
    pub(crate) file_number: u32,
    pub(crate) input: PartInput,
    looks: OnceLock<Option<Looks>>,
    /// Lines of the source before the part.
    lines_before: OnceLock<u64>,
}

impl InputPart {
    fn new(source: CheckedSource, file_number: u32, input: PartInput) -> Self {
        Self {
            source,
            file_number,
            input,
            looks: OnceLock::new(),
            lines_before: OnceLock::new(),
        }
    }

    /// A part whose place in its source others know.
    pub(crate) fn of_others(source: CheckedSource, file_number: u32, input: PartInput) -> Self {
        let part = Self::new(source, file_number, input);
        let _ = part.lines_before.set(0);
        // What it looks like is for them to say, too.
        let _ = part.looks.set(None);
        part
    }

    /// The text. Adds the bytes that are read (before decompression) to `bytes_read`.
    pub(crate) fn open(
        &self,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<Box<dyn Read + Send>, LoadError> {
        match &self.input {
            PartInput::Whole => {
                let (text, looks) = self.source.open(bytes_read)?;
                let _ = self.looks.set(looks);
                Ok(text)
            }
            PartInput::Range(range) => self.source.open_range(range.clone(), bytes_read),
            PartInput::Given => Ok(Box::new(io::empty())),
        }
    }

    /// What its source looks like.
    pub(crate) fn looks(&self) -> Option<Looks> {
        *self.looks.get_or_init(|| self.source.look_again())
    }

    /// The number in its source of a line of the part; `None` if the lines before cannot be
    /// counted.
    pub(crate) fn line_of_source(&self, line: u64) -> Option<u64> {
        let start = match &self.input {
            PartInput::Range(range) if range.start > 0 => range.start,
            PartInput::Range(_) | PartInput::Whole | PartInput::Given => return Some(line),
        };
        let before = match self.lines_before.get() {
            Some(&before) => before,
            None => {
                let counted = count_lines(self.source.open_range(0..start, &Arc::default()).ok()?);
                *self.lines_before.get_or_init(|| counted.unwrap_or(0))
            }
        };
        Some(before + line)
    }

    /// Its length on disk, if it is of an ordinary file.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match &self.input {
            PartInput::Whole => self.source.bytes,
            PartInput::Range(range) => Some(range.end - range.start),
            PartInput::Given => None,
        }
    }
}

/// Line ends of a text: as `blocks` counts them, for a text of any length.
fn count_lines(mut text: impl Read) -> io::Result<u64> {
    let mut bytes = vec![0; LOOKED_AT_BYTES];
    let mut lines = 0;
    let mut ends_in_return = false;
    loop {
        let length = match text.read(&mut bytes) {
            Ok(0) => return Ok(lines + u64::from(ends_in_return)),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = &bytes[..length];
        lines += u64::from(ends_in_return && piece[0] != b'\n');
        ends_in_return = piece.ends_with(b"\r");
        lines += memchr_iter(b'\n', piece).count() as u64;
        let returns = memchr_iter(b'\r', piece);
        let alone = returns.filter(|&at| piece.get(at + 1).is_some_and(|&next| next != b'\n'));
        lines += alone.count() as u64;
    }
}

/// A part for each source.
pub(crate) fn whole_parts(sources: &[CheckedSource]) -> Vec<InputPart> {
    let sources = (0..).zip(sources);
    sources
        .map(|(number, source)| InputPart::new(source.clone(), number, PartInput::Whole))
        .collect()
}

/// The parts of all sources, cut so that none which can be cut is much longer than `part_bytes`.
pub(crate) fn cut_parts(
    sources: &[CheckedSource],
    part_bytes: u64,
) -> Result<Vec<InputPart>, LoadError> {
    let part_bytes = part_bytes.max(1);
    let mut parts = Vec::new();
    for (number, source) in (0..).zip(sources) {
        let bytes = source.bytes.unwrap_or_default();
        let is_long = source.format.is_line_based() && bytes > part_bytes + part_bytes / 2;
        if !is_long || source.path().is_none() || source.is_compressed()? {
            parts.push(InputPart::new(source.clone(), number, PartInput::Whole));
            continue;
        }
        // What is no text of RDF at all is said here, before its parts are read.
        let (_, looks) = source.open(&Arc::default())?;
        let mut start = 0;
        while start < bytes {
            let end = match bytes - start > part_bytes + part_bytes / 2 {
                true => line_end_after(source, start + part_bytes, bytes)?,
                false => bytes,
            };
            let range = PartInput::Range(start..end);
            let part = InputPart::new(source.clone(), number, range);
            let _ = part.looks.set(looks);
            parts.push(part);
            start = end;
        }
    }
    Ok(parts)
}

/// Behind the first line feed from a place on, or the end of the file.
fn line_end_after(source: &CheckedSource, place: u64, end: u64) -> Result<u64, LoadError> {
    let mut text = source.open_range(place..end, &Arc::default())?;
    let mut bytes = vec![0; LOOKED_AT_BYTES];
    let mut at = place;
    loop {
        let length = match text.read(&mut bytes) {
            Ok(0) => return Ok(end),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(LoadError::input(&source.name, error)),
        };
        if let Some(found) = memchr(b'\n', &bytes[..length]) {
            return Ok(at + found as u64 + 1);
        }
        at += length as u64;
    }
}

/// The parts that are still to be read, by their numbers.
#[derive(Debug)]
pub(crate) struct PartQueue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting {
    parts: VecDeque<usize>,
    /// Taken by others, who may fail.
    away: usize,
}

impl PartQueue {
    /// All of these, but those that others have read already.
    pub(crate) fn new(parts: &[InputPart]) -> Self {
        let to_read = |&part: &usize| parts[part].input != PartInput::Given;
        Self {
            state: Mutex::new(Waiting {
                parts: (0..parts.len()).filter(to_read).collect(),
                away: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// The next one to be read here. While there is none, waits for those that are away; `None`
    /// once nothing is to come any more.
    pub(crate) fn take(&self, is_stopped: impl Fn() -> bool) -> Option<usize> {
        let mut state = self.state.lock();
        loop {
            if let Some(part) = state.parts.pop_front() {
                return Some(part);
            }
            if state.away == 0 || is_stopped() {
                return None;
            }
            self.changed.wait_for(&mut state, WAIT);
        }
    }

    /// Takes parts away that `picks` picks, until it says no. Each is to be
    /// [given back](Self::give_back) or [ended](Self::end).
    pub(crate) fn take_away(&self, mut picks: impl FnMut(usize) -> Pick) -> Vec<usize> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        let mut left = VecDeque::with_capacity(state.parts.len());
        while let Some(part) = state.parts.pop_front() {
            match picks(part) {
                Pick::Take => taken.push(part),
                Pick::Leave => left.push_back(part),
                Pick::Enough => {
                    left.push_back(part);
                    left.append(&mut state.parts);
                }
            }
        }
        state.parts = left;
        state.away += taken.len();
        taken
    }

    /// Parts that were taken away are to be read by others.
    pub(crate) fn give_back(&self, parts: &[usize]) {
        let mut state = self.state.lock();
        state.away -= parts.len();
        for &part in parts.iter().rev() {
            state.parts.push_front(part);
        }
        self.changed.notify_all();
    }

    /// So many parts that were taken away have been read.
    pub(crate) fn end(&self, parts: usize) {
        self.state.lock().away -= parts;
        self.changed.notify_all();
    }
}

/// What becomes of a part that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    Take,
    Leave,
    /// It and all that follow are left.
    Enough,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::blocks::line_ends;
    use crate::sources::source::Source;
    use orrery_storage::io::{FileSystem, LocalFileSystem};
    use proptest::prelude::*;

    fn source(path: &std::path::Path) -> CheckedSource {
        let files: Arc<dyn FileSystem> = Arc::new(LocalFileSystem);
        CheckedSource::check(
            &Source::File(path.to_owned()),
            &crate::LoadOptions::default(),
            &files,
        )
        .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn parts_are_whole_lines_and_together_the_text(
            lines in proptest::collection::vec("# [ab]{0,40}(\n|\r\n)", 0..30),
            end in "[# ]{0,3}",
            part_bytes in 1..200_u64,
        ) {
            let text = lines.concat() + &end;
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.nt");
            std::fs::write(&path, &text).unwrap();
            let mut joined = Vec::new();
            for part in cut_parts(&[source(&path)], part_bytes).unwrap() {
                prop_assert!(joined.is_empty() || joined.ends_with(b"\n"));
                prop_assert_eq!(part.line_of_source(1), Some(line_ends(&joined) + 1));
                part.open(&Arc::default()).unwrap().read_to_end(&mut joined).unwrap();
            }
            prop_assert_eq!(joined, text.as_bytes());
        }

        #[test]
        fn lines_are_counted_as_blocks_count_them(text in "[a\n\r]{0,60}", read_bytes in 1..9_usize) {
            struct Trickle<'a>(&'a [u8], usize);
            impl Read for Trickle<'_> {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    let length = self.0.len().min(self.1).min(buffer.len());
                    buffer[..length].copy_from_slice(&self.0[..length]);
                    self.0 = &self.0[length..];
                    Ok(length)
                }
            }
            let counted = count_lines(Trickle(text.as_bytes(), read_bytes)).unwrap();
            prop_assert_eq!(counted, line_ends(text.as_bytes()));
        }
    }

    #[test]
    fn parts_that_come_back_are_read_by_those_who_waited() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.nt");
        std::fs::write(&path, "").unwrap();
        let source = source(&path);
        let queue = PartQueue::new(&whole_parts(&[source.clone(), source.clone(), source]));
        assert_eq!(queue.take(|| false), Some(0));
        assert_eq!(
            queue.take_away(|part| if part == 1 { Pick::Take } else { Pick::Enough }),
            [1]
        );
        assert_eq!(queue.take(|| false), Some(2));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| [queue.take(|| false), queue.take(|| false)]);
            queue.give_back(&[1]);
            assert_eq!(waiting.join().unwrap(), [Some(1), None]);
        });
        assert_eq!(queue.take_away(|_| Pick::Take), [0; 0]);
    }
}
