//! Time from text to plan for queries of twelve patterns: a star, a chain, and three stars in a chain.
//!
//! `cargo bench -p orrery-sparql --bench planning [-- SUBJECTS]`. Each subject has twelve predicates, half of which lead to
//! other subjects. A constant makes the query small, so that nothing is sampled; without it the plan is dear, and the random
//! walks are part of the figure.

use std::fmt::Write;
use std::time::{Duration, Instant};

use orrery_sparql::{Engine, EngineOptions, QueryOptions};
use orrery_storage::{SmallQuad, build_small};
use orrery_term::Term;

const PATTERNS: u64 = 12;
const RUNS: u32 = 200;
/// The bar for a query of twelve patterns, in microseconds.
const BAR_US: f64 = 1_000.0;

fn quads(subjects: u64) -> Vec<SmallQuad> {
    let name = |kind: &str, number: u64| Term::iri(format!("http://example.org/{kind}{number}"));
    let mut quads = Vec::new();
    for subject in 0..subjects {
        for predicate in 0..PATTERNS {
            let object = match predicate % 2 {
                0 => name("n", (subject * 7 + predicate * 13) % subjects),
                _ => name("v", (subject * 31 + predicate) % 1_000),
            };
            quads.push((name("n", subject), name("p", predicate), object, None));
        }
    }
    quads
}

fn star() -> String {
    (0..PATTERNS).fold(String::new(), |mut text, number| {
        let _ = write!(text, "?s :p{number} ?o{number} . ");
        text
    })
}

fn chain() -> String {
    (0..PATTERNS).fold(String::new(), |mut text, number| {
        let (predicate, next) = (number * 2 % PATTERNS, number + 1);
        let _ = write!(text, "?n{number} :p{predicate} ?n{next} . ");
        text
    })
}

fn stars() -> String {
    (0..3).fold(String::new(), |mut text, number| {
        let next = number + 1;
        let _ = write!(
            text,
            "?n{number} :p0 ?n{next} . ?n{number} :p1 ?a{number} . ?n{number} :p3 ?b{number} . ?n{number} :p5 ?c{number} . "
        );
        text
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo hands on a flag of its own.
    let mut sizes = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let subjects = sizes.next().unwrap_or(20_000);
    let directory = tempfile::tempdir()?;
    let database = build_small(directory.path(), &quads(subjects))?;
    let engine = Engine::new(database.into(), EngineOptions::default())?;
    println!(
        "{subjects} subjects; microseconds from text to plan, {RUNS} runs (bar {BAR_US} without sampling)"
    );
    println!("{:<24} {:>10} {:>10}", "", "median", "95 %");
    let constant = "<http://example.org/n17>";
    for (name, pattern, first) in [
        ("star", star(), "?s"),
        ("chain", chain(), "?n0"),
        ("stars in a chain", stars(), "?n0"),
    ] {
        let small = pattern.replace(&format!("{first} "), &format!("{constant} "));
        for (kind, pattern) in [("from a constant", small), ("sampled", pattern)] {
            let text = format!("PREFIX : <http://example.org/> SELECT * {{ {pattern} }}");
            let mut times: Vec<Duration> = Vec::new();
            for _ in 0..RUNS {
                let start = Instant::now();
                let prepared = engine.prepare(&text, &QueryOptions::default())?;
                times.push(start.elapsed());
                drop(prepared);
            }
            times.sort_unstable();
            let us = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
            println!(
                "{:<24} {:>10.0} {:>10.0}",
                format!("{name}, {kind}"),
                us(50),
                us(95)
            );
        }
    }
    Ok(())
}
