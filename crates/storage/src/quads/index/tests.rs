use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use orrery_term::TermId;
use proptest::prelude::*;

use super::*;
use crate::files::io::testing::all_else_of_this_machine;
use crate::files::io::{FileBytes, FileSystem, FileWriter, LocalFileSystem};
use crate::{Error, Result};

/// The oracle: all rows in a sorted list.
pub(super) struct Model(pub(super) Vec<QuadRow>);

impl Model {
    fn boundary(&self, is_behind: impl Fn(&[u64]) -> bool) -> u64 {
        self.0.partition_point(|row| is_behind(row)) as u64
    }

    pub(super) fn range(&self, prefix: &[u64]) -> RowRange {
        let columns = prefix.len();
        RowRange::new(
            self.boundary(|row| &row[..columns] < prefix),
            self.boundary(|row| &row[..columns] <= prefix),
        )
    }

    pub(super) fn range_between(
        &self,
        prefix: &[u64],
        low: Bound<u64>,
        high: Bound<u64>,
    ) -> RowRange {
        let columns = prefix.len();
        let is_below = |value: u64| match low {
            Bound::Included(low) => value < low,
            Bound::Excluded(low) => value <= low,
            Bound::Unbounded => false,
        };
        let is_within_high = |value: u64| match high {
            Bound::Included(high) => value <= high,
            Bound::Excluded(high) => value < high,
            Bound::Unbounded => true,
        };
        RowRange::new(
            self.boundary(|row| {
                &row[..columns] < prefix || &row[..columns] == prefix && is_below(row[columns])
            }),
            self.boundary(|row| {
                &row[..columns] < prefix
                    || &row[..columns] == prefix && is_within_high(row[columns])
            }),
        )
    }

    pub(super) fn distinct_next(&self, prefix: &[u64], after: Option<u64>) -> Option<u64> {
        self.0
            .iter()
            .filter(|row| row[..prefix.len()] == *prefix)
            .map(|row| row[prefix.len()])
            .find(|&value| after.is_none_or(|after| value > after))
    }
}

/// A disk on which each file has room for so many bytes.
#[derive(Debug)]
struct SmallDisk {
    bytes_free: u64,
}

#[derive(Debug)]
struct SmallDiskWriter {
    file: Box<dyn FileWriter>,
    bytes_free: u64,
}

impl FileSystem for SmallDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        Ok(Box::new(SmallDiskWriter {
            file: LocalFileSystem.create(path)?,
            bytes_free: self.bytes_free,
        }))
    }

    fn map(&self, path: &Path) -> Result<FileBytes> {
        LocalFileSystem.map(path)
    }

    all_else_of_this_machine!();
}

