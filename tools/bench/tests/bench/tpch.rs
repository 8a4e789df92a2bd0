//! The 22 queries over DataFusion's tables in memory: so the queries, the generator and the
//! comparison are right before a database of ours is asked. At scale 0.01 always; at scale 1, with
//! the time of each query, by
//!
//! ```text
//! TPCH_RUNS=3 cargo test --release --workspace --test bench tpch:: -- --ignored --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use orrery_bench::tpch::{Answer, QUERIES, Query, Scale, TpchTable};

const BATCH_ROWS: usize = 8_192;
const THREADS: i32 = 2;

fn database(scale: Scale) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(THREADS as usize);
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let context = SessionContext::new_with_config(config);
    for table in TpchTable::ALL {
        let schema = table.batches(scale, BATCH_ROWS).schema();
        let parts = (1..=THREADS).map(|part| {
            let batches = table.part_of_batches(scale, BATCH_ROWS, part, THREADS);
            batches.map(Result::unwrap).collect::<Vec<_>>()
        });
        let memory = MemTable::try_new(schema, parts.collect()).unwrap();
        context
            .register_table(table.name(), Arc::new(memory))
            .unwrap();
    }
    context
}

async fn ask(context: &SessionContext, query: &Query, scale: Scale) -> Vec<RecordBatch> {
    let frame = context.sql(&query.text(scale)).await;
    let answer = match frame {
        Ok(frame) => frame.collect().await,
        Err(error) => Err(error),
    };
    answer.unwrap_or_else(|error| panic!("Q{}: {error}", query.number))
}

/// `shared/tpch/answers/sf...`, if this machine has it.
fn right_answers(folder: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("ORRERY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("tpch/answers").join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no {}", folder.display());
    None
}

fn answers_are_right(scale: f64, folder: &str, runs: u32) {
    let Some(folder) = right_answers(folder) else {
        return;
    };
    let scale = Scale::new(scale).unwrap();
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS as usize)
        .build()
        .unwrap();
    let context = database(scale);
    let mut wrong = Vec::new();
    for query in &QUERIES {
        let mut best = Duration::MAX;
        let mut found = Vec::new();
        for _ in 0..runs {
            let begin = Instant::now();
            let ask_it = ask(&context, query, scale);
            found = threads.block_on(ask_it);
            best = best.min(begin.elapsed());
        }
        println!("Q{:<2} {:8.1} ms", query.number, best.as_secs_f64() * 1e3);
        let expected = folder.join(format!("q{:02}.csv", query.number));
        let expected = Answer::read_file(&expected).unwrap();
        let found = Answer::of_batches(&found).unwrap();
        if let Some(difference) = found.difference(&expected, query) {
            wrong.push(format!("Q{}: {difference}", query.number));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn answers_at_a_hundredth_are_right() {
    answers_are_right(0.01, "sf0.01", 1);
}

#[test]
#[ignore = "generates 1 GB and asks for half a minute"]
fn answers_at_scale_one_are_right() {
    let runs = std::env::var("TPCH_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok());
    answers_are_right(1.0, "sf1", runs.unwrap_or(1));
}
