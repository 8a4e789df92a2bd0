//! Look-ups and scans in a permutation of two million rows:
//! `cargo bench -p orrery-storage --bench index`.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_storage::io::LocalFileSystem;
use orrery_storage::{IndexView, Permutation, QuadIndexWriter, QuadRow, RowRange};

use common::{PREDICATES, ROWS, predicate, psog, rows, scrambled, subject};

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
    let directory = std::env::temp_dir().join(format!("orrery-bench-{}", std::process::id()));
    let rows = rows();
    let index = match psog(&directory, &rows) {
        Ok(index) => index,
        Err(error) => panic!("the database was not written: {error}"),
    };
    look_ups(criterion, &index);
    scans(criterion, &index);
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(ROWS * 4));
    group.sample_size(10);
    group.bench_function("write values", |bencher| {
        bencher.iter(|| write(&directory.join("again.col"), &rows))
    });
    group.finish();
    let _removed = std::fs::remove_dir_all(&directory);
}

fn look_ups(criterion: &mut Criterion, index: &IndexView) {
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

fn scans(criterion: &mut Criterion, index: &IndexView) {
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