impl FileWriter for SmallDiskWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let fitting = bytes.len().min(self.bytes_free as usize);
        self.file.append(&bytes[..fitting])?;
        self.bytes_free -= fitting as u64;
        if fitting == bytes.len() {
            return Ok(());
        }
        self.file.flush()?;
        let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(Error::from_io(self.file.path(), "write", error))
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    fn bytes_written(&self) -> u64 {
        self.file.bytes_written()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

pub(super) fn ids(values: &[u64]) -> Vec<TermId> {
    values.iter().copied().map(TermId::from_bits).collect()
}

pub(super) fn write(path: &Path, rows: &[QuadRow]) -> Arc<QuadIndex> {
    let mut writer = QuadIndexWriter::create(&LocalFileSystem, path, Permutation::Psog).unwrap();
    // In pieces that do not match the vectors.
    for piece in rows.chunks(700) {
        writer.push_rows(piece).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.rows, rows.len() as u64);
    let index = QuadIndex::open(&LocalFileSystem, path).unwrap();
    assert_eq!(index.summary(), summary.file);
    assert_eq!(index.rows(), rows.len() as u64);
    assert_eq!(index.permutation(), Permutation::Psog);
    index
}

/// Rows like those of a graph: few predicates, many subjects, objects of several kinds.
pub(super) fn graph_rows(count: u64) -> Vec<QuadRow> {
    let mut rows: Vec<QuadRow> = (0..count)
        .map(|n| {
            let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let object = ((2 + mixed % 5) << 60) | (mixed % (count + 1));
            [n % 7, n / 11, object, 1]
        })
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

pub(super) fn sorted(mut rows: Vec<QuadRow>) -> Vec<QuadRow> {
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Rows of so few values that all prefixes repeat and run over the ends of vectors.
pub(super) fn rows() -> impl Strategy<Value = Vec<QuadRow>> {
    let row = |bits: u32| prop::array::uniform4(0u64..(1 << bits));
    prop_oneof![
        prop::collection::vec(row(2), 0..300),
        prop::collection::vec(row(4), 0..6000),
        (2u32..8).prop_flat_map(move |bits| {
            let row = (0u64..2, 0u64..4, 0u64..(1 << bits), 0u64..64);
            prop::collection::vec(row.prop_map(|(a, b, c, d)| [a, b, c, d]), 0..6000)
        }),
        (0u64..20_000).prop_map(graph_rows),
    ]
    .prop_map(sorted)
}

/// A prefix to look for: of some row, maybe changed a little.
pub(super) fn prefix_of(
    rows: &[QuadRow],
    position: &prop::sample::Index,
    change: (usize, i64),
    columns: usize,
) -> Vec<u64> {
    let mut row = match rows.len() {
        0 => [1, 2, 3, 4],
        length => rows[position.index(length)],
    };
    row[change.0] = row[change.0].wrapping_add_signed(change.1);
    row[..columns].to_vec()
}

pub(super) fn look_ups() -> impl Strategy<Value = Vec<(prop::sample::Index, (usize, i64), usize)>> {
    let change = (0usize..4, prop_oneof![3 => Just(0i64), 1 => -1i64..2]);
    prop::collection::vec((any::<prop::sample::Index>(), change, 0usize..=4), 1..40)
}

pub(super) fn bound() -> impl Strategy<Value = Bound<u64>> {
    prop_oneof![
        (0u64..80).prop_map(Bound::Included),
        (0u64..80).prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_look_up_agrees_with_a_sorted_list(rows in rows(), look_ups in look_ups(), is_ascending in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let index = write(&directory.path().join("index"), &rows);
        let model = Model(rows);
        let mut prefixes: Vec<_> = look_ups
            .iter()
            .map(|(position, change, columns)| prefix_of(&model.0, position, *change, *columns))
            .collect();
        if is_ascending {
            prefixes.sort_unstable();
        }
        let mut cursor = index.cursor();
        for prefix in &prefixes {
            let expected = model.range(prefix);
            prop_assert_eq!(cursor.seek(&ids(prefix)).unwrap(), expected);
            prop_assert_eq!(index.range(&ids(prefix)).unwrap(), expected);
            for column in 0..COLUMNS {
                let mut values = vec![17];
                cursor.read(expected, column, &mut values).unwrap();
                let slice = &model.0[expected.start as usize..expected.end as usize];
                prop_assert!(values[1..].iter().eq(slice.iter().map(|row| &row[column])));
            }
        }
    }

    #[test]
    fn bounds_on_the_next_column_agree_with_a_sorted_list(
        rows in rows(), look_ups in look_ups(), low in bound(), high in bound(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let index = write(&directory.path().join("index"), &rows);
        let model = Model(rows);
        for (position, change, columns) in &look_ups {
            let prefix = prefix_of(&model.0, position, *change, (*columns).min(3));
            let bounds = (low.map(TermId::from_bits), high.map(TermId::from_bits));
            let found = index.range_between(&ids(&prefix), bounds.0, bounds.1).unwrap();
            let expected = model.range_between(&prefix, low, high);
            prop_assert_eq!(found.len(), expected.len());
            if !expected.is_empty() {
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn skipping_visits_each_distinct_value(rows in rows(), position in any::<prop::sample::Index>(), columns in 0usize..4) {
        let directory = tempfile::tempdir().unwrap();
        let index = write(&directory.path().join("index"), &rows);
        let model = Model(rows);
        let prefix = prefix_of(&model.0, &position, (0, 0), columns);
        let mut cursor = index.cursor();
        let mut after = None;
        loop {
            let next = cursor.distinct_next(&ids(&prefix), after).unwrap();
            let expected = model.distinct_next(&prefix, after.map(TermId::bits));
            prop_assert_eq!(next.map(TermId::bits), expected);
            if next.is_none() {
                break;
            }
            after = next;
        }
    }

    #[test]
    fn a_scan_returns_the_rows_of_its_range(rows in rows(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let directory = tempfile::tempdir().unwrap();
        let index = write(&directory.path().join("index"), &rows);
        prop_assert!(index.verify().is_empty());
        let (from, to) = (from.index(rows.len() + 1), to.index(rows.len() + 2));
        let mut scan = index.scan(RowRange::new(from as u64, to as u64), [true, false, true, true]);
        let mut found = Vec::new();
        while let Some(vector) = scan.next_vector().unwrap() {
            prop_assert!(vector.column(1).is_empty());
            for row in 0..vector.rows().len() as usize {
                found.push([vector.column(0)[row], vector.column(2)[row], vector.column(3)[row]]);
            }
        }
        let to = to.min(rows.len()).max(from);
        let expected: Vec<_> = rows[from..to].iter().map(|row| [row[0], row[2], row[3]]).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn damage_is_reported_and_never_panics(damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..3)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let rows = graph_rows(5000);
        write(&path, &rows);
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.clone();
        for (position, change) in &damage {
            let position = position.index(bytes.len());
            bytes[position] ^= change;
        }
        prop_assume!(bytes != whole);
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(index) = QuadIndex::open(&LocalFileSystem, &path) {
            prop_assert!(!index.verify().is_empty());
            let mut cursor = index.cursor();
            for row in rows.iter().step_by(100) {
                // Either the right answer or an error.
                if let Ok(range) = cursor.seek(&ids(row)) {
                    prop_assert_eq!(range.len(), 1);
                }
            }
        }
    }
}

#[test]
fn rows_out_of_order_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut writer = QuadIndexWriter::create(&LocalFileSystem, &path, Permutation::Spog).unwrap();
    writer.push(&[1, 2, 3, 4]).unwrap();
    for row in [[1, 2, 3, 4], [0, 9, 9, 9]] {
        assert!(matches!(writer.push(&row), Err(Error::InvalidInput { .. })));
    }
    assert!(writer.push_rows(&[[2, 0, 0, 0], [1, 9, 0, 0]]).is_err());
}

#[test]
fn an_index_without_rows_answers() {
    let directory = tempfile::tempdir().unwrap();
    let index = write(&directory.path().join("index"), &[]);
    assert!(index.range(&ids(&[5])).unwrap().is_empty());
    assert!(index.range(&[]).unwrap().is_empty());
    assert_eq!(index.cursor().distinct_next(&[], None).unwrap(), None);
    assert!(
        index
            .scan(index.all(), [true; 4])
            .next_vector()
            .unwrap()
            .is_none()
    );
    assert!(index.verify().is_empty());
}

#[test]
fn a_permutation_and_its_inverse_agree() {
    for permutation in Permutation::ALL {
        let row = permutation.arrange([10, 11, 12, 13]);
        assert_eq!(permutation.quad(row), [10, 11, 12, 13]);
        for (column, position) in permutation.columns().into_iter().enumerate() {
            assert_eq!(row[column], 10 + position as u64);
            assert_eq!(permutation.column_of(position), column);
        }
        assert_eq!(Permutation::from_tag(permutation as u8), Some(permutation));
    }
}

#[test]
fn a_disk_that_fills_up_leaves_no_index_that_opens() {
    let directory = tempfile::tempdir().unwrap();
    let rows = graph_rows(3000);
    let whole = directory.path().join("whole");
    let bytes = write(&whole, &rows).summary().bytes;
    let path = directory.path().join("cut");
    for bytes_free in (0..bytes).step_by(997).chain([bytes - 1]) {
        let disk = SmallDisk { bytes_free };
        let written = QuadIndexWriter::create(&disk, &path, Permutation::Psog).and_then(|mut w| {
            w.push_rows(&rows)?;
            w.finish()
        });
        assert!(matches!(written, Err(Error::NoSpace { .. })));
        let opened = QuadIndex::open(&LocalFileSystem, &path);
        assert!(matches!(opened, Err(Error::Corrupt { .. })));
    }
}
