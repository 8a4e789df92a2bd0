//! Look-ups and scans in a permutation of two million rows: `cargo bench -p orrery-storage --bench index`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_storage::index::{Permutation, QuadIndex, QuadIndexWriter, QuadRow, RowRange};
use orrery_storage::io::LocalFileSystem;
use orrery_term::TermId;

const ROWS: u64 = 2_000_000;
const PREDICATES: u64 = 20;
const SUBJECTS: u64 = ROWS / PREDICATES;

fn scrambled(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8
}

fn predicate(n: u64) -> TermId {
    TermId::iri(100 + n % PREDICATES)
}

fn subject(n: u64) -> TermId {
    TermId::iri(1000 + 3 * (n % SUBJECTS))
}

/// Each subject once under each predicate, with a random object.
fn rows() -> Vec<QuadRow> {
    let mut rows: Vec<QuadRow> = (0..ROWS)
        .map(|n| {
            let object = TermId::literal(scrambled(n) % 3_000_000);
            [
                predicate(n / SUBJECTS).bits(),
                subject(n).bits(),
                object.bits(),
                TermId::DEFAULT_GRAPH.bits(),
            ]
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn write(path: &std::path::Path, rows: &[QuadRow]) {
    let written = QuadIndexWriter::create(&LocalFileSystem, path, Permutation::Psog).and_then(
        |mut writer| {
            writer.push_rows(rows)?;
            writer.finish()
        },
    );
    assert!(written.is_ok(), "{written:?}");
}

fn index_benches(criterion: &mut Criterion) {
    let path = std::env::temp_dir().join(format!("orrery-bench-{}.col", std::process::id()));
    let rows = rows();
    write(&path, &rows);
    let Ok(index) = QuadIndex::open(&LocalFileSystem, &path) else {
        panic!("the index was written and cannot be opened");
    };
    look_ups(criterion, &index);
    scans(criterion, &index);
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(ROWS * 4));
    group.sample_size(10);
    group.bench_function("write values", |bencher| {
        bencher.iter(|| write(&path, &rows))
    });
    group.finish();
    let _removed = std::fs::remove_file(&path);
}

fn look_ups(criterion: &mut Criterion, index: &Arc<QuadIndex>) {
    let mut group = criterion.benchmark_group("index/look-up");
    let mut values = Vec::new();
    group.bench_function("random, new cursor", |bencher| {
        let mut n = 0;
        bencher.iter(|| {
            n += 1;
            let at = scrambled(n);
            index
                .range(&[predicate(at), subject(at / PREDICATES)])
                .map(black_box)
        });
    });
    group.bench_function("random, one cursor, with object", |bencher| {
        let (mut n, mut cursor) = (0, index.cursor());
        bencher.iter(|| {
            n += 1;
            values.clear();
            let at = scrambled(n);
            let range = cursor.seek(&[predicate(at), subject(at / PREDICATES)])?;
            cursor.read(range, 2, &mut values)
        });
    });
    for (name, step) in [("every", 1), ("every 10th", 10), ("every 1000th", 1000)] {
        group.bench_function(
            format!("ascending, {name} subject, with object"),
            |bencher| {
                let (mut n, mut cursor) = (0, index.cursor());
                bencher.iter(|| {
                    n += step;
                    values.clear();
                    let range = cursor.seek(&[predicate(7), subject(n)])?;
                    cursor.read(range, 2, &mut values)
                });
            },
        );
    }
    group.finish();
}

fn scans(criterion: &mut Criterion, index: &Arc<QuadIndex>) {
    let range = RowRange::new(0, 1 << 20);
    let mut group = criterion.benchmark_group("index/scan");
    group.throughput(Throughput::Elements(range.len()));
    let mut values = Vec::new();
    for column in [0, 1, 2] {
        group.bench_function(format!("read column {column}"), |bencher| {
            let mut cursor = index.cursor();
            bencher.iter(|| {
                values.clear();
                cursor.read(range, column, &mut values)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, index_benches);
criterion_main!(benches);
