//! Benchmark of cyclic patterns over a power-law graph, with and without intersections
//! (`Tuning::intersects`).
//!
//! `cargo bench -p orrery-sparql --bench cycles [-- NODES EDGES]`; the graph is the same for the
//! same figures.

use std::time::{Duration, Instant};

use orrery_sparql::{Engine, EngineOptions, QueryOptions, QueryResults, Tuning};
use orrery_storage::{SmallQuad, build_small};
use orrery_term::Term;

const RUNS: usize = 3;

const QUERIES: [(&str, &str); 6] = [
    ("triangles", "?a :e ?b . ?b :e ?c . ?c :e ?a"),
    (
        "friends of friends who are friends",
        "?a :e ?b . ?b :e ?c . ?a :e ?c",
    ),
    (
        "4-cycles at a node",
        "?a :e :n7 . ?a :e ?b . ?c :e ?b . ?c :e :n7",
    ),
    (
        "4-cliques",
        "?a :e ?b . ?a :e ?c . ?a :e ?d . ?b :e ?c . ?b :e ?d . ?c :e ?d",
    ),
    ("common friends of two hubs", "?a :e :n1 . ?a :e :n2"),
    (
        "who has a triangle",
        "?a :e ?b FILTER EXISTS { ?b :e ?c . ?c :e ?a }",
    ),
];

/// A graph that grows: each edge leads from a random node to the end of a random earlier edge, or
/// to a random node. So a node gets edges as it has some.
fn power_law(nodes: u64, edges: usize) -> Vec<[u64; 2]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        // xorshift*, Vigna 2016
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    };
    let mut all: Vec<[u64; 2]> = vec![[0, 1]];
    while all.len() < edges {
        let from = match random(3) {
            0 => all[random(all.len() as u64) as usize][0],
            _ => random(nodes),
        };
        let to = match random(3) {
            0 => random(nodes),
            _ => all[random(all.len() as u64) as usize][1],
        };
        if from != to {
            all.push([from, to]);
        }
    }
    all
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo hands on a flag of its own.
    let mut sizes = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let nodes = sizes.next().unwrap_or(100_000);
    let edges = sizes.next().unwrap_or(1_000_000);
    let node = |number: u64| Term::iri(format!("http://example.org/n{number}"));
    let quads: Vec<SmallQuad> = power_law(nodes, usize::try_from(edges)?)
        .into_iter()
        .map(|[from, to]| {
            (
                node(from),
                Term::iri("http://example.org/e"),
                node(to),
                None,
            )
        })
        .collect();
    let directory = tempfile::tempdir()?;
    let database = build_small(directory.path(), &quads)?;
    let engine = Engine::new(database.into(), EngineOptions::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    println!(
        "{nodes} nodes, {} edges; milliseconds, best of {RUNS}",
        engine.database().view_of_process().quad_count()
    );
    println!(
        "{:<36} {:>12} {:>10} {:>10} {:>6}",
        "", "solutions", "together", "alone", "ratio"
    );
    for (name, pattern) in QUERIES {
        let text =
            format!("PREFIX : <http://example.org/> SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
        let measure = |intersects| -> Result<(String, Duration), Box<dyn std::error::Error>> {
            let options = QueryOptions {
                tuning: Tuning {
                    intersects,
                    ..Tuning::default()
                },
                ..QueryOptions::of_process()
            };
            let mut best = Duration::MAX;
            let mut count = String::new();
            for _ in 0..RUNS {
                let start = Instant::now();
                let results = runtime.block_on(engine.prepare(&text, &options)?.execute())?;
                let QueryResults::Solutions(mut solutions) = results else {
                    return Err("a SELECT gives solutions".into());
                };
                while let Some(batch) = runtime.block_on(solutions.next()) {
                    let batch = batch?;
                    count = batch
                        .term(0, 0)
                        .map(|term| term.to_string())
                        .unwrap_or_default();
                }
                best = best.min(start.elapsed());
            }
            Ok((count, best))
        };
        let (together, quick) = measure(true)?;
        let (alone, slow) = measure(false)?;
        assert_eq!(together, alone, "{name}");
        println!(
            "{name:<36} {:>12} {:>10.1} {:>10.1} {:>6.1}",
            together
                .trim_matches('"')
                .split('"')
                .next()
                .unwrap_or_default(),
            quick.as_secs_f64() * 1e3,
            slow.as_secs_f64() * 1e3,
            slow.as_secs_f64() / quick.as_secs_f64()
        );
    }
    Ok(())
}
