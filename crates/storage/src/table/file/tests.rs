use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use proptest::prelude::*;
use tempfile::TempDir;

use super::super::key::{KeyRows, behind_prefix};
use super::super::testing::{Value, any_column, array_of, value_of};
use super::super::{
    ColumnId, ColumnType, LANE_DIGITS_MAX, Physical, ProjectionColumn, ProjectionLayout, RelationId,
};
use super::*;
use crate::files::block_file::{BlockFile, BlockFileWriter, BlockNumber};
use crate::files::io::LocalFileSystem;

/// Numbers that look random, the same each time.
#[derive(Debug, Clone)]
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// Rows that were written, in the order of their keys.
struct Model {
    layout: ProjectionLayout,
    columns: Vec<ArrayRef>,
    keys: KeyRows,
}

const ROW: ProjectionColumn = ProjectionColumn {
    id: ColumnId(99),
    column_type: ColumnType::BigInt,
    is_nullable: false,
};

impl Model {
    /// Rows of values from a pool per column, made different by a number as the last column of the
    /// key.
    fn new(
        columns: &[ProjectionColumn],
        key_columns: usize,
        pools: &[Vec<Value>],
        rows: usize,
        seed: u64,
    ) -> Self {
        let mut numbers = Numbers(seed);
        let mut layout = ProjectionLayout {
            relation: RelationId(7),
            columns: Vec::new(),
            key_columns: key_columns + 1,
        };
        let mut arrays = Vec::new();
        for (number, (column, pool)) in columns.iter().zip(pools).enumerate() {
            let pool = array_of(column.column_type, pool.iter().cloned());
            // Some columns come in runs.
            let run_rows = [1, 1, 7, 3000][numbers.below(4)];
            let mut place = 0;
            let picks: UInt32Array = (0..rows)
                .map(|row| {
                    if row % run_rows == 0 {
                        place = numbers.below(pool.len()) as u32;
                    }
                    place
                })
                .collect::<Vec<_>>()
                .into();
            if number == key_columns {
                push_row_numbers(&mut layout, &mut arrays, rows);
            }
            layout.columns.push(ProjectionColumn {
                id: ColumnId(number as u32 + 1),
                ..*column
            });
            arrays.push(take(&pool, &picks, None).unwrap());
        }
        if columns.len() <= key_columns {
            push_row_numbers(&mut layout, &mut arrays, rows);
        }
        Self::of(layout, arrays)
    }

    fn of(layout: ProjectionLayout, arrays: Vec<ArrayRef>) -> Self {
        let encoder = super::super::KeyEncoder::new(layout.key());
        let mut unsorted = KeyRows::default();
        encoder
            .encode_rows(&arrays[..layout.key_columns], &mut unsorted)
            .unwrap();
        let mut order: Vec<u32> = (0..unsorted.len() as u32).collect();
        order.sort_by_key(|&row| unsorted.get(row as usize));
        let mut keys = KeyRows::default();
        order
            .iter()
            .for_each(|&row| keys.push(unsorted.get(row as usize)));
        let order = UInt32Array::from(order);
        let columns = arrays
            .iter()
            .map(|array| take(array, &order, None).unwrap());
        Self {
            columns: columns.collect(),
            layout,
            keys,
        }
    }

    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn write(&self, path: &Path, threads: usize, numbers: &mut Numbers) -> ProjectionSummary {
        let writer = ProjectionWriter::create(&LocalFileSystem, path, &self.layout).unwrap();
        let mut writer = writer.on_threads(threads);
        let batch_rows = [1, 100, 1024, 5000, 40_000][numbers.below(5)].max(self.rows() / 500);
        let mut row = 0;
        while row < self.rows() {
            let rows = (1 + numbers.below(2 * batch_rows)).min(self.rows() - row);
            let batch = self.columns.iter().map(|column| column.slice(row, rows));
            writer.push(&batch.collect::<Vec<_>>()).unwrap();
            row += rows;
        }
        writer.finish().unwrap()
    }

    fn open(&self, path: &Path) -> Arc<ProjectionFile> {
        Arc::new(ProjectionFile::open(&LocalFileSystem, path, &self.layout, &[]).unwrap())
    }

    fn check(&self, directory: &TempDir, numbers: &mut Numbers) {
        let path = directory.path().join("table");
        let mut same = numbers.clone();
        let summary = self.write(&path, 1, numbers);
        let with_threads = self.write(&directory.path().join("same"), 3, &mut same);
        assert_eq!(with_threads, summary);
        let file = self.open(&path);
        assert_eq!(file.rows(), self.rows() as u64);
        assert_eq!(summary.rows, file.rows());
        assert_eq!(summary.file, file.summary());
        let damage = file.verify();
        assert!(damage.is_empty(), "{damage:?}");
        self.check_reads(&file, numbers);
        self.check_searches(&file, numbers);
        self.check_statistics(&file);
    }

