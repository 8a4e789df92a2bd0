//! Tests of views against a sorted list of rows.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use orrery_column::VECTOR_ROWS;
use orrery_term::TermId;
use proptest::prelude::*;
use proptest::sample::Index;

use super::tests::{Model, bound, graph_rows, ids, look_ups, prefix_of, rows, sorted, write};
use super::*;
use crate::files::io::LocalFileSystem;
use crate::quads::delta::DeltaEntry;
use crate::quads::delta::{DeltaIndex, write_delta};

/// Changes as they come: rows to insert, and places of rows to delete; and whether a further level
/// begins with them.
type Batch = (Vec<QuadRow>, Vec<Index>, bool);

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let row = prop_oneof![
        prop::array::uniform4(0u64..4),
        (0u64..2, 0u64..4, 0u64..30, 0u64..64).prop_map(|(a, b, c, d)| [a, b, c, d]),
        // Behind all, as new terms are.
        (0u64..300).prop_map(|n| [3, TermId::delta(n).bits(), 0, 1]),
    ];
    let insertions = prop_oneof![
        prop::collection::vec(row.clone(), 0..20),
        prop::collection::vec(row, 0..1_500),
    ];
    let deletions = prop_oneof![
        prop::collection::vec(any::<Index>(), 0..20),
        prop::collection::vec(any::<Index>(), 0..3_000),
    ];
    prop::collection::vec((insertions, deletions, prop::bool::weighted(0.3)), 1..5)
}

/// Bases whose last vector is full, has one row, or lacks one.
fn border_rows() -> impl Strategy<Value = Vec<QuadRow>> {
    (1u64..4, -1i64..2).prop_map(|(vectors, off)| {
        let count = (vectors * VECTOR_ROWS as u64).saturating_add_signed(off);
        (0..count).map(|n| [n / 1500, n / 40, n, 1]).collect()
    })
}

/// A view of `base` after the batches, and the rows that it shows.
fn view(base: Arc<QuadIndex>, rows: Vec<QuadRow>, batches: Vec<Batch>) -> (Arc<QuadIndex>, Model) {
    let mut visible: BTreeSet<QuadRow> = rows.into_iter().collect();
    let permutation = base.permutation();
    let mut below = base;
    let mut delta = DeltaIndex::new(permutation);
    for (inserted, deleted, is_new_level) in batches {
        if is_new_level {
            below = QuadIndex::view(&below, delta).unwrap();
            delta = DeltaIndex::new(permutation);
        }
        let all: Vec<QuadRow> = visible.iter().copied().collect();
        let mut changes = BTreeSet::new();
        for place in deleted.iter().filter(|_| !all.is_empty()) {
            changes.insert((all[place.index(all.len())], false));
        }
        for row in inserted {
            if !visible.contains(&row) {
                changes.insert((row, true));
            }
        }
        let changes: Vec<DeltaEntry> = changes
            .into_iter()
            .map(|(row, is_insertion)| DeltaEntry { row, is_insertion })
            .collect();
        for change in &changes {
            match change.is_insertion {
                true => visible.insert(change.row),
                false => visible.remove(&change.row),
            };
        }
        delta = delta.apply(&changes).unwrap();
        // Positions that are known now are carried over to the next version.
        let now = QuadIndex::view(&below, delta.clone()).unwrap();
        let mut values = Vec::new();
        let all = now.all();
        now.cursor()
            .read(RowRange::new(all.len() / 3, all.len() / 2), 1, &mut values)
            .unwrap();
    }
    let rows: Vec<QuadRow> = visible.into_iter().collect();
    let view = QuadIndex::view(&below, delta).unwrap();
    assert_eq!(view.rows(), rows.len() as u64);
    (view, Model(rows))
}

/// Something to ask a cursor.
#[derive(Debug, Clone)]
enum Question {
    Seek(Index, (usize, i64), usize),
    SeekBetween(Index, usize, Bound<u64>, Bound<u64>),
    Read(Index, usize, usize),
    Row(Index),
    DistinctNext(Index, usize),
}

fn questions() -> impl Strategy<Value = Vec<Question>> {
    let change = (0usize..4, prop_oneof![3 => Just(0i64), 1 => -1i64..2]);
    let length = prop_oneof![0usize..5, 0usize..3_000];
    let question = prop_oneof![
        (any::<Index>(), change, 0usize..=4).prop_map(|(a, b, c)| Question::Seek(a, b, c)),
        (any::<Index>(), 0usize..4, bound(), bound())
            .prop_map(|(a, b, c, d)| Question::SeekBetween(a, b, c, d)),
        (any::<Index>(), length, 0usize..4).prop_map(|(a, b, c)| Question::Read(a, b, c)),
        any::<Index>().prop_map(Question::Row),
        (any::<Index>(), 0usize..4).prop_map(|(a, b)| Question::DistinctNext(a, b)),
    ];
    prop::collection::vec(question, 1..60)
}

