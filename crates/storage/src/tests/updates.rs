//! Tests of transactions, recovery, checkpoints and history, against a set of quads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;
use crate::files::io::testing::{FailingFileSystem, RecordingFileSystem};
use crate::files::io::{Clock, FileSystem};

/// Goes on by a second with each look at it.
#[derive(Debug)]
pub(super) struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed) + 1_000_000
    }
}

pub(super) fn options() -> WriterOptions {
    WriterOptions {
        // Later than what the machine's clock says.
        clock: Arc::new(SteppingClock(AtomicI64::new(1 << 52))),
        ..WriterOptions::default()
    }
}

pub(super) fn open(directory: &Path) -> (Arc<Database>, Writer) {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    let writer = database.open_writer(options()).unwrap();
    (database, writer)
}

pub(super) fn intern(transaction: &mut Transaction, quads: &[SmallQuad]) -> Vec<[TermId; 4]> {
    quads
        .iter()
        .map(|(s, p, o, g)| {
            let graph = g.as_ref().map_or(TermId::DEFAULT_GRAPH, |graph| {
                transaction.intern(graph).unwrap()
            });
            let [s, p, o] = [s, p, o].map(|term| transaction.intern(term).unwrap());
            [s, p, o, graph]
        })
        .collect()
}

/// Commits insertions after deletions; the number of the commit.
pub(super) fn commit(writer: &Writer, deleted: &[SmallQuad], inserted: &[SmallQuad]) -> u64 {
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, deleted);
    transaction.delete(&mut rows).unwrap();
    let mut rows = intern(&mut transaction, inserted);
    transaction.insert(&mut rows).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    pending.wait().unwrap()
}

pub(super) fn set(quads: &[SmallQuad]) -> BTreeSet<SmallQuad> {
    quads.iter().cloned().collect()
}

pub(super) fn quad(number: u64) -> SmallQuad {
    let subject = iri(&format!("s{}", number % 17));
    let object = Term::string(format!("a longer text with the number {number}"));
    let graph = (number % 5 == 4).then(|| iri("graph"));
    (subject, iri(&format!("p{}", number % 3)), object, graph)
}

pub(super) fn quads(numbers: std::ops::Range<u64>) -> Vec<SmallQuad> {
    numbers.map(quad).collect()
}

#[test]
fn what_is_committed_is_visible_and_there_after_opening_again() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    assert_eq!(commit(&writer, &[], &quads(0..10)), 1);
    let old = database.snapshot();
    assert_eq!(commit(&writer, &quads(3..6), &quads(20..30)), 2);
    let mut expected = set(&quads(0..3));
    expected.extend(quads(6..10));
    expected.extend(quads(20..30));
    assert_eq!(dump(&database.snapshot()).unwrap(), expected);
    assert_eq!(dump(&old).unwrap(), set(&quads(0..10)));
    assert_eq!(database.snapshot().quad_count(), 17);

    let reader = Database::open(directory.path()).unwrap();
    assert_eq!(dump(&reader.snapshot()).unwrap(), expected);
    commit(&writer, &quads(0..1), &[]);
    expected.remove(&quad(0));
    assert!(reader.refresh().unwrap());
    assert!(!reader.refresh().unwrap());
    assert_eq!(dump(&reader.snapshot()).unwrap(), expected);
    drop(writer);
    let (database, writer) = open(directory.path());
    assert_eq!(database.snapshot().commit(), 3);
    assert_eq!(dump(&database.snapshot()).unwrap(), expected);
    assert_eq!(commit(&writer, &[], &quads(0..10)), 4);
    expected.extend(quads(0..10));
    assert_eq!(dump(&database.snapshot()).unwrap(), expected);
    for (subject, predicate, object, _) in quads(0..10) {
        for term in [subject, predicate, object] {
            let id = database.snapshot().term_id(&term).unwrap().unwrap();
            assert_eq!(database.snapshot().term(id).unwrap(), term);
        }
    }
    assert!(is_whole(directory.path()));
}

#[test]
fn a_transaction_sees_its_own_changes_and_leaves_no_trace_when_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..8));
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, &quads(4..12));
    assert_eq!(transaction.insert(&mut rows).unwrap(), 4);
    assert_eq!(transaction.insert(&mut rows).unwrap(), 0);
    let expected = set(&quads(0..12));
    assert_eq!(dump(&transaction.snapshot().unwrap()).unwrap(), expected);
    let mut rows = intern(&mut transaction, &quads(0..12));
    assert_eq!(transaction.delete(&mut rows).unwrap(), 12);
    assert!(dump(&transaction.snapshot().unwrap()).unwrap().is_empty());
    assert_eq!(transaction.insert(&mut rows).unwrap(), 12);
    assert_eq!(transaction.quad_count(), 12);
    let fresh = transaction.fresh_blank_node();
    assert_eq!(
        transaction.snapshot().unwrap().next_blank_node(),
        fresh.payload() + 1
    );
    drop(transaction);
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..8)));
    let terms = database.snapshot().delta_terms();
    assert_eq!(database.snapshot().delta_dictionary().len(), terms);

    // What cancels out is no commit.
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, &quads(6..10));
    assert_eq!(transaction.insert(&mut rows).unwrap(), 2);
    assert_eq!(transaction.delete(&mut rows).unwrap(), 2);
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    assert_eq!(
        (pending.number(), pending.added(), pending.removed()),
        (1, 0, 0)
    );
    assert_eq!(pending.wait().unwrap(), 1);
}

