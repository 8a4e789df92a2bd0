//! The oracle of the parser: suites, random queries and damaged texts, against spargebra.
//!
//! ```text
//! queries and updates of the W3C, random queries --(tokens and bytes lost, doubled, swapped, taken from others)--> texts
//! text -> orrery_syntax, spargebra -> the same verdict and the same algebra, or a reason that is written down
//! ```

mod compare;
mod mutate;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::data::DataSet;
use super::grammar::PREFIXES;
use super::random::Random;
use super::run::{parsed_query, query_random};
use crate::shared;
use compare::{Verdict, compare};
use mutate::Mutations;

/// Texts that are longer are left as they are: spargebra's time grows faster than its text.
const SEED_BYTES_MAX: usize = 2_000;
/// Random queries among the texts that are damaged.
const RANDOM_QUERIES: u64 = 1_000;
/// Where texts are listed, the most.
const LISTED_MAX: usize = 20;

/// What was found.
#[derive(Debug, Default)]
pub struct SyntaxReport {
    /// Texts that both read, and to the same algebra.
    pub same: u64,
    /// Texts that both refuse.
    pub refused: u64,
    /// How many texts they differ in for each reason that is known.
    pub explained: BTreeMap<&'static str, u64>,
    /// Texts that they differ in for no known reason, with what differs.
    pub differences: Vec<String>,
}

impl SyntaxReport {
    fn add(&mut self, text: &str, is_update: bool) {
        match compare(text, is_update) {
            Verdict::SameAlgebra => self.same += 1,
            Verdict::BothRefuse => self.refused += 1,
            Verdict::Explained(reason) => *self.explained.entry(reason).or_default() += 1,
            Verdict::Different(what) if self.differences.len() < LISTED_MAX => {
                self.differences.push(format!("{text}\n>> {what}"));
            }
            Verdict::Different(_) => {}
        }
    }
}

impl fmt::Display for SyntaxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}\n----")?;
        }
        writeln!(f, "{} read to the same algebra", self.same)?;
        writeln!(f, "{} refused by both", self.refused)?;
        for (reason, count) in &self.explained {
            writeln!(f, "{count} differ: {reason}")?;
        }
        write!(f, "{} differ for no known reason", self.differences.len())
    }
}

/// Compares all queries and updates of the W3C's suites; `None` where they are not there.
pub fn syntax_of_suites() -> Option<SyntaxReport> {
    let mut report = SyntaxReport::default();
    for (text, is_update) in texts_of_suites()? {
        report.add(&text, is_update);
    }
    Some(report)
}

/// Compares random queries and so many texts that were made from these and the suites by damaging
/// them.
pub fn syntax_of_damaged(texts: u64, seed: u64) -> SyntaxReport {
    let mut report = SyntaxReport::default();
    let mut seeds = texts_of_suites().unwrap_or_default();
    for set in 0..RANDOM_QUERIES / 10 {
        let data = DataSet::random(&mut Random::new(seed, set));
        for number in 0..10 {
            let mut random = query_random(seed, set, number);
            if let Some(query) = parsed_query(&mut random, &data) {
                let text = format!("{PREFIXES}{}", query.to_text());
                report.add(&text, false);
                seeds.push((text, false));
            }
        }
    }
    seeds.retain(|(text, _)| text.len() <= SEED_BYTES_MAX);
    let mutations = Mutations::of(&seeds);
    for number in 0..texts {
        let (text, is_update) = mutations.text(&mut Random::new(seed, number));
        report.add(&text, is_update);
    }
    report
}

fn texts_of_suites() -> Option<Vec<(String, bool)>> {
    let mut paths = Vec::new();
    collect(&shared::find("w3c/sparql")?, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let is_update = path.extension().is_some_and(|it| it == "ru");
        Some((std::fs::read_to_string(&path).ok()?, is_update))
    };
    Some(paths.into_iter().filter_map(read).collect())
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|it| it == "rq" || it == "ru") {
            paths.push(path);
        }
    }
}
