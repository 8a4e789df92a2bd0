//! Counters in bounded memory: distinct values, names, durations.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use serde::Serialize;

use crate::entry::cut;

/// Distinct things that are told apart; beyond that their number is "at least".
pub const DISTINCT_MAX: usize = 1_000_000;
/// Names that are kept counted where there are too many.
pub const NAMES_KEPT: usize = 10_000;
/// A longer name counts as its beginning.
pub const NAME_BYTES_MAX: usize = 256;
/// Names of a list in the report.
pub const LISTED_MAX: usize = 20;

/// How many different ones there were.
#[derive(Debug)]
pub(crate) struct Distinct<T> {
    seen: HashSet<T>,
    max: usize,
    is_exact: bool,
}

/// A number of different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DistinctCount {
    /// How many.
    pub count: u64,
    /// If not, there were at least so many.
    pub is_exact: bool,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            seen: HashSet::new(),
            max: DISTINCT_MAX,
            is_exact: true,
        }
    }
}

impl<T: Hash + Eq> Distinct<T> {
    pub(crate) fn add(&mut self, thing: T) {
        if self.seen.len() < self.max {
            self.seen.insert(thing);
        } else if self.is_exact {
            self.is_exact = self.seen.contains(&thing);
        }
    }

    pub(crate) fn count(&self) -> DistinctCount {
        DistinctCount {
            count: self.seen.len() as u64,
            is_exact: self.is_exact,
        }
    }
}

/// How often each name came. When there are twice [`NAMES_KEPT`], the less frequent half is
/// forgotten.
#[derive(Debug)]
pub(crate) struct Names {
    counts: HashMap<Box<str>, u64>,
    kept: usize,
    missed_max: u64,
}

/// The most frequent names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopNames {
    /// The most frequent one first.
    pub top: Vec<NameCount>,
    /// By how much a count may be too small; 0 where all names could be kept.
    pub missed_max: u64,
}

/// A name, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameCount {
    /// The name, or its beginning.
    pub name: String,
    /// In how many queries it was.
    pub queries: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            counts: HashMap::new(),
            kept: NAMES_KEPT,
            missed_max: 0,
        }
    }
}

impl Names {
    pub(crate) fn add(&mut self, name: &str) {
        let name = cut(name, NAME_BYTES_MAX);
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
            return;
        }
        if self.counts.len() >= 2 * self.kept {
            self.forget();
        }
        self.counts.insert(name.into(), 1);
    }

    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let most = counts.get(self.kept).copied().unwrap_or_default();
        // All with this count: there may be more of them than there is room for.
        self.counts.retain(|_, count| *count > most);
        self.missed_max += most;
    }

    pub(crate) fn top(&self) -> TopNames {
        let mut all: Vec<(&str, u64)> = self
            .counts
            .iter()
            .map(|(name, &count)| (&**name, count))
            .collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let top = all.into_iter().take(LISTED_MAX);
        TopNames {
            top: top
                .map(|(name, queries)| NameCount {
                    name: name.to_owned(),
                    queries,
                })
                .collect(),
            missed_max: self.missed_max,
        }
    }
}

/// Bits of a duration that are kept: it is told to within a hundredth.
const BITS: u32 = 6;
/// Upper ends of the columns of the histogram, in milliseconds.
const COLUMNS_MS: [u32; 11] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000];

/// How long queries took.
#[derive(Debug)]
pub(crate) struct Durations {
    /// By the place of the highest bit of the microseconds, and the bits that follow.
    buckets: Vec<u64>,
    columns: [u64; COLUMNS_MS.len() + 1],
    count: u64,
    max_ms: f64,
}

/// The figures of durations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DurationFigures {
    /// Half of them took no longer; to within a hundredth, as the others.
    pub median_ms: f64,
    /// Nine of ten.
    pub p90_ms: f64,
    /// Ninety-nine of a hundred.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// How many took how long.
    pub histogram: Vec<Column>,
}

/// A column of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Those from the column before up to this; none for all that are longer.
    pub below_ms: Option<u32>,
    /// How many.
    pub queries: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            buckets: vec![0; 65 << BITS],
            columns: Default::default(),
            count: 0,
            max_ms: 0.0,
        }
    }
}