#[test]
fn clearing_takes_all_of_a_graph_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    build_small(directory.path(), &quads(0..40)).unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &quads(0..10), &quads(40..60));
    let in_graph =
        |quads: &[SmallQuad]| quads.iter().filter(|quad| quad.3.is_some()).count() as u64;
    let mut transaction = writer.begin().unwrap();
    let graph = transaction.intern(&iri("graph")).unwrap();
    let all = quads(10..60);
    assert_eq!(transaction.clear_graph(graph).unwrap(), in_graph(&all));
    assert_eq!(transaction.clear_graph(graph).unwrap(), 0);
    let snapshot = transaction.snapshot().unwrap();
    let rest: Vec<SmallQuad> = all
        .iter()
        .filter(|quad| quad.3.is_none())
        .cloned()
        .collect();
    assert_eq!(dump(&snapshot).unwrap(), set(&rest));
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    let mut transaction = writer.begin().unwrap();
    let count = transaction.clear_graph(TermId::DEFAULT_GRAPH).unwrap();
    assert_eq!(count, rest.len() as u64);
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(database.snapshot().quad_count(), 0);
}

#[test]
fn the_first_named_graph_may_come_by_an_update() {
    let in_default: Vec<SmallQuad> = quads(0..50)
        .into_iter()
        .filter(|quad| quad.3.is_none())
        .collect();
    for checkpoints in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        build_small(directory.path(), &in_default).unwrap();
        let (database, writer) = open(directory.path());
        let more: Vec<SmallQuad> = quads(50..60)
            .into_iter()
            .filter(|quad| quad.3.is_none())
            .collect();
        commit(&writer, &in_default[..5], &more);
        assert!(!database.snapshot().has_named_graphs());
        if checkpoints {
            assert!(writer.checkpoint().unwrap());
            assert!(!database.snapshot().has_named_graphs());
        }
        commit(&writer, &[], &[quad(4)]);
        let check = |snapshot: &Arc<Snapshot>| {
            let gspo = snapshot.index(Permutation::Gspo).unwrap();
            assert_eq!(gspo.rows(), snapshot.quad_count());
            let graph = snapshot.term_id(&iri("graph")).unwrap().unwrap();
            assert_eq!(gspo.range(&[graph]).unwrap().len(), 1);
            let default_graph = gspo.range(&[TermId::DEFAULT_GRAPH]).unwrap();
            assert_eq!(default_graph.len(), snapshot.quad_count() - 1);
            let mut rows: Vec<[u64; 4]> = Vec::new();
            for (index, permutation) in snapshot.indexes().zip(Permutation::ALL) {
                let mut cursor = index.cursor();
                let mut found: Vec<[u64; 4]> = (0..index.rows())
                    .map(|row| permutation.quad(cursor.row(row).unwrap().unwrap()))
                    .collect();
                found.sort_unstable();
                if rows.is_empty() {
                    rows.clone_from(&found);
                }
                assert_eq!(found, rows);
            }
        };
        check(&database.snapshot());
        if checkpoints {
            assert!(writer.checkpoint().unwrap());
            check(&database.snapshot());
        }
        drop(writer);
        check(&Database::open(directory.path()).unwrap().snapshot());
    }
}

#[test]
fn old_states_can_be_read_across_checkpoints_until_they_are_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(build_small(directory.path(), &quads(0..5)).unwrap());
    let retention = Retention {
        commits_max: 12,
        age_max: Duration::from_secs(1 << 40),
    };
    let writer = database
        .open_writer(WriterOptions {
            retention,
            ..options()
        })
        .unwrap();
    let first = database.snapshot().commit();
    let mut states = BTreeMap::new();
    let mut state = set(&quads(0..5));
    states.insert(first, state.clone());
    for round in 0..30 {
        let (deleted, inserted) = (quads(round..round + 2), quads(round + 3..round + 6));
        let number = commit(&writer, &deleted, &inserted);
        for quad in &deleted {
            state.remove(quad);
        }
        state.extend(inserted);
        states.insert(number, state.clone());
        if round % 4 == 3 {
            assert!(writer.checkpoint().unwrap());
            assert!(is_whole(directory.path()));
        }
        let reader = Database::open(directory.path()).unwrap();
        for (&number, expected) in states.iter().rev().take(12) {
            for database in [&*database, &reader] {
                let old = database.snapshot_at(At::Commit(number)).unwrap();
                assert_eq!(old.commit(), number);
                assert_eq!(dump(&old).unwrap(), *expected);
                let by_time = database
                    .snapshot_at(At::Time(old.commit_time_us()))
                    .unwrap();
                assert_eq!(dump(&by_time).unwrap(), *expected);
            }
        }
    }
    assert!(matches!(
        database.snapshot_at(At::Commit(first + 2)),
        Err(Error::NoSuchCommit { .. })
    ));
    assert!(database.snapshot_at(At::Commit(first + 31)).is_err());
    let commits = database.commits().unwrap();
    assert_eq!(commits.last().unwrap().number, first + 30);
    assert!(
        commits
            .windows(2)
            .all(|pair| pair[0].number < pair[1].number)
    );

    // The changes since a commit lead from its state to the present.
    let since = first + 20;
    let mut followed = states[&since].clone();
    database
        .changes(&ReadScope::all_graphs(Asker::Process), since, |changes| {
            changes.removed(|quad| {
                assert!(followed.remove(&owned(quad)));
                Ok(())
            })?;
            changes.added(|quad| {
                assert!(followed.insert(owned(quad)));
                Ok(())
            })
        })
        .unwrap();
    assert_eq!(followed, state);
    assert!(
        database
            .changes(&ReadScope::all_graphs(Asker::Process), first, |_| Ok(()))
            .is_err()
    );
}

