//! Tests of transactions beyond memory: each becomes a new base as a whole, or nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use orrery_loader::{
    BulkCommit, CompactOptions, LoadError, SilentProgress, changes_of, commit_in_bulk,
};
use orrery_storage::io::LocalFileSystem;
use orrery_storage::io::testing::{FailingFileSystem, Fault};
use orrery_storage::{
    At, CommitOptions, Database, Error, FixedMemory, GraphSet, ReadView, Snapshot, Transaction,
    Writer, WriterOptions, verify,
};
use orrery_term::{Term, TermId};

/// Quads by number, in the graph with a number; 0 is the default graph.
type Model = BTreeSet<(u32, u8)>;

/// Holds the new terms of the tests, and some hundred changes beside.
const TERMS_BYTES: u64 = 2 << 20;

fn graph(transaction: &mut Transaction, number: u8) -> TermId {
    match number {
        0 => TermId::DEFAULT_GRAPH,
        _ => {
            let name = Term::iri(format!("http://example.org/graph{number}"));
            transaction.intern(&name).unwrap()
        }
    }
}

fn rows(transaction: &mut Transaction, quads: &Model) -> Vec<[TermId; 4]> {
    let predicate = Term::iri("http://example.org/p");
    let predicate = transaction.intern(&predicate).unwrap();
    let rows = quads.iter().map(|&(number, in_graph)| {
        let subject = match number % 7 {
            0 => Term::BlankNode(u64::from(number)),
            _ => Term::iri(format!("http://example.org/s{}", number / 10)),
        };
        let object = match number % 2 {
            0 => Term::string(format!("a text that is too long for an id: {number}")),
            _ => Term::string(format!("n{number}")),
        };
        let subject = transaction.intern(&subject).unwrap();
        let object = transaction.intern(&object).unwrap();
        [subject, predicate, object, graph(transaction, in_graph)]
    });
    rows.collect()
}

fn model(numbers: std::ops::Range<u32>, in_graph: u8) -> Model {
    numbers.map(|number| (number, in_graph)).collect()
}

fn check(database: &Database, snapshot: &Arc<Snapshot>, model: &Model) {
    let view = ReadView::of_process(Arc::clone(snapshot));
    let mut found = Model::new();
    let mut quads = view.quads().unwrap();
    while let Some(batch) = quads.next_batch().unwrap() {
        for quad in batch.iter() {
            let object = quad.object.to_string();
            let digits: String = object.chars().filter(char::is_ascii_digit).collect();
            let name = quad.graph.map_or(String::new(), ToString::to_string);
            let in_graph = name.chars().find_map(|letter| letter.to_digit(10));
            let one = (digits.parse().unwrap(), in_graph.unwrap_or(0) as u8);
            assert!(found.insert(one), "{one:?} came twice");
        }
    }
    assert!(found == *model, "{} of {}", found.len(), model.len());
    assert_eq!(view.quad_count(), model.len() as u64);
    assert!(verify(database.directory(), |_| {}).unwrap().is_empty());
}

fn bulk(
    writer: &Writer,
    memory_bytes: u64,
    change: impl Fn(&mut Transaction) -> Result<(), Error>,
) -> Result<BulkCommit, LoadError> {
    let options = CompactOptions {
        memory_bytes: 8 << 20,
        threads: 2,
    };
    commit_in_bulk(writer, &options, None, &SilentProgress, |transaction| {
        transaction.count_memory(|| Box::new(FixedMemory::new(memory_bytes)));
        change(transaction).map_err(LoadError::from)?;
        Ok(CommitOptions::default())
    })
}

fn open(directory: &Path) -> (Arc<Database>, Writer) {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    let options = WriterOptions {
        whole_graph_quads: 1_000,
        ..WriterOptions::default()
    };
    let writer = database.open_writer(options).unwrap();
    (database, writer)
}

/// Everything that the small transactions before did is in the base or in the deltas, in turns.
fn filled(directory: &Path) -> (Arc<Database>, Writer, Model) {
    let (database, writer) = open(directory);
    let mut all = Model::new();
    for (number, in_graph) in [(0, 0), (1, 1), (2, 2)] {
        let quads = model(number * 5_000..number * 5_000 + 6_000, in_graph);
        let committed = bulk(&writer, TERMS_BYTES, |transaction| {
            let mut rows = rows(transaction, &quads);
            transaction.insert(&mut rows).map(drop)
        });
        let BulkCommit::InBase { added, removed, .. } = committed.unwrap() else {
            panic!("memory should not have held it");
        };
        assert_eq!((added, removed), (6_000, 0));
        all.extend(quads);
        let mut transaction = writer.begin().unwrap();
        let few = model(number * 5_000..number * 5_000 + 10, in_graph);
        let mut rows = rows(&mut transaction, &few);
        assert_eq!(transaction.delete(&mut rows).unwrap(), 10);
        all.retain(|quad| !few.contains(quad));
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        pending.wait().unwrap();
    }
    check(&database, &database.snapshot(), &all);
    (database, writer, all)
}