fn ask((index, cursor): (&Arc<QuadIndex>, &mut Cursor), model: &Model, question: &Question) {
    let rows = &model.0;
    match question {
        Question::Seek(position, change, columns) => {
            let prefix = prefix_of(rows, position, *change, *columns);
            let found = cursor.seek(&ids(&prefix)).unwrap();
            assert_eq!(found, model.range(&prefix));
            let in_file = index.base().range(&ids(&prefix)).unwrap().len();
            let net = index.net(&ids(&prefix)).unwrap();
            assert_eq!(in_file.checked_add_signed(net), Some(found.len()));
        }
        Question::SeekBetween(position, columns, low, high) => {
            let prefix = prefix_of(rows, position, (0, 0), *columns);
            let bounds = (low.map(TermId::from_bits), high.map(TermId::from_bits));
            let found = cursor
                .seek_between(&ids(&prefix), bounds.0, bounds.1)
                .unwrap();
            let expected = model.range_between(&prefix, *low, *high);
            assert_eq!(found.len(), expected.len());
            if !expected.is_empty() {
                assert_eq!(found, expected);
            }
        }
        Question::Read(position, length, column) => {
            let start = position.index(rows.len() + 1);
            let end = rows.len().min(start + length);
            let mut values = vec![17];
            // Beyond the end nothing is read.
            let asked = RowRange::new(start as u64, (start + length) as u64);
            cursor.read(asked, *column, &mut values).unwrap();
            let expected = rows[start..end].iter().map(|row| &row[*column]);
            assert!(values[1..].iter().eq(expected));
        }
        Question::Row(position) => {
            let row = position.index(rows.len() + 1);
            assert_eq!(cursor.row(row as u64).unwrap().as_ref(), rows.get(row));
        }
        Question::DistinctNext(position, columns) => {
            let row = prefix_of(rows, position, (0, 0), 4);
            let (prefix, after) = (&row[..*columns], row[*columns]);
            let found = cursor
                .distinct_next(&ids(prefix), Some(TermId::from_bits(after)))
                .unwrap();
            assert_eq!(
                found.map(TermId::bits),
                model.distinct_next(prefix, Some(after))
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_view_answers_as_a_sorted_list_of_its_rows(
        rows in prop_oneof![3 => rows(), 1 => border_rows()], batches in batches(), questions in questions(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let base = write(&directory.path().join("index"), &rows);
        let (view, model) = view(base, rows, batches);
        prop_assert!(view.verify().is_empty());
        let mut cursor = view.cursor();
        for question in &questions {
            ask((&view, &mut cursor), &model, question);
        }
    }

    #[test]
    fn ascending_look_ups_with_all_columns_agree(
        rows in prop_oneof![3 => rows(), 1 => border_rows()], batches in batches(), look_ups in look_ups(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let base = write(&directory.path().join("index"), &rows);
        let (view, model) = view(base, rows, batches);
        let mut prefixes: Vec<_> = look_ups
            .iter()
            .map(|(position, change, columns)| prefix_of(&model.0, position, *change, *columns))
            .collect();
        prefixes.sort_unstable();
        let (mut seeker, mut reader) = (view.cursor(), view.cursor());
        for prefix in &prefixes {
            let expected = model.range(prefix);
            prop_assert_eq!(seeker.seek(&ids(prefix)).unwrap(), expected);
            for column in 0..COLUMNS {
                let mut values = Vec::new();
                reader.read(expected, column, &mut values).unwrap();
                let slice = &model.0[expected.start as usize..expected.end as usize];
                prop_assert!(values.iter().eq(slice.iter().map(|row| &row[column])));
            }
        }
    }

    #[test]
    fn a_scan_of_a_view_returns_its_rows(
        rows in prop_oneof![3 => rows(), 1 => border_rows()], batches in batches(), from in any::<Index>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let base = write(&directory.path().join("index"), &rows);
        let (view, model) = view(base, rows, batches);
        let from = from.index(model.0.len() + 1);
        let mut scan = view.scan(RowRange::new(from as u64, u64::MAX), [true, true, false, true]);
        let mut found = Vec::new();
        while let Some(vector) = scan.next_vector().unwrap() {
            prop_assert!(vector.column(2).is_empty());
            prop_assert_eq!(vector.rows().start, (from + found.len()) as u64);
            for row in 0..vector.rows().len() as usize {
                found.push([vector.column(0)[row], vector.column(1)[row], vector.column(3)[row]]);
            }
        }
        let expected: Vec<_> = model.0[from..].iter().map(|row| [row[0], row[1], row[3]]).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_delta_written_to_a_file_answers_as_the_one_in_memory(
        rows in rows(), batches in batches(), more in batches(), questions in questions(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("delta");
        let base = write(&directory.path().join("index"), &rows);
        let (in_memory, model) = view(Arc::clone(&base), rows, batches);
        let summary = write_delta(&LocalFileSystem, &path, &in_memory).unwrap();
        let delta = DeltaIndex::open(&LocalFileSystem, &path).unwrap();
        prop_assert_eq!(delta.file_summary(), Some(summary));
        prop_assert!(delta.entries().map(Result::unwrap).eq(in_memory.changes().unwrap().map(Result::unwrap)));
        let flushed = QuadIndex::view(&base, delta.clone()).unwrap();
        prop_assert!(flushed.verify().is_empty());
        let mut cursor = flushed.cursor();
        for question in &questions {
            ask((&flushed, &mut cursor), &model, question);
        }
        // Further changes, in a level of their own.
        let Model(rows) = model;
        let (both, model) = view(flushed, rows, more);
        let mut cursor = both.cursor();
        for question in &questions {
            ask((&both, &mut cursor), &model, question);
        }
    }

    #[test]
    fn damage_of_a_delta_file_is_reported_and_never_panics(place in any::<Index>(), change in 1u8..) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("delta");
        let rows = graph_rows(3_000);
        let base = write(&directory.path().join("index"), &rows);
        let changes: Vec<DeltaEntry> =
            rows.iter().step_by(3).map(|&row| DeltaEntry { row, is_insertion: false }).collect();
        let delta = DeltaIndex::new(Permutation::Psog).apply(&changes).unwrap();
        write_delta(&LocalFileSystem, &path, &QuadIndex::view(&base, delta).unwrap()).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(delta) = DeltaIndex::open(&LocalFileSystem, &path) {
            prop_assert!(!delta.verify().is_empty());
            if let Ok(view) = QuadIndex::view(&base, delta) {
                prop_assert!(!view.verify().is_empty());
                let mut cursor = view.cursor();
                for row in rows.iter().step_by(30) {
                    if let Ok(range) = cursor.seek(&ids(row)) {
                        prop_assert!(range.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn the_default_graph_in_order_of_graphs_answers_too(batches in batches(), questions in questions()) {
        let default_graph = TermId::DEFAULT_GRAPH.bits();
        let spog: Vec<QuadRow> = graph_rows(3_000).into_iter().map(|[a, b, c, _]| [a, b, c, default_graph]).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        let mut writer = QuadIndexWriter::create(&LocalFileSystem, &path, Permutation::Spog).unwrap();
        writer.push_rows(&spog).unwrap();
        writer.finish().unwrap();
        let spog_index = QuadIndex::open(&LocalFileSystem, &path).unwrap();
        let gspo = QuadIndex::by_default_graph(&spog_index).unwrap();
        let rows = sorted(spog.into_iter().map(|row| Permutation::Gspo.arrange(row)).collect());
        let (view, model) = view(gspo, rows, batches);
        let mut cursor = view.cursor();
        for question in &questions {
            ask((&view, &mut cursor), &model, question);
        }
    }
}

#[test]
fn a_delta_of_another_permutation_or_that_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let index = write(&directory.path().join("index"), &[[1, 2, 3, 4]]);
    let other = DeltaIndex::new(Permutation::Spog);
    assert!(QuadIndex::view(&index, other).is_err());
    let delta = DeltaIndex::new(Permutation::Psog);
    let twice = delta
        .apply(&[[1, 2, 3, 4], [1, 2, 3, 5]].map(|row| DeltaEntry {
            row,
            is_insertion: false,
        }))
        .unwrap();
    assert!(QuadIndex::view(&index, twice).is_err());
    let repeated = delta
        .apply(&[DeltaEntry {
            row: [1, 2, 3, 4],
            is_insertion: true,
        }])
        .unwrap();
    let view = QuadIndex::view(&index, repeated).unwrap();
    assert_eq!(view.verify().len(), 1);
}