    fn check_reads(&self, file: &ProjectionFile, numbers: &mut Numbers) {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        assert_same(&file.read(0..file.rows(), &all).unwrap(), &self.columns);
        for _ in 0..10 {
            let start = numbers.below(self.rows() + 1);
            let length = [numbers.below(5), numbers.below(3000), self.rows()][numbers.below(3)];
            let rows = start..self.rows().min(start + length);
            let expected = self
                .columns
                .iter()
                .map(|column| column.slice(start, rows.len()));
            let found = file.read(rows.start as u64..rows.end as u64, &all).unwrap();
            assert_same(&found, &expected.collect::<Vec<_>>());
            let mut picks: Vec<u32> = (0..numbers.below(1 + 2 * length))
                .map(|_| (start + numbers.below(rows.len())) as u32)
                .filter(|&row| (row as usize) < self.rows())
                .collect();
            picks.sort_unstable();
            let wanted: Vec<u64> = picks.iter().map(|&row| u64::from(row)).collect();
            let picks = UInt32Array::from(picks);
            let expected = self
                .columns
                .iter()
                .map(|column| take(column, &picks, None).unwrap());
            assert_same(
                &file.take(&wanted, &all).unwrap(),
                &expected.collect::<Vec<_>>(),
            );
            for &column in &all {
                let rows = rows.start as u64..rows.end as u64;
                self.check_codes(file, rows.clone(), column);
                self.check_numbers(file, SomeRows::Range(rows), column);
                self.check_numbers(file, SomeRows::Ascending(&wanted), column);
            }
        }
    }

    fn check_numbers(&self, file: &ProjectionFile, rows: SomeRows<'_>, column: usize) {
        let mut numbers = vec![7];
        let read = file.numbers(rows.clone(), column, &mut numbers).unwrap();
        let picks: Vec<usize> = match rows {
            SomeRows::Range(rows) => (rows.start as usize..rows.end as usize).collect(),
            SomeRows::Ascending(rows) => rows.iter().map(|row| *row as usize).collect(),
        };
        let all = &self.columns[column];
        let number = |row: usize| -> Option<i128> {
            if let Some(decimals) = all.as_primitive_opt::<Decimal128Type>() {
                return Some(decimals.value(row));
            }
            let is_integer = all.data_type().is_integer() || all.data_type().is_temporal();
            let wide = cast(&all.slice(row, 1), &DataType::Int64);
            is_integer.then(|| i128::from(wide.unwrap().as_primitive::<Int64Type>().value(0)))
        };
        let is_wide =
            matches!(all.data_type(), DataType::Decimal128(digits, _) if *digits > LANE_DIGITS_MAX);
        let is_number = all.data_type().is_integer()
            || all.data_type().is_temporal()
            || matches!(all.data_type(), DataType::Decimal128(..)) && !is_wide;
        assert_eq!(read.is_some(), is_number);
        assert_eq!(numbers.len(), 1 + if is_number { picks.len() } else { 0 });
        for (found, row) in numbers[1..].iter().zip(picks) {
            if all.is_valid(row) {
                assert_eq!(Some(i128::from(*found)), number(row));
            }
        }
    }

    fn check_codes(&self, file: &ProjectionFile, rows: Range<u64>, column: usize) {
        let codes = file.codes(SomeRows::Range(rows.clone()), column).unwrap();
        let dictionary = file.dictionary(column).unwrap();
        assert_eq!(codes.is_some(), dictionary.is_some());
        let (Some(codes), Some(dictionary)) = (codes, dictionary) else {
            return;
        };
        let values = dictionary.array();
        let found = take(&values, &codes, None).unwrap();
        let expected = self.columns[column].slice(rows.start as usize, codes.len());
        assert_same(&[found], &[expected]);
        for code in 0..dictionary.len() as u32 {
            let value = dictionary.value(code).unwrap();
            assert_eq!(dictionary.find(value), Ok(code));
            let behind = [value, &[0]].concat();
            if dictionary.value(code + 1).is_none_or(|next| next != behind) {
                assert_eq!(dictionary.find(&behind), Err(code + 1));
            }
        }
    }

