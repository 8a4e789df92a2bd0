use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Rows of a small universe, those in `below` before any delta.
fn row(number: u16) -> QuadRow {
    [u64::from(number / 64), 0, u64::from(number % 64), 1]
}

/// Batches of row numbers whose visibility is to be turned round.
fn batches() -> impl Strategy<Value = Vec<Vec<u16>>> {
    let number = prop_oneof![0u16..2_000, 500u16..600];
    let batch = prop_oneof![
        3 => prop::collection::vec(number.clone(), 0..20),
        1 => prop::collection::vec(number, 0..1_500),
        1 => (0u16..2_000, 0u16..1_500).prop_map(|(start, count)| (start..start + count).collect()),
    ];
    prop::collection::vec(batch, 0..12)
}

fn is_below(number: u16) -> bool {
    number.is_multiple_of(3)
}

/// The changes of a batch and the entries after it.
fn turn(entries: &mut BTreeMap<QuadRow, bool>, mut batch: Vec<u16>) -> Vec<DeltaEntry> {
    batch.sort_unstable();
    batch.dedup();
    let mut changes = Vec::new();
    for number in batch {
        let row = row(number);
        let is_insertion = match entries.remove(&row) {
            Some(is_insertion) => !is_insertion,
            None => {
                entries.insert(row, !is_below(number));
                !is_below(number)
            }
        };
        changes.push(DeltaEntry { row, is_insertion });
    }
    changes
}

fn expected(entries: &BTreeMap<QuadRow, bool>) -> Vec<DeltaEntry> {
    entries
        .iter()
        .map(|(&row, &is_insertion)| DeltaEntry { row, is_insertion })
        .collect()
}

proptest! {
    #[test]
    fn applied_batches_leave_the_entries_of_a_map(batches in batches()) {
        let mut entries = BTreeMap::new();
        let mut delta = DeltaIndex::new(Permutation::Psog);
        let mut versions = vec![(delta.clone(), entries.clone())];
        for batch in batches {
            let changes = turn(&mut entries, batch);
            delta = delta.apply(&changes).unwrap();
            versions.push((delta.clone(), entries.clone()));
        }
        // Older versions are as they were.
        for (delta, entries) in &versions {
            let found: Vec<DeltaEntry> = delta.entries().map(Result::unwrap).collect();
            prop_assert_eq!(&found, &expected(entries));
            prop_assert_eq!(delta.len(), entries.len() as u64);
            let insertions = entries.values().filter(|&&is_insertion| is_insertion).count() as u64;
            prop_assert_eq!(delta.insertions(), insertions);
            prop_assert_eq!(delta.tombstones(), delta.len() - insertions);
            for number in (0..2_000).step_by(7) {
                let found = delta.find(&row(number)).unwrap();
                prop_assert_eq!(found.map(|entry| entry.is_insertion), entries.get(&row(number)).copied());
            }
        }
        for (earlier, _) in &versions {
            for later in [&versions[versions.len() - 1].0, &versions[versions.len() / 2].0] {
                let changes = later.changes_since(earlier).unwrap();
                let again = earlier.apply(&changes).unwrap();
                prop_assert!(again.entries().map(Result::unwrap).eq(later.entries().map(Result::unwrap)));
            }
        }
    }
}

#[test]
fn a_small_batch_shares_all_chunks_but_one() {
    let rows: Vec<DeltaEntry> = (0..10_000)
        .map(|number| DeltaEntry {
            row: [0, number, 0, 1],
            is_insertion: true,
        })
        .collect();
    let delta = DeltaIndex::new(Permutation::Spog).apply(&rows).unwrap();
    let change = DeltaEntry {
        row: [0, 5_000, 0, 1],
        is_insertion: false,
    };
    let next = delta.apply(&[change]).unwrap();
    let is_shared = |chunk: &Slot| {
        delta
            .root
            .chunks
            .iter()
            .any(|old| old.is_shared_with(chunk))
    };
    let copied = next
        .root
        .chunks
        .iter()
        .filter(|chunk| !is_shared(chunk))
        .count();
    assert_eq!(copied, 1);
    assert_eq!(next.len(), 9_999);
}

#[test]
fn a_change_that_changes_nothing_is_refused() {
    let change = DeltaEntry {
        row: [1, 2, 3, 4],
        is_insertion: true,
    };
    let delta = DeltaIndex::new(Permutation::Spog).apply(&[change]).unwrap();
    assert!(delta.apply(&[change]).is_err());
    assert!(delta.apply(&[change, change]).is_err());
}
