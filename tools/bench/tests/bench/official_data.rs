//! Tests of generated data against the official tool's output (`ORRERY_SHARED`).

#![allow(clippy::expect_used)] // A test that cannot read its data has failed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use orrery_bsbm::{GenerateOptions, generate};

/// Triples and bytes of literals of one predicate.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    triples: u64,
    literals: u64,
    literal_bytes: u64,
}

impl Count {
    fn mean_literal_bytes(self) -> f64 {
        self.literal_bytes as f64 / self.literals.max(1) as f64
    }
}

type Counts = BTreeMap<String, Count>;

fn count_line(counts: &mut Counts, line: &str) {
    let (_, rest) = line.split_once(' ').expect("a subject");
    let (predicate, object) = rest.split_once(' ').expect("a predicate");
    let count = match counts.get_mut(predicate) {
        Some(count) => count,
        None => counts.entry(predicate.to_owned()).or_default(),
    };
    count.triples += 1;
    if object.starts_with('"') {
        count.literals += 1;
        count.literal_bytes += object.len() as u64;
    }
}

/// Counts what is written to it, line by line.
#[derive(Default)]
struct Counter {
    counts: Counts,
    line: Vec<u8>,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                let line = std::str::from_utf8(&self.line).expect("UTF-8");
                count_line(&mut self.counts, line.trim_end());
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn official_counts() -> Option<Counts> {
    let shared =
        std::env::var_os("ORRERY_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let path = shared.join("bsbm/bsbm-1m.nt.zst");
    if !path.is_file() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    let Ok(mut zstd) = Command::new("zstd")
        .arg("-dc")
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
    else {
        eprintln!("skipped: the program zstd is not there");
        return None;
    };
    let mut counts = Counts::new();
    let mut reader = BufReader::with_capacity(1 << 20, zstd.stdout.take().expect("piped"));
    let mut line = String::new();
    while reader.read_line(&mut line).expect("readable") > 0 {
        count_line(&mut counts, line.trim_end());
        line.clear();
    }
    assert!(zstd.wait().expect("zstd ends").success());
    Some(counts)
}

#[test]
fn counts_and_lengths_are_within_five_percent_of_the_official_tool() {
    let Some(official) = official_counts() else {
        return;
    };
    let mut ours = Counter::default();
    generate(&GenerateOptions::default(), &mut ours).expect("counted");
    assert_eq!(
        official.keys().collect::<Vec<_>>(),
        ours.counts.keys().collect::<Vec<_>>(),
        "the predicates are the same"
    );
    for (predicate, theirs) in &official {
        let ours = ours.counts[predicate];
        let ratio = ours.triples as f64 / theirs.triples as f64;
        assert!(
            (0.95..1.05).contains(&ratio),
            "{predicate}: {ratio:.3} of {} triples",
            theirs.triples
        );
        if theirs.literals > 0 {
            let ratio = ours.mean_literal_bytes() / theirs.mean_literal_bytes();
            assert!(
                (0.95..1.05).contains(&ratio),
                "{predicate}: literals are {ratio:.3} as long"
            );
        }
    }
}

#[test]
fn twenty_eight_thousand_products_are_ten_million_triples() {
    let options = GenerateOptions {
        products: 28_482,
        ..GenerateOptions::default()
    };
    let report = generate(&options, &mut std::io::sink()).expect("nothing is written");
    assert!(
        (9_900_000..10_200_000).contains(&report.triples),
        "{report:?}"
    );
    assert!(
        (2_500_000_000..2_700_000_000).contains(&report.bytes),
        "{report:?}"
    );
}

#[test]
fn the_same_options_give_the_same_bytes() {
    let options = GenerateOptions {
        products: 50,
        seed: 9,
    };
    let mut first = Vec::new();
    let mut second = Vec::new();
    let report = generate(&options, &mut first).expect("memory");
    generate(&options, &mut second).expect("memory");
    assert_eq!(first, second);
    assert_eq!(report.bytes, first.len() as u64);
    let mut lines: Vec<&[u8]> = first
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(report.triples, lines.len() as u64);
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(report.triples, lines.len() as u64, "no triple comes twice");
}
