//! Writing, scanning and looking up in the file of a table of a million rows:
//! `cargo bench -p orrery-storage --bench table`.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, StringViewArray,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use orrery_storage::io::LocalFileSystem;
use orrery_storage::table::{
    ColumnId, ColumnType, KeyRows, ProjectionColumn, ProjectionFile, ProjectionLayout,
    ProjectionWriter, RelationId, SomeRows,
};

const ROWS: u64 = 1_000_000;
const BATCH_ROWS: u64 = 8192;
const GROUP_ROWS: u64 = 32_768;
const WORDS: [&str; 12] = [
    "carefully ",
    "final ",
    "deposits ",
    "sleep ",
    "quickly ",
    "above ",
    "the ",
    "regular ",
    "ideas. ",
    "pending ",
    "accounts ",
    "haggle ",
];
const MODES: [&str; 7] = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
const TEXT: ColumnType = ColumnType::Text {
    length_max: None,
    is_padded: false,
};

/// Names of the columns, for the benches, and their types: those of TPC-H's lineitem that differ.
const COLUMNS: [(&str, ColumnType); 7] = [
    ("order", ColumnType::BigInt),
    ("line", ColumnType::Integer),
    ("part", ColumnType::BigInt),
    (
        "price",
        ColumnType::Decimal {
            precision: 15,
            scale: 2,
        },
    ),
    ("date", ColumnType::Date),
    ("mode, a dictionary", TEXT),
    ("comment, compressed", TEXT),
];

fn scrambled(number: u64) -> u64 {
    let mixed = number
        .wrapping_add(0x9E37_79B9_7F4A_7C15)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 16
}

fn layout() -> ProjectionLayout {
    let columns = COLUMNS.iter().enumerate();
    ProjectionLayout {
        relation: RelationId(1),
        columns: columns
            .map(|(number, (_, column_type))| ProjectionColumn {
                id: ColumnId(number as u32 + 1),
                column_type: *column_type,
                is_nullable: false,
            })
            .collect(),
        key_columns: 2,
    }
}

fn batch(rows: std::ops::Range<u64>) -> Vec<ArrayRef> {
    let rows = || rows.clone();
    let price = Decimal128Array::from_iter_values(
        rows().map(|row| i128::from(90_000 + scrambled(row) % 10_000_000)),
    );
    let price = price.with_data_type(ColumnType::arrow(COLUMNS[3].1));
    let comment = |row: u64| {
        let words = 2 + scrambled(row) % 5;
        (0..words)
            .map(|word| WORDS[(scrambled(row * 8 + word) % 12) as usize])
            .collect::<String>()
    };
    vec![
        Arc::new(Int64Array::from_iter_values(
            rows().map(|row| (row / 4) as i64),
        )),
        Arc::new(Int32Array::from_iter_values(
            rows().map(|row| (row % 4) as i32),
        )),
        Arc::new(Int64Array::from_iter_values(
            rows().map(|row| (scrambled(row) % 200_000) as i64),
        )),
        Arc::new(price),
        Arc::new(Date32Array::from_iter_values(
            rows().map(|row| 8000 + (scrambled(row) % 2500) as i32),
        )),
        Arc::new(StringViewArray::from_iter_values(
            rows().map(|row| MODES[(scrambled(row) % 7) as usize]),
        )),
        Arc::new(StringViewArray::from_iter_values(rows().map(comment))),
    ]
}

fn write(path: &Path, batches: &[Vec<ArrayRef>]) -> Arc<ProjectionFile> {
    let written =
        ProjectionWriter::create(&LocalFileSystem, path, &layout()).and_then(|mut writer| {
            batches.iter().try_for_each(|batch| writer.push(batch))?;
            writer.finish()?;
            ProjectionFile::open(&LocalFileSystem, path, &layout(), &[])
        });
    match written {
        Ok(file) => Arc::new(file),
        Err(error) => panic!("the table was not written: {error}"),
    }
}

fn benches(criterion: &mut Criterion) {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("orrery-bench-{}", std::process::id()));
    let created = std::fs::create_dir_all(&directory);
    assert!(created.is_ok(), "{created:?}");
    let starts = (0..ROWS).step_by(BATCH_ROWS as usize);
    let batches: Vec<Vec<ArrayRef>> = starts
        .map(|start| batch(start..ROWS.min(start + BATCH_ROWS)))
        .collect();
    let file = write(&directory.join("table"), &batches);
    for ((name, _), statistics) in COLUMNS.iter().zip(file.statistics().columns) {
        let bytes = statistics.map_or(0, |statistics| statistics.bytes);
        println!(
            "table/size/{name}: {:.2} bits a row",
            bytes as f64 * 8.0 / ROWS as f64
        );
    }
    scans(criterion, &file);
    look_ups(criterion, &file);
    let mut group = criterion.benchmark_group("table");
    group.throughput(Throughput::Elements(ROWS));
    group.sample_size(10);
    group.bench_function("write rows", |bencher| {
        bencher.iter(|| write(&directory.join("again"), &batches))
    });
    group.finish();
    let _removed = std::fs::remove_dir_all(&directory);
}

fn scans(criterion: &mut Criterion, file: &ProjectionFile) {
    let mut group = criterion.benchmark_group("table/scan");
    group.throughput(Throughput::Elements(ROWS));
    group.sample_size(20);
    let groups = || {
        (0..ROWS)
            .step_by(GROUP_ROWS as usize)
            .map(|start| start..ROWS.min(start + GROUP_ROWS))
    };
    for (column, (name, _)) in COLUMNS.iter().enumerate() {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                groups().try_for_each(|rows| {
                    file.read(rows, &[column]).map(|read| drop(black_box(read)))
                })
            })
        });
    }
    group.bench_function("mode, its codes", |bencher| {
        bencher.iter(|| {
            groups().try_for_each(|rows| {
                file.codes(SomeRows::Range(rows), 5)
                    .map(|read| drop(black_box(read)))
            })
        })
    });
    group.finish();
}

fn look_ups(criterion: &mut Criterion, file: &Arc<ProjectionFile>) {
    let mut group = criterion.benchmark_group("table/look-up");
    let mut keys = KeyRows::default();
    let read = file.read(0..ROWS, &[0, 1]);
    let encoded = read.and_then(|read| file.key_encoder().encode_rows(&read, &mut keys));
    assert!(encoded.is_ok(), "{encoded:?}");
    let mut number = 0;
    let mut next = |step: u64| {
        number += step;
        number
    };
    group.bench_function("random key", |bencher| {
        bencher.iter(|| file.find(keys.get((scrambled(next(1)) % ROWS) as usize)))
    });
    group.bench_function("random key, its row", |bencher| {
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        bencher.iter(|| {
            let rows = file.find(keys.get((scrambled(next(1)) % ROWS) as usize))?;
            file.read(rows, &all)
        })
    });
    for (name, step) in [
        ("every key", 1),
        ("every 10th key", 10),
        ("every 1000th key", 1000),
    ] {
        group.bench_function(name, |bencher| {
            let mut cursor = file.cursor();
            bencher.iter(|| cursor.find(keys.get((next(step) % ROWS) as usize)))
        });
    }
    group.finish();
}

criterion_group!(table, benches);
criterion_main!(table);
