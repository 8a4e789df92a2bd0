//! Benchmark of planning for queries of twelve patterns: a star, a chain, and three stars in a
//! chain.
//!
//! `cargo bench -p orrery-sparql --bench planning [-- SUBJECTS]`. Each subject has twelve
//! predicates, half of which lead to other subjects. A constant makes the query small, so that
//! nothing is sampled; without it the plan is dear, and the random walks are part of the figure.
//! Each once with the order looked for in every run, once with the order that the first run kept.

use std::fmt::Write;
use std::time::{Duration, Instant};

use orrery_sparql::{Engine, EngineOptions, QueryError, QueryOptions, Tuning};
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
    println!("{subjects} subjects; microseconds from text to plan, {RUNS} runs (bar {BAR_US})");
    println!(
        "{:<34} {:>10} {:>10} {:>12}",
        "", "median", "95 %", "order known"
    );
    let constant = "<http://example.org/n17>";
    for (name, pattern, first) in [
        ("star", star(), "?s"),
        ("chain", chain(), "?n0"),
        ("stars in a chain", stars(), "?n0"),
    ] {
        let small = pattern.replace(&format!("{first} "), &format!("{constant} "));
        for (kind, pattern) in [("from a constant", small), ("sampled", pattern)] {
            let text = format!("PREFIX : <http://example.org/> SELECT * {{ {pattern} }}");
            let [median, high] = times(&engine, &text, false)?;
            let [known, _] = times(&engine, &text, true)?;
            println!(
                "{:<34} {median:>10.0} {high:>10.0} {known:>12.0}",
                format!("{name}, {kind}")
            );
        }
    }
    Ok(())
}

/// Median and 95 % of the microseconds from text to plan.
fn times(engine: &Engine, text: &str, keeps_orders: bool) -> Result<[f64; 2], QueryError> {
    let options = QueryOptions {
        tuning: Tuning {
            keeps_orders,
            ..Tuning::default()
        },
        ..QueryOptions::of_process()
    };
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let prepared = engine.prepare(text, &options)?;
        times.push(start.elapsed());
        drop(prepared);
    }
    times.sort_unstable();
    Ok([50, 95].map(|share| times[times.len() * share / 100].as_secs_f64() * 1e6))
}