fn owned(quad: QuadRef<'_>) -> SmallQuad {
    (
        quad.subject.clone(),
        quad.predicate.clone(),
        quad.object.into_owned().into_owned(),
        quad.graph.cloned(),
    )
}

#[test]
fn an_update_that_lost_the_race_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    commit(&writer, &[], &quads(0..3));
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, &quads(3..5));
    transaction.insert(&mut rows).unwrap();
    let options = CommitOptions {
        expected: Some(0),
        ..CommitOptions::default()
    };
    let refused = transaction.commit(options.clone());
    assert!(matches!(
        refused,
        Err(Error::CommitConflict {
            expected: 0,
            found: 1
        })
    ));
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..3)));
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, &quads(3..5));
    transaction.insert(&mut rows).unwrap();
    let options = CommitOptions {
        expected: Some(1),
        durability: Durability::Relaxed,
        ..options
    };
    let pending = transaction.commit(options).unwrap();
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..5)));
    assert_eq!(pending.wait().unwrap(), 2);
}

/// A commit that nobody has waited for.
pub(super) fn begin_commit(
    writer: &Writer,
    inserted: &[SmallQuad],
    durability: Durability,
) -> PendingCommit {
    let mut transaction = writer.begin().unwrap();
    let mut rows = intern(&mut transaction, inserted);
    transaction.insert(&mut rows).unwrap();
    let options = CommitOptions {
        durability,
        ..CommitOptions::default()
    };
    transaction.commit(options).unwrap()
}

#[test]
fn a_relaxed_commit_is_done_at_once_and_seen_with_the_durable_ones_before_it() {
    let disk = FailingFileSystem::over(&RecordingFileSystem::new());
    let file_system: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let database = Arc::new(Database::create_or_open_with(file_system, "/db").unwrap());
    let writer = database.open_writer(options()).unwrap();
    let seen = || database.snapshot().commit();

    let relaxed = begin_commit(&writer, &quads(0..1), Durability::Relaxed);
    assert_eq!(seen(), 1);
    assert_eq!(relaxed.wait().unwrap(), 1);

    let held = disk.hold_syncs();
    let durable = begin_commit(&writer, &quads(1..2), Durability::Durable);
    let relaxed = begin_commit(&writer, &quads(2..3), Durability::Relaxed);
    let later = begin_commit(&writer, &quads(3..4), Durability::Durable);
    let last = begin_commit(&writer, &quads(4..5), Durability::Relaxed);
    // Nothing has been synced since, so nobody may see commit 2; the relaxed ones are done
    // nevertheless.
    assert_eq!(seen(), 1);
    assert!(relaxed.is_done() && !durable.is_done());
    assert_eq!(relaxed.wait().unwrap(), 3);
    assert_eq!(last.wait().unwrap(), 5);
    assert_eq!(seen(), 1);
    drop(held);
    assert_eq!(durable.wait().unwrap(), 2);
    assert!(seen() >= 3);
    assert_eq!(later.wait().unwrap(), 4);
    assert_eq!(seen(), 5);
    assert_eq!(dump(&database.snapshot()).unwrap(), set(&quads(0..5)));
}

#[test]
fn a_relaxed_commit_is_seen_soon_even_if_nobody_waits_for_the_durable_one_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    drop(begin_commit(&writer, &quads(0..1), Durability::Durable));
    drop(begin_commit(&writer, &quads(1..2), Durability::Relaxed));
    while database.snapshot().commit() < 2 {
        std::thread::yield_now();
    }
}

#[test]
fn only_one_writer_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer) = open(directory.path());
    assert!(matches!(
        database.open_writer(options()),
        Err(Error::Locked { .. })
    ));
    commit(&writer, &[], &quads(0..3));
    drop(writer);
    let again = database.open_writer(options()).unwrap();
    assert_eq!(commit(&again, &[], &quads(3..4)), 2);
}
