//! The file names of a query log: `queries-2026-11-24-0001.jsonl`, `slow-2026-11-24-0001.jsonl`.

use std::fmt;
use std::str::FromStr;

use crate::time::Day;

/// The two series of log files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// All that was asked.
    Queries,
    /// What was slow, with its plan.
    Slow,
}

/// A file's name. They are in the order of their beginnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// On which it was begun. Its entries may have come before, not after.
    pub day: Day,
    /// Counts the day's files of a series from 1.
    pub number: u32,
    /// Which log it belongs to.
    pub series: Series,
}

impl Series {
    fn name(self) -> &'static str {
        match self {
            Self::Queries => "queries",
            Self::Slow => "slow",
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (series, day, number) = (self.series.name(), self.day, self.number);
        write!(f, "{series}-{day}-{number:04}.jsonl")
    }
}

/// A file of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOurs;

impl FromStr for FileName {
    type Err = NotOurs;

    fn from_str(name: &str) -> Result<Self, NotOurs> {
        let (series, rest) = name.split_once('-').ok_or(NotOurs)?;
        let series = [Series::Queries, Series::Slow]
            .into_iter()
            .find(|it| it.name() == series)
            .ok_or(NotOurs)?;
        let rest = rest.strip_suffix(".jsonl").ok_or(NotOurs)?;
        let (day, number) = rest.rsplit_once('-').ok_or(NotOurs)?;
        let found = Self {
            day: day.parse().map_err(|_| NotOurs)?,
            number: number.parse().map_err(|_| NotOurs)?,
            series,
        };
        // One name a file: what is removed and read is what was meant.
        (found.to_string() == name).then_some(found).ok_or(NotOurs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_in_their_order() {
        let names = [
            "queries-2026-11-24-0009.jsonl",
            "slow-2026-11-24-0009.jsonl",
            "queries-2026-11-24-10000.jsonl",
            "queries-2026-11-25-0001.jsonl",
        ];
        let read = names.map(|name| name.parse::<FileName>().unwrap());
        assert!(read.is_sorted());
        assert_eq!(read.map(|name| name.to_string()), names);
    }

    #[test]
    fn other_files_are_not_ours() {
        for name in [
            "",
            "queries.jsonl",
            "queries-2026-11-24-1.jsonl",
            "queries-2026-11-24-0001.jsonl.gz",
            "queries-2026-11-31-0001.jsonl",
            "other-2026-11-24-0001.jsonl",
            "queries-2026-11-24-+001.jsonl",
        ] {
            assert_eq!(name.parse::<FileName>(), Err(NotOurs), "{name}");
        }
    }
}
