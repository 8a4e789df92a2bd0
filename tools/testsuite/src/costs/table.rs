//! The file of recorded costs: a line per path, sorted.
//!
//! ```text
//! # instructions of one run
//! column decode constant      310
//! prepare explore q01      402113
//! ```
//!
//! The last words that are numbers are the figures (so no name ends in one); lines that begin with
//! `#` are comments and are kept.

use std::collections::BTreeMap;
use std::fmt;

/// How far a figure may be from the one that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// In parts of a hundred of what is kept.
    pub percent: u64,
    /// And besides so much: small figures jump by themselves.
    pub besides: u64,
}

/// Figures of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    comments: Vec<String>,
    rows: BTreeMap<String, Vec<u64>>,
}

/// A path whose figures are not the kept ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// More than the tolerance lets pass.
    More(String, Vec<u64>, Vec<u64>),
    /// Less than that: good, and to be kept, lest it is lost again unseen.
    Less(String, Vec<u64>, Vec<u64>),
    /// Not in the kept table.
    New(String, Vec<u64>),
    /// Only in the kept table.
    Gone(String),
}

impl Table {
    /// An empty table under these comments (without `#`).
    pub fn new(comments: &[&str]) -> Self {
        let comments = comments.iter().map(|line| format!("# {line}"));
        Self {
            comments: comments.collect(),
            rows: BTreeMap::new(),
        }
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if line.starts_with('#') {
                table.comments.push(line.to_owned());
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_name = |word: &&str| word.parse::<u64>().is_err();
            let split = words.iter().rposition(is_name).map_or(0, |last| last + 1);
            let figures = words[split..].iter().filter_map(|word| word.parse().ok());
            table
                .rows
                .insert(words[..split].join(" "), figures.collect());
        }
        table
    }

    /// Sets the figures of a path.
    pub fn set(&mut self, name: &str, figures: &[u64]) {
        debug_assert!(
            name.split(' ')
                .next_back()
                .is_some_and(|word| word.parse::<u64>().is_err())
        );
        self.rows.insert(name.to_owned(), figures.to_vec());
    }

    /// Where this table, the kept one, and a new one differ.
    pub fn differences(&self, now: &Self, tolerance: Tolerance) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (name, kept) in &self.rows {
            let Some(figures) = now.rows.get(name) else {
                differences.push(Difference::Gone(name.clone()));
                continue;
            };
            let pairs = || kept.iter().zip(figures);
            let slack = |kept: u64| kept * tolerance.percent / 100 + tolerance.besides;
            if pairs().any(|(&kept, &now)| now > kept + slack(kept)) {
                differences.push(Difference::More(
                    name.clone(),
                    kept.clone(),
                    figures.clone(),
                ));
            } else if pairs().any(|(&kept, &now)| now + slack(kept) < kept) {
                differences.push(Difference::Less(
                    name.clone(),
                    kept.clone(),
                    figures.clone(),
                ));
            }
        }
        let new = now.rows.iter();
        let new = new.filter(|(name, _)| !self.rows.contains_key(*name));
        differences
            .extend(new.map(|(name, figures)| Difference::New(name.clone(), figures.clone())));
        differences
    }
}

impl Difference {
    /// Whether it is a reason to refuse a change.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Less(..))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for comment in &self.comments {
            writeln!(formatter, "{comment}")?;
        }
        let width = self.rows.keys().map(String::len).max().unwrap_or(0);
        for (name, figures) in &self.rows {
            write!(formatter, "{name:<width$}")?;
            for figure in figures {
                write!(formatter, " {figure:>12}")?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::More(name, kept, now) => write!(formatter, "MORE  {name}: {}", change(kept, now)),
            Self::Less(name, kept, now) => write!(formatter, "less  {name}: {}", change(kept, now)),
            Self::New(name, now) => write!(formatter, "NEW   {name}: {now:?}"),
            Self::Gone(name) => write!(formatter, "GONE  {name}"),
        }
    }
}

/// `1000 -> 1100 (+10.0 %)` for each figure.
fn change(kept: &[u64], now: &[u64]) -> String {
    let changes = kept.iter().zip(now).map(|(&kept, &now)| {
        let percent = (now as f64 / (kept.max(1)) as f64 - 1.0) * 100.0;
        format!("{kept} -> {now} ({percent:+.1} %)")
    });
    changes.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance {
        percent: 5,
        besides: 10,
    };

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let mut table = Table::new(["what they are"].as_slice());
        table.set("decode runs", &[310]);
        table.set("explore q01", &[4, 5000]);
        let text = table.to_string();
        assert_eq!(Table::parse(&text), table, "{text}");
    }

    #[test]
    fn differences_beyond_the_tolerance_are_told() {
        let mut kept = Table::default();
        let mut now = Table::default();
        for (name, before, after) in [
            ("same", 1000, 1060),
            ("more", 1000, 1061),
            ("less", 1000, 939),
            ("small", 3, 12),
        ] {
            kept.set(name, &[before]);
            now.set(name, &[after]);
        }
        kept.set("gone", &[1]);
        now.set("new", &[2]);
        let found = kept.differences(&now, TOLERANCE);
        assert_eq!(
            found,
            [
                Difference::Gone("gone".to_owned()),
                Difference::Less("less".to_owned(), vec![1000], vec![939]),
                Difference::More("more".to_owned(), vec![1000], vec![1061]),
                Difference::New("new".to_owned(), vec![2]),
            ]
        );
        assert_eq!(found.iter().filter(|d| d.is_failure()).count(), 3);
    }
}
