//! Measures parsing of long texts, beside spargebra:
//! `cargo run --release -p orrery-syntax --example parse-times`.
//!
//! The figures stand in `docs/decisions/0028-a-parser-of-our-own.md`. No test decides by them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use orrery_syntax::{ParserOptions, parse_query, parse_update};
use spargebra::SparqlParser;

const RUNS: usize = 5;

/// The fastest of a few runs.
fn fastest(mut run: impl FnMut() -> bool) -> Duration {
    let timed = (0..RUNS).map(|_| {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn line(name: &str, text: &str, is_update: bool, has_reference: bool) {
    let options = ParserOptions::default();
    let ours = fastest(|| match is_update {
        true => parse_update(text, &options).is_ok(),
        false => parse_query(text, &options).is_ok(),
    });
    let start = Instant::now();
    let theirs = has_reference.then(|| {
        let is_read = match is_update {
            true => SparqlParser::new().parse_update(text).is_ok(),
            false => SparqlParser::new().parse_query(text).is_ok(),
        };
        std::hint::black_box(is_read);
        start.elapsed()
    });
    let theirs = theirs.map_or("-".to_owned(), |theirs| format!("{theirs:.1?}"));
    println!(
        "{name:44} {:>9} bytes {ours:>10.1?} {theirs:>10}",
        text.len()
    );
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect()
}

fn main() {
    println!("{:44} {:>15} {:>10} {:>10}", "", "", "ours", "spargebra");
    let iris = list(20_000, |n| format!("<http://example.org/thing/{n}>, "));
    line(
        "FILTER(?s IN (20,000 IRIs))",
        &format!("SELECT * {{ ?s ?p ?o FILTER(?s IN ({iris}<http://example.org/>)) }}"),
        false,
        true,
    );
    let rows = list(20_000, |n| format!("(<http://example.org/thing/{n}> {n}) "));
    line(
        "VALUES, 20,000 rows",
        &format!("SELECT * {{ VALUES (?s ?o) {{ {rows} }} }}"),
        false,
        true,
    );
    for levels in [8, 16] {
        let wrong = format!(
            "ASK {{ FILTER({}?x +{}) }}",
            "!(".repeat(levels),
            ")".repeat(levels)
        );
        line(
            &format!("{levels} nested !( with an error"),
            &wrong,
            false,
            true,
        );
    }
    let wrong = format!(
        "ASK {{ FILTER({}?x +{}) }}",
        "!(".repeat(120),
        ")".repeat(120)
    );
    line("120 nested !( with an error", &wrong, false, false);
    let triples = list(10_500, |n| {
        format!(
            "<http://example.org/thing/{n}> <http://example.org/p{}> \"text {n}\"@en , {n} .\n",
            n % 40
        )
    });
    line(
        "INSERT DATA",
        &format!("INSERT DATA {{ {triples} }}"),
        true,
        true,
    );
    let mut pattern = String::from("PREFIX e: <http://example.org/> SELECT * {\n");
    for n in 0..17_500 {
        let _ = writeln!(pattern, "?s{n} e:p{n} ?o{n} ; e:q 'x', \"y\"@en, {n}.5 .");
    }
    pattern.push('}');
    line("a pattern", &pattern, false, true);
    line(
        "a point query",
        "SELECT ?p ?o { <http://example.org/thing/1> ?p ?o }",
        false,
        true,
    );
}
