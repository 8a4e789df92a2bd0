//! Tests of adjacencies and touched keys against rows read by cursors.

use std::collections::BTreeMap;
use std::path::Path;

use orrery_term::{Term, TermKind};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::quads::index::QuadIndex;
use crate::{
    CommitOptions, Database, Permutation, SmallQuad, Snapshot, WriterOptions, build_small,
};
use orrery_term::TermId;
use std::sync::Arc;

/// Numbers, and strings too long to stand in an id: those that come later are of another kind than
/// those of the base.
fn any_term() -> impl Strategy<Value = Term<'static>> {
    prop_oneof![
        3 => (0i64..8).prop_map(|number| TermId::integer(number).unwrap().to_inline_term().unwrap()),
        1 => (0i64..4).prop_map(|number| TermId::integer(number << 40).unwrap().to_inline_term().unwrap()),
        3 => (0u64..12).prop_map(|number| Term::string(format!("a text that is in the dictionary {number:02}"))),
    ]
}

fn any_quads() -> impl Strategy<Value = Vec<SmallQuad>> {
    let predicate =
        (0i64..3).prop_map(|number| TermId::integer(number).unwrap().to_inline_term().unwrap());
    let graph = prop_oneof![
        9 => Just(None),
        1 => (0i64..2).prop_map(|number| TermId::integer(number).unwrap().to_inline_term()),
    ];
    let quad = (any_term(), predicate, any_term(), graph);
    prop::collection::vec(quad, 0..60)
}

