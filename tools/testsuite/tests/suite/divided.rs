//! Tests of BSBM's business queries on three workers, against one process.
//!
//! ```text
//! DIVIDED_PRODUCTS=2848 DIVIDED_RUNS=3 cargo test --release --workspace --test suite divided -- --ignored --nocapture
//! ```
#![allow(clippy::unwrap_used, reason = "a test may fail on the spot")]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use orrery_bench::drivers::whole_processor_time;
use orrery_bsbm::templates::{ANALYTICAL, BUSINESS, instantiate};
use orrery_bsbm::{BusinessParameters, Catalog, GenerateOptions, Random};
use orrery_distributed::{InProcess, Workers};
use orrery_sparql::{Engine, EngineOptions, PreparedQuery, QueryOptions, QueryResults};
use orrery_storage::Database;
use orrery_testsuite::answer::Answer;
use orrery_testsuite::engine;

fn open(directory: &Path, threads: usize) -> Arc<Engine> {
    let database = Arc::new(Database::open(directory).unwrap());
    let options = EngineOptions {
        threads,
        ..EngineOptions::default()
    };
    Arc::new(Engine::new(database, options).unwrap())
}

fn divided(directory: &Path) -> (Arc<InProcess>, Vec<Arc<Workers>>, Vec<Arc<Engine>>) {
    let (network, workers) = InProcess::members(3, 10_000.0);
    let engines = workers.iter().map(|one| {
        let engine = open(directory, 1);
        engine.divide_among(one, tokio::runtime::Handle::current());
        engine
    });
    let engines = engines.collect();
    (network, workers, engines)
}

async fn count_rows(prepared: &PreparedQuery) -> usize {
    let QueryResults::Solutions(mut stream) = prepared.execute().await.unwrap() else {
        panic!("all of them select");
    };
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.unwrap().rows();
    }
    rows
}

/// A line without its floats and doubles, and these.
type Line = (String, Vec<f64>);

fn lines(answer: &Answer) -> Vec<Line> {
    let lines = answer.sorted_lines();
    let lines = lines.iter().map(|line| {
        let mut numbers = Vec::new();
        // What they are is behind them: one may be written as an integer is.
        let words: Vec<&str> = line.split_inclusive(['"', '\t', ' ']).collect();
        let is_rounded = |at: usize| {
            let next = words.get(at + 1).copied().unwrap_or_default();
            next.contains("XMLSchema#float>") || next.contains("XMLSchema#double>")
        };
        let words = words.iter().enumerate().filter(|(at, word)| {
            let text = word.trim_end_matches(['"', '\t', ' ']);
            let number = text.parse::<f64>().ok().filter(|_| is_rounded(*at));
            numbers.extend(number);
            number.is_none()
        });
        let words = words.map(|(_, word)| *word);
        let text = words.collect::<String>();
        (text, numbers)
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by(|a, b| a.partial_cmp(b).unwrap());
    lines
}

/// The first lines in which two answers differ but for the last digits of floats and doubles, which
/// depend on the order of additions: those of a float are few.
fn difference(first: &Answer, second: &Answer) -> Option<String> {
    let (first, second) = (lines(first), lines(second));
    if first.len() != second.len() {
        return Some(format!("{} and {} rows", first.len(), second.len()));
    }
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= a.abs().max(b.abs()) * 1e-3;
    let alike = |(a, b): &(&Line, &Line)| {
        a.0 == b.0 && a.1.len() == b.1.len() && a.1.iter().zip(&b.1).all(near)
    };
    let mut pairs = first.iter().zip(&second);
    let other = pairs.find(|pair| !alike(pair))?;
    Some(format!("{:?} and {:?}", other.0, other.1))
}

/// Processors' time of this process so far, in milliseconds.
fn processor_ms() -> f64 {
    let time = whole_processor_time(std::process::id()).unwrap_or_default();
    time.as_secs_f64() * 1e3
}

async fn compare(products: u32, runs: usize) {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("bsbm.nt");
    let options = GenerateOptions {
        products,
        ..GenerateOptions::default()
    };
    orrery_bsbm::generate(&options, &mut File::create(&data).unwrap()).unwrap();
    let directory = home.path().join("db");
    engine::load(&directory, std::slice::from_ref(&data), 1 << 30).unwrap();
    std::fs::remove_file(&data).unwrap();
    let alone = open(&directory, 1);
    let (network, workers, engines) = divided(&directory);
    let catalog = Catalog::new(&options);
    let business = BusinessParameters::new(&catalog);
    let mut random = Random::new(7);
    let (mut of_one, mut of_three) = (0.0, 0.0);
    for (at, template) in BUSINESS.iter().chain(&ANALYTICAL).enumerate() {
        let values = business.draw(template.text, &mut random);
        let text = instantiate(template.text, &values).unwrap();
        let usual = QueryOptions::of_process();
        // Apart: a runtime of its own would be started within this one.
        let (first, second) = std::thread::scope(|scope| {
            let asked = [&alone, &engines[0]].map(|engine| {
                let prepared = engine.prepare(&text, &usual).unwrap();
                scope.spawn(move || engine::run(&prepared).unwrap())
            });
            asked.map(|asked| asked.join().unwrap()).into()
        });
        if let Some(difference) = difference(&first, &second) {
            panic!("{text}: {difference}");
        }
        let (before, bytes) = (workers[0].figures().divided, network.bytes());
        let mut times = [0.0; 2];
        for (engine, time) in [&alone, &engines[0]].into_iter().zip(&mut times) {
            let begun = processor_ms();
            for _ in 0..runs {
                count_rows(&engine.prepare(&text, &usual).unwrap()).await;
            }
            *time = processor_ms() - begun;
        }
        let is_divided = workers[0].figures().divided > before;
        println!(
            "{:>2} {} {:8.0} ms {:8.0} ms {:10} bytes",
            at + 1,
            if is_divided { "divided" } else { "alone  " },
            times[0],
            times[1],
            (network.bytes() - bytes) / runs.max(1),
        );
        of_one += times[0];
        of_three += times[1];
    }
    println!("processors' time: {of_one:.0} ms by one, {of_three:.0} ms by three");
    let figures = workers[0].figures();
    assert!(figures.divided > 0, "{figures:?}");
    assert_eq!((figures.alone, figures.begun_anew), (0, 0), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_workers_answer_as_one_process_does() {
    compare(900, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes ten million statements"]
async fn what_three_workers_cost() {
    let of = |name: &str| std::env::var(name).ok();
    let products = of("DIVIDED_PRODUCTS").and_then(|products| products.parse().ok());
    let runs = of("DIVIDED_RUNS").and_then(|runs| runs.parse().ok());
    compare(products.unwrap_or(28_482), runs.unwrap_or(1)).await;
}