impl Durations {
    pub(crate) fn add(&mut self, ms: f64) {
        // What is no number, or negative, is 0.
        let us = (ms * 1000.0) as u64;
        if let Some(bucket) = self.buckets.get_mut(bucket_of(us)) {
            *bucket += 1;
        }
        let column = COLUMNS_MS.iter().position(|&below| ms < f64::from(below));
        self.columns[column.unwrap_or(COLUMNS_MS.len())] += 1;
        self.count += 1;
        self.max_ms = self.max_ms.max(ms);
    }

    /// The duration that this part of all did not exceed.
    fn percentile(&self, part: f64) -> f64 {
        let rank = ((self.count as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (middle_of(bucket) / 1000.0).min(self.max_ms);
            }
        }
        0.0
    }

    pub(crate) fn figures(&self) -> DurationFigures {
        let below = COLUMNS_MS.iter().copied().map(Some).chain([None]);
        DurationFigures {
            median_ms: self.percentile(0.5),
            p90_ms: self.percentile(0.9),
            p99_ms: self.percentile(0.99),
            max_ms: self.max_ms,
            histogram: below
                .zip(self.columns)
                .map(|(below_ms, queries)| Column { below_ms, queries })
                .collect(),
        }
    }
}

fn bucket_of(us: u64) -> usize {
    let Some(shift) = (u64::BITS - us.leading_zeros()).checked_sub(BITS + 1) else {
        return us as usize;
    };
    // From 64 on, each doubling has 64 buckets.
    ((shift as usize) << BITS) + (us >> shift) as usize
}

fn middle_of(bucket: usize) -> f64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    let first = (bucket - (shift << BITS)) as f64;
    let width = (shift as f64).exp2();
    first * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_things_are_counted_up_to_a_bound() {
        let mut distinct = Distinct {
            max: 3,
            ..Distinct::default()
        };
        for thing in [1, 2, 2, 3, 3, 1] {
            distinct.add(thing);
        }
        assert_eq!(
            distinct.count(),
            DistinctCount {
                count: 3,
                is_exact: true
            }
        );
        distinct.add(4);
        assert_eq!(
            distinct.count(),
            DistinctCount {
                count: 3,
                is_exact: false
            }
        );
    }

    #[test]
    fn frequent_names_outlive_many_rare_ones() {
        let mut names = Names {
            kept: 10,
            ..Names::default()
        };
        for number in 0..10_000 {
            names.add(&format!("rare {number}"));
            names.add("often");
        }
        let top = names.top();
        assert_eq!(top.top[0].name, "often");
        assert!(top.missed_max > 0);
        assert!(top.top[0].queries + top.missed_max >= 10_000);
        assert!(names.counts.len() <= 20);
        names.add(&"ä".repeat(1000));
        assert!(names.counts.keys().all(|name| name.len() <= NAME_BYTES_MAX));
    }

    #[test]
    fn percentiles_are_within_a_hundredth() {
        let mut durations = Durations::default();
        for us in 1..=100_000 {
            durations.add(f64::from(us) / 1000.0);
        }
        let figures = durations.figures();
        for (found, exact) in [
            (figures.median_ms, 50.0),
            (figures.p90_ms, 90.0),
            (figures.p99_ms, 99.0),
        ] {
            assert!((found / exact - 1.0).abs() < 0.01, "{found} {exact}");
        }
        assert_eq!(figures.max_ms, 100.0);
        let columns: Vec<u64> = figures
            .histogram
            .iter()
            .map(|column| column.queries)
            .collect();
        assert_eq!(
            columns,
            [999, 2000, 7000, 20_000, 70_000, 1, 0, 0, 0, 0, 0, 0]
        );
        durations.add(f64::NAN);
        durations.add(f64::INFINITY);
        durations.add(-1.0);
    }

    #[test]
    fn each_duration_is_in_the_middle_of_its_bucket() {
        for us in (0..5000).chain([u64::MAX / 2, u64::MAX]) {
            let middle = middle_of(bucket_of(us));
            assert!(
                (middle - us as f64).abs() <= us as f64 / 100.0,
                "{us} {middle}"
            );
        }
        assert!(bucket_of(u64::MAX) < Durations::default().buckets.len());
    }
}