    fn check_searches(&self, file: &Arc<ProjectionFile>, numbers: &mut Numbers) {
        let mut cursor = file.cursor();
        let mut searched: Vec<Vec<u8>> = vec![Vec::new(), vec![255]];
        for _ in 0..40.min(self.rows()) {
            let key = self.keys.get(numbers.below(self.rows()));
            let cut = numbers.below(key.len() + 1);
            let mut other = key.to_vec();
            let place = numbers.below(key.len());
            other[place] = other[place]
                .wrapping_add(numbers.below(3) as u8)
                .wrapping_sub(1);
            searched.extend([key.to_vec(), key[..cut].to_vec(), other]);
            searched.extend(behind_prefix(&key[..cut]));
        }
        let keys: Vec<&[u8]> = self.keys.iter().collect();
        for round in 0..2 {
            for prefix in &searched {
                let start = keys.partition_point(|key| *key < &prefix[..]);
                let count = keys[start..].partition_point(|key| key.starts_with(prefix));
                let expected = start as u64..(start + count) as u64;
                assert_eq!(
                    file.lower_bound(prefix).unwrap(),
                    expected.start,
                    "{prefix:?}"
                );
                assert_eq!(
                    cursor.lower_bound(prefix).unwrap(),
                    expected.start,
                    "{prefix:?}"
                );
                assert_eq!(file.find(prefix).unwrap(), expected, "{prefix:?}");
                assert_eq!(cursor.find(prefix).unwrap(), expected, "{prefix:?} {round}");
            }
            searched.sort();
        }
    }

    fn check_statistics(&self, file: &ProjectionFile) {
        let statistics = file.statistics();
        for (column, found) in self.columns.iter().zip(&statistics.columns) {
            let found = found.as_ref().unwrap();
            assert_eq!(found.nulls, column.null_count() as u64);
            assert_eq!(found.least.is_some(), found.nulls < statistics.rows);
        }
        let is_numbered = self.layout.key_columns == 1;
        assert!(
            !is_numbered || statistics.columns[0].as_ref().unwrap().distinct == statistics.rows
        );
        assert_eq!(file.dictionary(0).unwrap().is_some(), {
            let distinct = statistics.columns[0].as_ref().unwrap().is_distinct_exact;
            distinct
                && self.layout.columns[0].column_type.physical() == Physical::Bytes
                && !is_numbered
        });
    }
}

fn push_row_numbers(layout: &mut ProjectionLayout, arrays: &mut Vec<ArrayRef>, rows: usize) {
    layout.columns.push(ROW);
    let numbers = (0..rows).map(|row| Value::Number(row as i128 * 3 - 1000));
    arrays.push(array_of(ROW.column_type, numbers));
}

fn assert_same(found: &[ArrayRef], expected: &[ArrayRef]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        found.to_data().validate_full().unwrap();
        assert_eq!(found, expected);
    }
}

fn any_model(rows: Range<usize>) -> impl Strategy<Value = (Recipe, u64)> {
    let columns = prop::collection::vec((any_column(), 1usize..60), 1..6);
    let columns = columns.prop_flat_map(|columns| {
        let pools: Vec<_> = columns
            .iter()
            .map(|(column, count)| prop::collection::vec(value_of(column), *count))
            .collect();
        let columns: Vec<_> = columns.into_iter().map(|(column, _)| column).collect();
        (0..columns.len() + 1, Just(columns), pools)
    });
    (columns, rows, any::<u64>()).prop_map(|((key_columns, columns, pools), rows, seed)| {
        (
            Recipe {
                columns,
                key_columns,
                pools,
                rows,
            },
            seed,
        )
    })
}

/// What a model is made of, for messages.
#[derive(Debug, Clone)]
struct Recipe {
    columns: Vec<ProjectionColumn>,
    key_columns: usize,
    pools: Vec<Vec<Value>>,
    rows: usize,
}

