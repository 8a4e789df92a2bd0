//! What commits cost in the storage alone, without parsing or HTTP: issue 4's bars from below.
//!
//! `cargo bench -p orrery-storage --bench commit [-- DIRECTORY]`; prints one line a figure. Not a
//! test: nothing here decides anything.
#![allow(clippy::unwrap_used, reason = "a bench may fail on the spot")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use orrery_storage::{CommitOptions, Database, Transaction, Writer, WriterOptions};
use orrery_term::{Term, TermId};

const BATCH_QUADS: u64 = 1_000;

fn main() {
    let parent = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let parent = parent.map_or_else(std::env::temp_dir, Into::into);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let path = directory.path();
    batches(&path.join("batches"));
    singles(&path.join("singles"), 64, Duration::from_secs(4));
    singles(&path.join("single"), 1, Duration::from_secs(2));
    rewrite(&path.join("rewrite"));
    reopen(&path.join("reopen"));
    clear(&path.join("clear"));
}

fn open(path: &Path) -> Writer {
    let database = Arc::new(Database::create_or_open(path).unwrap());
    database.open_writer(WriterOptions::default()).unwrap()
}

/// Quads like those of BSBM: ten a subject, half of the objects new literals, the others shared.
fn quad(transaction: &mut Transaction, number: u64) -> [TermId; 4] {
    let subject = Term::iri(format!(
        "http://example.org/instances/Product{}",
        number / 10
    ));
    let predicate = Term::iri(format!(
        "http://example.org/vocabulary/property{}",
        number % 10
    ));
    let object = match number % 10 {
        0..3 => Term::iri(format!(
            "http://example.org/instances/Feature{}",
            number % 997
        )),
        3..5 => Term::typed(
            (number % 2000).to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
        ),
        _ => Term::string(format!(
            "a literal of some length that nobody else has, {number}"
        )),
    };
    let [s, p, o] = [subject, predicate, object].map(|term| transaction.intern(&term).unwrap());
    [s, p, o, TermId::DEFAULT_GRAPH]
}

fn insert(writer: &Writer, numbers: std::ops::Range<u64>) {
    let mut transaction = writer.begin().unwrap();
    let mut quads: Vec<_> = numbers
        .map(|number| quad(&mut transaction, number))
        .collect();
    transaction.insert(&mut quads).unwrap();
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
}

/// Four threads, batches of 1,000.
fn batches(path: &Path) {
    const QUADS: u64 = 2_000_000;
    let writer = open(path);
    let next = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH_QUADS, Ordering::Relaxed);
                    if first >= QUADS {
                        return;
                    }
                    insert(&writer, first..first + BATCH_QUADS);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "batches of 1,000, 4 threads: {:.0} quads/s",
        QUADS as f64 / seconds
    );
}

/// Commits of one quad each.
fn singles(path: &Path, threads: u64, time: Duration) {
    let writer = open(path);
    let next = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while start.elapsed() < time {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    insert(&writer, number..number + 1);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let commits = next.load(Ordering::Relaxed) as f64;
    println!(
        "single quads, {threads} threads: {:.0} commits/s, {:.3} ms each",
        commits / seconds,
        seconds * 1e3 * threads as f64 / commits
    );
    let file = std::fs::File::create(path.join("probe")).unwrap();
    let start = Instant::now();
    for number in 0..50u64 {
        std::os::unix::fs::FileExt::write_at(&file, &[1; 100], number * 100).unwrap();
        file.sync_data().unwrap();
    }
    println!(
        "  one fdatasync: {:.3} ms",
        start.elapsed().as_secs_f64() * 1e3 / 50.0
    );
}

/// 50,000 quads deleted and 50,000 inserted in one transaction.
fn rewrite(path: &Path) {
    let writer = open(path);
    for first in (0..500_000).step_by(100_000) {
        insert(&writer, first..first + 100_000);
    }
    writer.checkpoint().unwrap();
    let start = Instant::now();
    let mut transaction = writer.begin().unwrap();
    let mut deleted: Vec<_> = (0..50_000)
        .map(|n| quad(&mut transaction, n * 10 + 7))
        .collect();
    transaction.delete(&mut deleted).unwrap();
    let mut inserted: Vec<_> = (0..50_000)
        .map(|n| quad(&mut transaction, 900_007 + n * 10))
        .collect();
    transaction.insert(&mut inserted).unwrap();
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    println!(
        "50,000 deleted and 50,000 inserted: {:.3} s",
        start.elapsed().as_secs_f64()
    );
}

/// Opening with a million quads in the log.
fn reopen(path: &Path) {
    let options = WriterOptions {
        checkpoint_bytes: u64::MAX,
        checkpoint_quads: u64::MAX,
        ..WriterOptions::default()
    };
    let database = Arc::new(Database::create_or_open(path).unwrap());
    let writer = database.open_writer(options.clone()).unwrap();
    for first in (0..1_000_000).step_by(BATCH_QUADS as usize) {
        insert(&writer, first..first + BATCH_QUADS);
    }
    drop((writer, database));
    let start = Instant::now();
    let database = Arc::new(Database::create_or_open(path).unwrap());
    let writer = database.open_writer(options).unwrap();
    println!(
        "opening with 1,000,000 quads in the log: {:.3} s",
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    writer.checkpoint().unwrap();
    println!("  their checkpoint: {:.3} s", start.elapsed().as_secs_f64());
    assert_eq!(database.view_of_process().quad_count(), 1_000_000);
}

/// All of a million quads deleted.
fn clear(path: &Path) {
    let writer = open(path);
    for first in (0..1_000_000).step_by(100_000) {
        insert(&writer, first..first + 100_000);
    }
    writer.checkpoint().unwrap();
    let start = Instant::now();
    let mut transaction = writer.begin().unwrap();
    transaction.clear_graph(TermId::DEFAULT_GRAPH).unwrap();
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    println!(
        "clearing 1,000,000 quads: {:.3} s",
        start.elapsed().as_secs_f64()
    );
}
