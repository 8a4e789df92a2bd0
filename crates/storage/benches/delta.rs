//! Reading two million rows with 1% of them in a delta, against none:
//! `cargo bench -p orrery-storage --bench delta`.

mod common;

use std::hint::black_box;
use std::path::Path;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use orrery_storage::{DeltaEntry, DeltaIndex, IndexView, Permutation, QuadRow, Result, RowRange};
use orrery_term::TermId;

use common::{PREDICATES, predicate, psog, rows, scrambled, subject};

/// Every hundredth row: by turns deleted, and followed by a new one.
fn changes(rows: &[QuadRow]) -> Vec<DeltaEntry> {
    let changed = rows.iter().skip(37).step_by(100).enumerate();
    changed
        .map(|(number, &[p, s, o, g])| match number % 2 == 0 {
            true => DeltaEntry {
                row: [p, s, o, g],
                is_insertion: false,
            },
            false => DeltaEntry {
                row: [p, s + 1, TermId::delta(number as u64).bits(), g],
                is_insertion: true,
            },
        })
        .collect()
}

fn open(directory: &Path) -> Result<(IndexView, IndexView)> {
    let rows = rows();
    let base = psog(directory, &rows)?;
    let delta = DeltaIndex::new(Permutation::Psog).apply(&changes(&rows))?;
    let changed = base.with_changes(delta)?;
    Ok((base, changed))
}

fn delta_benches(criterion: &mut Criterion) {
    let name = format!("orrery-bench-delta-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let (file, view) = match open(&directory) {
        Ok(indexes) => indexes,
        Err(error) => panic!("the database was not written: {error}"),
    };
    let mut group = criterion.benchmark_group("delta");
    for (name, index) in [("none", &file), ("1% in delta", &view)] {
        scans(&mut group, name, index);
        look_ups(&mut group, name, index);
    }
    group.finish();
    let _removed = std::fs::remove_dir_all(&directory);
}

fn scans(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, index: &IndexView) {
    group.throughput(Throughput::Elements(index.rows()));
    let mut values = Vec::new();
    for column in [1, 2] {
        group.bench_function(format!("scan column {column}, {name}"), |bencher| {
            let mut cursor = index.cursor();
            bencher.iter(|| {
                let mut start = 0;
                while start < index.rows() {
                    values.clear();
                    let end = index.rows().min(start + (1 << 16));
                    cursor.read(RowRange::new(start, end), column, &mut values)?;
                    start = end;
                }
                Ok::<(), orrery_storage::Error>(())
            });
        });
    }
}

fn look_ups(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, index: &IndexView) {
    group.throughput(Throughput::Elements(1));
    let mut values = Vec::new();
    for step in [1, 10, 1000] {
        let title = format!("ascending, every {step}th subject with object, {name}");
        group.bench_function(title, |bencher| {
            let (mut seeker, mut reader, mut n) = (index.cursor(), index.cursor(), 0);
            bencher.iter(|| {
                n += step;
                values.clear();
                let range = seeker.seek(&[predicate(7), subject(n)])?;
                reader.read(range, 2, &mut values)
            });
        });
    }
    group.bench_function(format!("random with object, {name}"), |bencher| {
        let (mut seeker, mut reader, mut n) = (index.cursor(), index.cursor(), 0);
        bencher.iter(|| {
            n += 1;
            values.clear();
            let at = scrambled(n);
            let range = seeker.seek(&[predicate(at), subject(at / PREDICATES)])?;
            reader.read(range, 2, &mut values).map(black_box)
        });
    });
}

criterion_group!(benches, delta_benches);
criterion_main!(benches);
