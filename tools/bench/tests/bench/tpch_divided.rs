//! Tests of the 22 queries on three workers, against one process.
//!
//! ```text
//! TPCH_SCALE=1 TPCH_RUNS=3 cargo test --release --workspace --test bench tpch_divided -- --ignored --nocapture
//! ```
//!
//! Nearly all are divided here. `TPCH_DIVIDE_FROM=2000000`: those that a server would divide.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::TryStreamExt as _;
use orrery_bench::drivers::whole_processor_time;
use orrery_bench::tpch::{Answer, QUERIES, Scale, TpchTable, write_parquet};
use orrery_distributed::{InProcess, Workers};
use orrery_runtime::{Runtime, RuntimeOptions};
use orrery_sql::{FileAccess, Outcome, Session, SessionOptions};
use orrery_storage::{Database, WriterOptions};

const WORKERS: usize = 3;
/// Rows from which on a query is divided: few, so that many are.
const DIVIDE_FROM: f64 = 10_000.0;

fn runtime(threads: usize) -> Runtime {
    let made = Runtime::new(&RuntimeOptions {
        memory_bytes: 4 << 30,
        is_process_bound: false,
        temp_dir: std::env::temp_dir(),
        batch_rows: 8_192,
        threads,
    });
    made.unwrap()
}

async fn ask(session: &Session, text: &str) -> Vec<RecordBatch> {
    let mut rows = Vec::new();
    for statement in session.statements(text).unwrap() {
        match session.execute(&statement).await.unwrap() {
            Outcome::Query(stream) => rows = stream.try_collect().await.unwrap(),
            Outcome::Returned(..) | Outcome::Done(_) => {}
            Outcome::CopyIn(_) | Outcome::CopyOut(_) => panic!("no COPY here"),
        }
    }
    rows
}

/// Makes a database of the tables, in a folder.
async fn load(folder: &Path, scale: Scale) {
    let database = Arc::new(Database::create_or_open(folder.join("db")).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let options = SessionOptions {
        files: FileAccess::allowed([]),
        ..SessionOptions::default()
    };
    let session = Session::new(&runtime(2), database, Some(writer), options);
    for table in TpchTable::ALL {
        ask(&session, table.definition()).await;
    }
    for table in TpchTable::ALL {
        let file = folder.join(format!("{}.parquet", table.name()));
        write_parquet(table, scale, &file).unwrap();
        let insert = format!(
            "insert into {} select * from '{}'",
            table.name(),
            file.display()
        );
        ask(&session, &insert).await;
    }
}

fn open(folder: &Path, runtime: &Runtime) -> Session {
    let database = Arc::new(Database::open(folder.join("db")).unwrap());
    Session::new(runtime, database, None, SessionOptions::default())
}

/// Three sessions whose queries are divided among them, as three processes would have them.
fn divided(folder: &Path, divide_from: f64) -> (Arc<InProcess>, Vec<Arc<Workers>>, Vec<Session>) {
    let (network, workers) = InProcess::members(WORKERS, divide_from);
    let mut sessions = Vec::new();
    for one in &workers {
        let runtime = runtime(1);
        runtime.divide_among(Arc::clone(one));
        let session = open(folder, &runtime);
        session.divide_among(one, tokio::runtime::Handle::current());
        sessions.push(session);
    }
    (network, workers, sessions)
}

/// Processors' time of this process so far, in milliseconds.
fn processor_ms() -> f64 {
    let time = whole_processor_time(std::process::id()).unwrap_or_default();
    time.as_secs_f64() * 1e3
}

async fn compare(scale: f64, runs: u32, divide_from: f64) {
    let home = tempfile::tempdir().unwrap();
    let scale = Scale::new(scale).unwrap();
    load(home.path(), scale).await;
    let alone = open(home.path(), &runtime(1));
    let (network, workers, sessions) = divided(home.path(), divide_from);
    let (mut wrong, mut of_one, mut of_three) = (Vec::new(), 0.0, 0.0);
    for query in &QUERIES {
        let text = query.text(scale);
        let mut expected = Vec::new();
        let begun = processor_ms();
        for _ in 0..runs {
            expected = ask(&alone, &text).await;
        }
        let one = processor_ms() - begun;
        let (before, bytes) = (workers[0].figures().divided, network.bytes());
        let mut found = Vec::new();
        let begun = processor_ms();
        for _ in 0..runs {
            found = ask(&sessions[0], &text).await;
        }
        let three = processor_ms() - begun;
        let is_divided = workers[0].figures().divided > before;
        println!(
            "Q{:<2} {} {one:8.0} ms {three:8.0} ms {:10} bytes",
            query.number,
            if is_divided { "divided" } else { "alone  " },
            (network.bytes() - bytes) / runs as usize,
        );
        of_one += one;
        of_three += three;
        let expected = Answer::of_batches(&expected).unwrap();
        let found = Answer::of_batches(&found).unwrap();
        if let Some(difference) = found.difference(&expected, query) {
            wrong.push(format!("Q{}: {difference}", query.number));
        }
    }
    println!("processors' time: {of_one:.0} ms by one, {of_three:.0} ms by three");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let figures = workers[0].figures();
    let least = if divide_from > DIVIDE_FROM { 1 } else { 17 };
    assert!(figures.divided >= least * u64::from(runs), "{figures:?}");
    assert_eq!((figures.alone, figures.begun_anew), (0, 0), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_workers_answer_as_one_process_does() {
    compare(0.05, 1, DIVIDE_FROM).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "generates 1 GB"]
async fn what_three_workers_cost() {
    let of = |name: &str| std::env::var(name).ok();
    let scale = of("TPCH_SCALE").and_then(|scale| scale.parse().ok());
    let runs = of("TPCH_RUNS").and_then(|runs| runs.parse().ok());
    let divide_from = of("TPCH_DIVIDE_FROM").and_then(|rows| rows.parse().ok());
    let divide_from = divide_from.unwrap_or(DIVIDE_FROM);
    compare(scale.unwrap_or(1.0), runs.unwrap_or(1), divide_from).await;
}
