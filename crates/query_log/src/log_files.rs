//! A reader of a log's files, line by line in bounded memory.
//!
//! Files are read in the order of their names. One that goes while it is read, as the oldest do, is
//! passed over; a line that is too long for an entry is passed over without being kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::entry::LINE_BYTES_MAX;
use crate::error::Error;
use crate::file_name::{FileName, Series};
use crate::time::Day;

/// What is read at a time.
const READ_BYTES: usize = 1 << 20;

/// The days of a report, both of them included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// The first day; all from the beginning on without one.
    pub from: Option<Day>,
    /// The last day; all to the end without one.
    pub to: Option<Day>,
}

impl Period {
    /// Whether a day is in it.
    pub fn has(self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }

    /// Whether a file that was begun on this day may have entries of the period. They stand where
    /// they ended: on the day of the file, and began that day or the one before.
    fn may_have(self, begun: Day) -> bool {
        self.from.is_none_or(|from| from <= begun) && self.to.is_none_or(|to| begun <= to.next())
    }
}

/// The files of all queries that may have entries of a period, in their order.
pub(crate) fn files(directory: &Path, period: Period) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read {
        path: directory.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some(Ok(name)) = name.to_str().map(str::parse::<FileName>)
            && name.series == Series::Queries
        {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(Error::NoLog {
            directory: directory.to_owned(),
        });
    }
    names.retain(|name| period.may_have(name.day));
    names.sort();
    let paths = names
        .into_iter()
        .map(|name| directory.join(name.to_string()));
    Ok(paths.collect())
}

/// Gives each line of a file to `take`; `None` for one that is too long.
pub(crate) fn read(path: &Path, take: impl FnMut(Option<&[u8]>)) -> Result<(), Error> {
    let read = match File::open(path) {
        Ok(file) => read_lines(BufReader::with_capacity(READ_BYTES, file), take),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    read.map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

fn read_lines(mut reader: impl BufRead, mut take: impl FnMut(Option<&[u8]>)) -> io::Result<()> {
    let mut line: Vec<u8> = Vec::new();
    let mut is_too_long = false;
    loop {
        let read = reader.fill_buf()?;
        if read.is_empty() {
            break;
        }
        let end = read.iter().position(|&byte| byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        is_too_long |= line.len() + part.len() > LINE_BYTES_MAX;
        if is_too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let read_bytes = part.len() + usize::from(end.is_some());
        if end.is_some() {
            take((!is_too_long).then_some(&line));
            line.clear();
            is_too_long = false;
        }
        reader.consume(read_bytes);
    }
    if is_too_long || !line.is_empty() {
        // Being written, or cut by a crash.
        take((!is_too_long).then_some(&line));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Option<String>> {
        let mut found = Vec::new();
        let reader = BufReader::with_capacity(7, text);
        let take = |line: Option<&[u8]>| {
            found.push(line.map(|line| String::from_utf8_lossy(line).into_owned()));
        };
        read_lines(reader, take).unwrap();
        found
    }

    #[test]
    fn lines_are_read_whole_and_the_last_needs_no_end() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(lines(b""), []);
        assert_eq!(
            lines(b"one\n\nthree is long\nfou"),
            [some("one"), some(""), some("three is long"), some("fou")]
        );
    }

    #[test]
    fn lines_that_are_too_long_are_passed_over() {
        let mut text = b"a\n".to_vec();
        text.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        text.extend(b"\nb\n");
        text.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        let found = lines(&text);
        assert_eq!(
            found,
            [Some("a".to_owned()), None, Some("b".to_owned()), None]
        );
    }

    #[test]
    fn a_period_has_its_last_day() {
        let day = |text: &str| text.parse::<Day>().unwrap();
        let period = Period {
            from: Some(day("2026-02-01")),
            to: Some(day("2026-02-28")),
        };
        assert!(period.has(day("2026-02-28")) && period.has(day("2026-02-01")));
        assert!(!period.has(day("2026-03-01")) && !period.has(day("2026-01-31")));
        assert!(period.may_have(day("2026-03-01")) && !period.may_have(day("2026-03-02")));
        assert!(Period::default().has(day("1970-01-01")));
    }
}