#[test]
fn insertions_beyond_the_memory_become_a_new_base_with_all_that_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer, before) = filled(directory.path());
    let last = database.snapshot().commit();
    let mut after = before.clone();
    // A graph goes, some quads of another go, some come in memory, many do not find room there.
    let gone = model(5_100..5_200, 1);
    let many = model(20_000..32_000, 1);
    let few = model(100..110, 3);
    let committed = bulk(&writer, TERMS_BYTES, |transaction| {
        let graph = graph(transaction, 2);
        assert_eq!(transaction.clear(&GraphSet::one(graph))?, 5_990);
        let mut quads = rows(transaction, &gone);
        assert_eq!(transaction.delete(&mut quads)?, 100);
        let mut quads = rows(transaction, &few);
        assert_eq!(transaction.insert(&mut quads)?, 10);
        let mut quads = rows(transaction, &many);
        transaction.insert(&mut quads).map(drop)
    });
    after.retain(|quad| quad.1 != 2 && !gone.contains(quad));
    after.extend(&few);
    after.extend(&many);
    let BulkCommit::InBase {
        number,
        added,
        removed,
    } = committed.unwrap()
    else {
        panic!("memory should not have held it");
    };
    assert_eq!((number, added, removed), (last + 1, 12_010, 6_090));
    let snapshot = database.snapshot();
    check(&database, &snapshot, &after);
    assert_eq!(changes_of(&ReadView::of_process(snapshot)), 0);
    // The state before it is still told, and so is that it was no small commit.
    let old = database.snapshot_at(At::Commit(last)).unwrap();
    check(&database, &old, &before);
    let listed = database.commits().unwrap().pop().unwrap();
    assert_eq!(
        (listed.number, listed.added - listed.removed),
        (number, 12_010 - 6_090)
    );
    drop((writer, database));
    let (database, writer) = open(directory.path());
    check(&database, &database.snapshot(), &after);
    writer.begin().unwrap();
}

#[test]
fn staged_quads_that_are_all_there_already_are_no_commit() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer, all) = filled(directory.path());
    let last = database.snapshot().commit();
    let there: Model = all.iter().copied().filter(|quad| quad.0 % 7 > 0).collect();
    let committed = bulk(&writer, 0, |transaction| {
        assert!(transaction.is_bulk());
        let rows = rows(transaction, &there);
        transaction.insert_staged(&rows)
    });
    let BulkCommit::InBase {
        number,
        added,
        removed,
    } = committed.unwrap()
    else {
        panic!("it was staged");
    };
    assert_eq!((number, added, removed), (last, 0, 0));
    check(&database, &database.snapshot(), &all);
    assert_eq!(database.snapshot().commit(), last);
}

#[test]
fn what_memory_holds_is_a_commit_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer, mut all) = filled(directory.path());
    let quads = model(50_000..50_100, 1);
    let committed = bulk(&writer, TERMS_BYTES, |transaction| {
        let mut rows = rows(transaction, &quads);
        transaction.insert(&mut rows).map(drop)
    });
    let BulkCommit::InLog(pending) = committed.unwrap() else {
        panic!("memory holds it");
    };
    assert_eq!((pending.added(), pending.removed()), (100, 0));
    pending.wait().unwrap();
    all.extend(quads);
    check(&database, &database.snapshot(), &all);
}

#[test]
fn what_was_staged_cannot_be_read_or_cleared_and_a_failure_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (database, writer, all) = filled(directory.path());
    let terms = database.snapshot().delta_terms();
    let quads = model(20_000..30_000, 1);
    let staging = |transaction: &mut Transaction| {
        let mut rows = rows(transaction, &quads);
        transaction.insert(&mut rows).map(drop)
    };
    type Then = fn(&mut Transaction) -> Result<(), Error>;
    let refused: [Then; 3] = [
        |transaction| transaction.snapshot().map(drop),
        |transaction| {
            let graph = graph(transaction, 1);
            transaction.clear_graph(graph).map(drop)
        },
        |transaction| transaction.clear_all().map(drop),
    ];
    for then in refused {
        let refused = bulk(&writer, TERMS_BYTES, |transaction| {
            staging(transaction)?;
            then(transaction)
        });
        assert!(
            matches!(refused, Err(LoadError::Storage(Error::StagedUnreadable))),
            "{refused:?}"
        );
        check(&database, &database.snapshot(), &all);
        assert_eq!(database.snapshot().delta_dictionary().len(), terms);
    }
    // Another graph can be cleared, as MOVE does.
    let committed = bulk(&writer, TERMS_BYTES, |transaction| {
        staging(transaction)?;
        let graph = graph(transaction, 2);
        transaction.clear_graph(graph).map(drop)
    });
    assert!(matches!(committed.unwrap(), BulkCommit::InBase { .. }));
    let mut after: Model = all.into_iter().filter(|quad| quad.1 != 2).collect();
    after.extend(&quads);
    check(&database, &database.snapshot(), &after);
}

/// As loads are: the disk that fails is counted, what is wrong with a change is for its author.
#[test]
fn a_change_that_the_disk_fails_on_its_way_to_a_new_base_is_counted_as_a_failed_load() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FailingFileSystem::new(Arc::new(LocalFileSystem));
    let database = Database::create_or_open_with(Arc::new(disk.clone()), directory.path());
    let database = Arc::new(database.unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let loads = || {
        let loads = &database.activity().loads;
        (loads.done(), loads.failed())
    };
    let many = |transaction: &mut Transaction| {
        let mut rows = rows(transaction, &model(0..12_000, 0));
        transaction.insert(&mut rows).map(drop)
    };
    let refused = bulk(&writer, TERMS_BYTES, |transaction| {
        many(transaction)?;
        transaction.clear_all().map(drop)
    });
    assert!(refused.is_err());
    assert_eq!(loads(), (0, 0));
    let failed = bulk(&writer, TERMS_BYTES, |transaction| {
        many(transaction)?;
        disk.fail_from(disk.calls(), Fault::NoSpace);
        Ok(())
    });
    assert!(matches!(failed, Err(LoadError::Storage(_))), "{failed:?}");
    disk.heal();
    assert_eq!(loads(), (0, 1));
    bulk(&writer, TERMS_BYTES, many).unwrap();
    assert_eq!(loads(), (1, 1));
}