fn directory() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    match in_memory.is_dir() {
        true => tempfile::tempdir_in(in_memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// The snapshots of a database after its beginning and after each change: what is deleted, what is
/// inserted, whether it is flushed then.
fn snapshots(
    base: &[SmallQuad],
    changes: &[(Vec<SmallQuad>, Vec<SmallQuad>, bool)],
) -> Vec<Arc<Snapshot>> {
    let directory = directory();
    drop(build_small(directory.path(), base).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut snapshots = vec![database.snapshot()];
    for (deleted, inserted, is_flushed) in changes {
        let mut transaction = writer.begin().unwrap();
        for (quads, is_insertion) in [(deleted, false), (inserted, true)] {
            let mut rows: Vec<[TermId; 4]> = Vec::new();
            for (s, p, o, g) in quads {
                let graph = g.as_ref().map_or(TermId::DEFAULT_GRAPH, |graph| {
                    transaction.intern(graph).unwrap()
                });
                let [s, p, o] = [s, p, o].map(|term| transaction.intern(term).unwrap());
                rows.push([s, p, o, graph]);
            }
            match is_insertion {
                true => transaction.insert(&mut rows).unwrap(),
                false => transaction.delete(&mut rows).unwrap(),
            };
        }
        transaction
            .commit(CommitOptions::default())
            .unwrap()
            .wait()
            .unwrap();
        if *is_flushed {
            writer.checkpoint().unwrap();
        }
        snapshots.push(database.snapshot());
    }
    snapshots
}

type Rows = BTreeMap<u64, Vec<(u64, u64)>>;

/// For each key of a predicate its values and their graphs.
fn rows_of(index: &Arc<QuadIndex>, predicate: TermId) -> Rows {
    let mut rows = Rows::new();
    let mut scan = index.scan(index.range(&[predicate]).unwrap(), [true; 4]);
    while let Some(vector) = scan.next_vector().unwrap() {
        for row in 0..vector.rows().len() as usize {
            let [key, value, graph] = [1, 2, 3].map(|column| vector.column(column)[row]);
            rows.entry(key).or_default().push((value, graph));
        }
    }
    rows
}

fn values(adjacency: &Adjacency, key: u64) -> Vec<u64> {
    let mut values = Vec::new();
    if let Some(rank) = adjacency.rank(key) {
        adjacency.extend(adjacency.positions(rank), &mut values);
        let each: Vec<u64> = adjacency
            .positions(rank)
            .map(|position| adjacency.value(position))
            .collect();
        assert_eq!(values, each);
        assert!(
            values
                .iter()
                .all(|&value| adjacency.contains(adjacency.positions(rank), value))
        );
        for candidates in [vec![0, 1], (0..40).collect(), values.clone()] {
            let mut all: Vec<u64> = values
                .iter()
                .flat_map(|&value| {
                    candidates
                        .iter()
                        .map(move |&other| (value + other).saturating_sub(20))
                })
                .collect();
            all.extend([0, u64::MAX]);
            all.sort_unstable();
            let expected: Vec<u64> = all
                .iter()
                .copied()
                .filter(|value| values.contains(value))
                .collect();
            adjacency.retain(adjacency.positions(rank), 0, &mut all);
            assert_eq!(all, expected);
        }
        assert!(!adjacency.contains(adjacency.positions(rank), values[0] ^ 1 << 50));
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn keys_that_no_change_touches_have_the_values_of_the_permutation(
        base in any_quads(),
        changes in prop::collection::vec((any_quads(), any_quads(), any::<bool>()), 0..3),
        keys in prop::sample::select(vec![1usize, 1000]),
    ) {
        for snapshot in snapshots(&base, &changes) {
            for (permutation, number) in [(Permutation::Psog, 0), (Permutation::Psog, 1), (Permutation::Posg, 2)] {
                let predicate = TermId::integer(number).unwrap();
                let index = snapshot.index(permutation).unwrap();
                let of_file = rows_of(&index.base(), predicate);
                let Some(measured) = Measured::new(index, predicate).unwrap() else {
                    // Not that none is ever made.
                    let default = TermId::DEFAULT_GRAPH.bits();
                    let in_named = of_file.values().flatten().any(|(_, graph)| *graph != default);
                    let distant = of_file.keys().any(|&key| TermId::from_bits(key).kind() == TermKind::Integer && TermId::from_bits(key).payload() & !0xFF != TermId::integer(0).unwrap().payload());
                    prop_assert!(of_file.is_empty() || in_named || distant);
                    continue;
                };
                let bytes = measured.bytes();
                let adjacency = measured.build().unwrap();
                prop_assert_eq!(adjacency.bytes(), bytes);
                prop_assert_eq!(adjacency.is_functional(), of_file.values().all(|values| values.len() == 1));

                if adjacency.is_functional() {
                    let keys: Vec<u64> = (0..12).map(|number| TermId::integer(number).unwrap().bits()).chain(of_file.keys().copied()).collect();
                    let (mut rows, mut single) = (Vec::new(), Vec::new());
                    adjacency.single_values(&keys, 7, &mut rows, &mut single);
                    let expected: Vec<(u32, u64)> = (7..).zip(&keys).filter_map(|(row, key)| Some((row, of_file.get(key)?[0].0))).collect();
                    let found: Vec<(u32, u64)> = rows.into_iter().zip(single).collect();
                    prop_assert_eq!(found, expected);
                }
                let of_view = rows_of(index, predicate);
                let touched = index.touched(predicate, keys).unwrap();
                prop_assert!(!touched.is_empty() || of_view == of_file);
                let others = (0..10).map(|number| TermId::integer(number).unwrap().bits());
                let delta = (0..10).map(|number| TermId::delta(number).bits());
                let all = of_view.keys().chain(of_file.keys()).copied();
                for key in all.chain(others).chain(delta).chain([0, u64::MAX]) {
                    let found = values(&adjacency, key);
                    let plain = |rows: &Rows| -> Vec<u64> {
                        rows.get(&key).into_iter().flatten().map(|(value, _)| *value).collect()
                    };
                    prop_assert_eq!(&found, &plain(&of_file));
                    let next = of_file.range(key..).next().map(|(next, _)| *next);
                    prop_assert_eq!(adjacency.key_from(key), next);
                    let is_touched = touched.contains(key).unwrap();
                    // Two deltas may undo each other.
                    prop_assert!(is_touched || of_view.get(&key) == of_file.get(&key));
                    prop_assert!(!is_touched || !index.deltas().is_empty());
                }
            }
        }
    }
}

/// Keys that are all there are between the first and the last are looked up together, those of a
/// scan with gaps one by one: dense, with holes, with words, wide.
#[test]
fn values_of_keys_in_a_row_are_those_of_each() {
    let subjects: Vec<Term<'static>> = (0..600)
        .map(|number| Term::string(format!("a text that is in the dictionary {number:03}")))
        .collect();
    let integer = |number: i64| TermId::integer(number).unwrap().to_inline_term().unwrap();
    let predicates: [fn(i64) -> Option<i64>; 5] = [
        |row| Some(row % 7),
        |row| (row % 150 != 20).then_some(row),
        |row| (row % 3 == 0).then_some(row),
        |row| (!(100..500).contains(&row)).then_some(row),
        |row| Some(row << 40),
    ];
    let mut quads = Vec::new();
    for (number, value) in (0..).zip(predicates) {
        for (row, subject) in (0..).zip(&subjects) {
            if let Some(value) = value(row) {
                quads.push((subject.clone(), integer(number), integer(value), None));
            }
        }
    }
    let snapshots = snapshots(&quads, &[]);
    let index = snapshots[0].index(Permutation::Psog).unwrap();
    let all: Vec<u64> = rows_of(index, TermId::integer(0).unwrap())
        .into_keys()
        .collect();
    let mixed: Vec<u64> = (0..all.len())
        .map(|row| all[row * 77 % all.len()])
        .collect();
    let mut keys_of_each = vec![all.clone(), mixed, all.iter().rev().copied().collect()];
    keys_of_each.push(
        [
            &all[5..80],
            &all[300..],
            &[all[0] - 1, all[599] + 1, u64::MAX, 0],
        ]
        .concat(),
    );
    keys_of_each.push((all[599] - 10..all[599] + 200).collect());
    // All keys of a predicate, and nearly all.
    for step in [2, 3] {
        let of_step: Vec<u64> = all.iter().step_by(step).copied().collect();
        let missing = of_step.iter().enumerate().filter(|(at, _)| at % 70 != 30);
        let doubled = of_step
            .iter()
            .enumerate()
            .flat_map(|(at, &key)| vec![key; 1 + usize::from(at % 90 == 3)]);
        keys_of_each.push(missing.map(|(_, key)| *key).collect());
        keys_of_each.push(doubled.collect());
        keys_of_each.push(
            of_step
                .iter()
                .map(|key| key + u64::from(key % 50 == 0))
                .collect(),
        );
        keys_of_each.push(of_step);
    }
    for number in 0..5 {
        let predicate = TermId::integer(number).unwrap();
        let of_file = rows_of(&index.base(), predicate);
        let measured = Measured::new(index, predicate).unwrap().unwrap();
        let adjacency = measured.build().unwrap();
        let mut together = 0;
        for keys in &keys_of_each {
            let (mut rows, mut values) = (Vec::new(), Vec::new());
            adjacency.single_values(keys, 7, &mut rows, &mut values);
            let expected: Vec<(u32, u64)> = (7..)
                .zip(keys)
                .filter_map(|(row, key)| Some((row, of_file.get(key)?[0].0)))
                .collect();
            let found: Vec<(u32, u64)> = rows.into_iter().zip(values).collect();
            assert_eq!(found, expected, "predicate {number}");
            let mut room = [0; KEYS_TOGETHER];
            together += keys
                .chunks_exact(KEYS_TOGETHER)
                .filter(|piece| adjacency.values_in_a_row(piece, &mut room))
                .count();
        }
        assert!(together > 0, "predicate {number}");
    }
}

#[test]
fn a_slot_is_built_by_one_and_given_up() {
    let slots = AdjacencySlots::default();
    let slot = slots.slot(TermId::MIN, || Ok(7)).unwrap();
    assert!(Arc::ptr_eq(
        &slot,
        &slots.slot(TermId::MIN, || Ok(0)).unwrap()
    ));
    assert_eq!((slot.rows(), slot.count(2), slot.count(3)), (7, 2, 5));
    let build = slot.begin().unwrap();
    assert!(slot.begin().is_none(), "somebody builds it");
    drop(build);
    assert_eq!(slot.count(1), 1, "counted anew");

    let adjacency = Arc::new(Adjacency {
        spans: Box::default(),
        words: None,
        starts: None,
        values: Values::Wide(Box::default()),
    });
    slot.begin().unwrap().finish(Arc::clone(&adjacency));
    assert!(Arc::ptr_eq(&slot.get().unwrap(), &adjacency));
    assert!(slot.begin().is_none(), "it is there");
    assert!(slot.drop_built() && !slot.drop_built());
    assert!(slot.get().is_none());
    slot.begin().unwrap().give_up();
    assert!(
        slot.begin().is_none() && slot.get().is_none(),
        "it cannot be"
    );
    assert_eq!(slot.begun(), 3);
}