impl Recipe {
    fn make(&self, seed: u64) -> Model {
        Model::new(
            &self.columns,
            self.key_columns,
            &self.pools,
            self.rows,
            seed,
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn a_small_file_is_what_was_written((model, seed) in any_model(0..3000)) {
        model.make(seed).check(&tempfile::tempdir().unwrap(), &mut Numbers(seed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]
    #[test]
    fn a_file_of_several_groups_is_what_was_written((model, seed) in any_model(30_000..80_000)) {
        model.make(seed).check(&tempfile::tempdir().unwrap(), &mut Numbers(seed));
    }

    #[test]
    fn bytes_that_were_changed_before_their_checksum_end_in_errors((model, seed) in any_model(0..3000)) {
        let model = model.make(seed);
        let mut numbers = Numbers(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        model.write(&path, 1, &mut numbers);
        for _ in 0..60 {
            let changed = change_a_byte(&path, &mut numbers);
            let Ok(file) = ProjectionFile::open(&LocalFileSystem, &changed, &model.layout, &[]) else {
                continue;
            };
            let _ = file.verify();
            let all: Vec<usize> = (0..model.columns.len()).collect();
            let _ = file.read(0..file.rows(), &all);
            let rows: Vec<u64> = (0..file.rows()).step_by(97).collect();
            let _ = file.take(&rows, &all);
            for row in (0..model.rows()).step_by(301) {
                let _ = file.find(model.keys.get(row));
            }
        }
    }
}

/// A copy of a block file in which one byte of a block is another, with right checksums.
fn change_a_byte(path: &Path, numbers: &mut Numbers) -> PathBuf {
    let file = BlockFile::open(&LocalFileSystem, path, KIND).unwrap();
    let target = path.with_extension("changed");
    let mut copy = BlockFileWriter::create(&LocalFileSystem, &target, KIND).unwrap();
    let changed = numbers.below(file.block_count() as usize) as u32;
    for number in 0..file.block_count() {
        let mut block = file.block(BlockNumber(number)).unwrap().to_vec();
        if number == changed && !block.is_empty() {
            // Headers are where most can go wrong.
            let end = [16, 200, block.len()][numbers.below(3)].min(block.len());
            let place = numbers.below(end);
            block[place] ^= 1 << numbers.below(8);
        }
        copy.append(&block).unwrap();
    }
    copy.finish(file.metadata()).unwrap();
    target
}

fn column(id: u32, column_type: ColumnType, is_nullable: bool) -> ProjectionColumn {
    ProjectionColumn {
        id: ColumnId(id),
        column_type,
        is_nullable,
    }
}

const TEXT: ColumnType = ColumnType::Text {
    length_max: None,
    is_padded: false,
};

/// Numbers as the key, and texts.
fn texts(texts: impl Iterator<Item = String>) -> Model {
    let values: Vec<Value> = texts.map(|text| Value::Bytes(text.into_bytes())).collect();
    let layout = ProjectionLayout {
        relation: RelationId(7),
        columns: vec![column(1, ColumnType::Integer, false), column(2, TEXT, true)],
        key_columns: 1,
    };
    let numbers = Int32Array::from_iter_values(0..values.len() as i32);
    Model::of(layout, vec![Arc::new(numbers), array_of(TEXT, values)])
}

#[test]
fn texts_of_which_no_two_are_equal_are_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let model =
        texts((0..70_000).map(|row| format!("carefully final deposits {}", row * 7919 % 100_003)));
    model.check(&directory, &mut Numbers(1));
    let file = model.open(&directory.path().join("table"));
    assert!(file.dictionary(1).unwrap().is_none());
    let statistics = file.statistics().columns[1].clone().unwrap();
    assert!(
        statistics.bytes * 2 < statistics.value_bytes,
        "{statistics:?}"
    );
    assert!(
        statistics.distinct.abs_diff(70_000) < 5_000,
        "{statistics:?}"
    );
}

#[test]
fn a_column_may_begin_with_few_texts_and_go_on_with_many() {
    let directory = tempfile::tempdir().unwrap();
    let many = |row: usize| match row < GROUP_ROWS {
        true => format!("few {}", row % 1000),
        false => format!("one of many, {row}"),
    };
    let model = texts((0..2 * GROUP_ROWS + 10).map(many));
    model.check(&directory, &mut Numbers(2));
    let file = model.open(&directory.path().join("table"));
    assert!(file.dictionary(1).unwrap().is_none());
    assert_eq!(file.zones(1).unwrap().unwrap().kind, ZoneKind::Values);
}

#[test]
fn few_texts_make_a_dictionary_whose_codes_are_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let model = texts((0..100_000).map(|row| format!("{}", row * row % 5003 / (1 + row / 40_000))));
    model.check(&directory, &mut Numbers(3));
    let file = model.open(&directory.path().join("table"));
    let dictionary = file.dictionary(1).unwrap().unwrap();
    let statistics = file.statistics().columns[1].clone().unwrap();
    assert_eq!(statistics.distinct, dictionary.len() as u64);
    assert!(statistics.is_distinct_exact);
    let zones = file.zones(1).unwrap().unwrap();
    assert_eq!(zones.kind, ZoneKind::Codes);
    let codes = file.codes(SomeRows::Range(0..1024), 1).unwrap().unwrap();
    let least = codes.values().iter().min();
    assert_eq!(zones.least[0], u64::from(*least.unwrap()));
}

#[test]
fn long_values_come_back_and_compress() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = [0, 1, LONG_BYTES, LONG_BYTES + 1, 100_000, 3_000_000];
    let model = texts((0..2000).map(|row| {
        "a long text, ".repeat(300_000)[..lengths[row * row % 6] % (1 + row * 2000)].to_owned()
    }));
    model.check(&directory, &mut Numbers(4));
    let file = model.open(&directory.path().join("table"));
    assert!(file.summary().bytes < 3_000_000, "{:?}", file.summary());
}

#[test]
fn columns_are_found_by_their_number_and_others_have_their_initial_value() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let model = texts((0..3000).map(|row| format!("{row}")));
    model.write(&path, 1, &mut Numbers(5));
    let layout = ProjectionLayout {
        columns: vec![
            column(1, ColumnType::Integer, false),
            column(5, ColumnType::SmallInt, false),
            column(2, TEXT, true),
            column(6, TEXT, true),
        ],
        ..model.layout.clone()
    };
    let initial = [(
        ColumnId(5),
        array_of(ColumnType::SmallInt, [Value::Number(-3)]),
    )];
    let file = ProjectionFile::open(&LocalFileSystem, &path, &layout, &initial).unwrap();
    let found = file.read(10..2500, &[3, 2, 1, 0]).unwrap();
    let expected = vec![
        array_of(TEXT, vec![Value::Null; 2490]),
        model.columns[1].slice(10, 2490),
        array_of(ColumnType::SmallInt, vec![Value::Number(-3); 2490]),
        model.columns[0].slice(10, 2490),
    ];
    assert_same(&found, &expected);
    assert_same(&file.take(&[5], &[1]).unwrap(), &[initial[0].1.clone()]);
    assert_eq!(file.zones(1).unwrap(), None);
    assert!(file.statistics().columns[1].is_none());
    assert!(file.verify().is_empty());
    let wrong = ProjectionLayout {
        columns: vec![column(2, TEXT, true), column(1, ColumnType::Integer, false)],
        ..layout
    };
    assert!(ProjectionFile::open(&LocalFileSystem, &path, &wrong, &[]).is_err());
}

#[test]
fn rows_out_of_order_and_wrong_columns_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let model = texts((0..10).map(|row| format!("{row}")));
    let slice = |start, rows| {
        let columns = model
            .columns
            .iter()
            .map(move |column| column.slice(start, rows));
        columns.collect::<Vec<_>>()
    };
    let writer = || {
        let mut writer = ProjectionWriter::create(&LocalFileSystem, &path, &model.layout).unwrap();
        writer.push(&slice(3, 2)).unwrap();
        writer
    };
    assert!(writer().push(&slice(4, 1)).is_err());
    assert!(writer().push(&slice(2, 1)).is_err());
    assert!(writer().push(&slice(5, 5)).is_ok());
    let twice = concat(&[&slice(6, 1)[0], &slice(6, 1)[0]]).unwrap();
    assert!(writer().push(&[twice, slice(6, 2)[1].clone()]).is_err());
    assert!(writer().push(&slice(5, 5)[..1]).is_err());
    assert!(
        writer()
            .push(&[slice(5, 5)[0].clone(), slice(5, 4)[1].clone()])
            .is_err()
    );
    let nulls = array_of(ColumnType::Integer, [Value::Null]);
    assert!(writer().push(&[nulls, slice(5, 1)[1].clone()]).is_err());
    let wide = array_of(ColumnType::BigInt, [Value::Number(9)]);
    assert!(writer().push(&[wide, slice(5, 1)[1].clone()]).is_err());
}

#[test]
fn every_flipped_bit_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let model = texts((0..300).map(|row| format!("{}", row % 150)));
    model.write(&path, 1, &mut Numbers(6));
    let bytes = std::fs::read(&path).unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        let other = directory.path().join("changed");
        std::fs::write(&other, &changed).unwrap();
        let is_found = match ProjectionFile::open(&LocalFileSystem, &other, &model.layout, &[]) {
            Err(_) => true,
            Ok(file) => !file.verify().is_empty(),
        };
        assert!(is_found, "{place}");
    }
}

#[test]
fn an_empty_file_has_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let model = texts(std::iter::empty());
    model.check(&directory, &mut Numbers(7));
    let file = model.open(&directory.path().join("table"));
    assert_eq!(file.find(&[1]).unwrap(), 0..0);
    assert_eq!(file.read(0..0, &[1]).unwrap()[0].len(), 0);
}
