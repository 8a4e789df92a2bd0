//! Tests of the adjacency cache: building, eviction, and right answers while data change under many
//! threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_runtime::{Adjacencies, AdjacencyCounts, BuildThresholds, Workers};
use orrery_storage::{
    CommitOptions, Database, Permutation, ReadView, SmallQuad, WriterOptions, build_small,
};

use orrery_term::{Term, TermId};

use crate::context::{ContextOptions, QueryContext};
use crate::pattern::{GraphScope, PatternExec, PatternSpecification, QuadPattern, Slot};
use crate::rows::RowsExec;
use crate::test_support::{Quad, directory, names, run, small_quads, term, var};

/// `subjects` subjects have one object each, for each of these predicates.
fn quads(predicates: std::ops::Range<i64>, subjects: i64) -> Vec<Quad> {
    predicates
        .flat_map(|predicate| {
            (0..subjects).map(move |subject| {
                [
                    term(subject),
                    term(predicate),
                    term(subject + predicate),
                    TermId::DEFAULT_GRAPH,
                ]
            })
        })
        .collect()
}

fn view_of(quads: &[Quad]) -> Arc<ReadView> {
    let database = build_small(directory().path(), &small_quads(quads)).unwrap();
    database.view_of_process()
}

/// Adjacencies that are built when they are missed.
fn eager(bytes_max: u64) -> Adjacencies {
    Adjacencies::with_thresholds(bytes_max, BuildThresholds::AT_ONCE)
}

fn find(adjacencies: &Arc<Adjacencies>, view: &ReadView, predicate: i64) -> bool {
    let index = view.index(Permutation::Psog).unwrap();
    let slot = index.adjacency_slot(term(predicate)).unwrap().unwrap();
    let workers = Workers::new(2);
    let found = adjacencies.find(&slot, (&index, term(predicate)), 1, &workers);
    found.is_some()
}

/// What one of them takes.
fn bytes_of_one(view: &ReadView) -> u64 {
    let adjacencies = Arc::new(eager(u64::MAX));
    assert!(find(&adjacencies, view, 0));
    let counts = adjacencies.counts();
    assert_eq!(counts.adjacencies, 1);
    let slot = view.index(Permutation::Psog).unwrap();
    slot.adjacency_slot(term(0)).unwrap().unwrap().drop_built();
    counts.bytes
}

#[test]
fn the_one_that_was_not_used_for_longest_goes_first() {
    let view = view_of(&quads(0..3, 100));
    let bytes = bytes_of_one(&view);
    let adjacencies = Arc::new(eager(bytes * 2));
    let psog = view.index(Permutation::Psog).unwrap();
    let is_there = |predicate| {
        let slot = psog.adjacency_slot(term(predicate)).unwrap().unwrap();
        slot.get().is_some()
    };
    assert!((0..2).all(|predicate| (0..4).any(|_| find(&adjacencies, &view, predicate))));
    assert!(find(&adjacencies, &view, 0));
    assert!(find(&adjacencies, &view, 2));
    assert_eq!([0, 1, 2].map(is_there), [true, false, true]);
    let counts = adjacencies.counts();
    assert_eq!(
        counts,
        AdjacencyCounts {
            adjacencies: 2,
            bytes: bytes * 2
        }
    );
    // It has to be missed more often than the first time.
    assert!(!find(&adjacencies, &view, 1));
    assert!((0..4).any(|_| find(&adjacencies, &view, 1)));
}

#[test]
fn nothing_is_built_beyond_the_memory() {
    let view = view_of(&quads(0..1, 100));
    let bytes = bytes_of_one(&view);
    for bytes_max in [0, bytes - 1] {
        let adjacencies = Arc::new(eager(bytes_max));
        assert!((0..10).all(|_| !find(&adjacencies, &view, 0)));
        assert_eq!(adjacencies.counts(), AdjacencyCounts::default());
    }
}

#[test]
fn what_is_of_a_file_that_is_gone_is_forgotten() {
    let adjacencies = Arc::new(eager(u64::MAX));
    let view = view_of(&quads(0..1, 10));
    assert!(find(&adjacencies, &view, 0));
    drop(view);
    assert_eq!(adjacencies.counts(), AdjacencyCounts::default());
}

#[test]
fn many_rows_are_built_in_the_background_while_others_look_up() {
    let view = view_of(&quads(
        0..1,
        BuildThresholds::AT_ONCE.rows_at_once_max as i64 + 1,
    ));
    let adjacencies = Arc::new(eager(u64::MAX));
    assert!(!find(&adjacencies, &view, 0), "not at once");
    let end = Instant::now() + Duration::from_secs(30);
    while !find(&adjacencies, &view, 0) {
        assert!(Instant::now() < end, "never built");
        std::thread::yield_now();
    }
    assert_eq!(adjacencies.counts().adjacencies, 1, "built once");
}

#[test]
fn queries_are_right_while_others_write_and_adjacencies_come_and_go() {
    let directory = directory();
    drop(build_small(directory.path(), &small_quads(&quads(0..3, 200))).unwrap());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    // Room for two of three.
    let bytes = bytes_of_one(&database.view_of_process());
    let adjacencies = Arc::new(eager(bytes * 2));

    let first = database.snapshot().commit() as i64;
    // After n further commits, the subjects before n have other objects than at first.
    let expected = |view: &ReadView, predicate: i64, subject: i64| -> i64 {
        match subject < view.snapshot().commit() as i64 - first {
            true => 1_000 + subject,
            false => subject + predicate,
        }
    };
    let ask = |predicate: i64| {
        let view = database.view_of_process();
        let options = ContextOptions {
            adjacencies: Arc::clone(&adjacencies),
            ..ContextOptions::default()
        };
        let context = QueryContext::new(Arc::clone(&view), options).unwrap();
        let rows: Vec<_> = (0..200).map(|subject| vec![Some(term(subject))]).collect();
        let input = RowsExec::try_new(&names(&["s"]), &rows).unwrap();
        let pattern = QuadPattern {
            subject: var("s"),
            predicate: Slot::Constant(term(predicate)),
            object: var("o"),
            graph: GraphScope::Default,
        };
        let specification = PatternSpecification::inner(vec![pattern], names(&["s", "o"]));
        let plan = PatternExec::try_new(context, Some(input), specification).unwrap();
        let mut found: Vec<_> = run(plan).iter().map(|row| (row["s"], row["o"])).collect();
        found.sort_unstable();
        let mut all: Vec<_> = (0..200)
            .map(|subject| (term(subject), term(expected(&view, predicate, subject))))
            .collect();
        all.sort_unstable();
        assert_eq!(found, all, "after commit {}", view.snapshot().commit());
    };
    std::thread::scope(|scope| {
        let readers = (0..3i64).map(|reader| {
            let ask = &ask;
            scope.spawn(move || (0..60).for_each(|round| ask((reader + round / 7) % 3)))
        });
        let readers: Vec<_> = readers.collect();
        for subject in 0..40i64 {
            let row = |predicate, object| {
                [
                    term(subject),
                    term(predicate),
                    term(object),
                    TermId::DEFAULT_GRAPH,
                ]
            };
            let mut transaction = writer.begin().unwrap();
            let mut old: Vec<Quad> = (0..3).map(|p| row(p, subject + p)).collect();
            transaction.delete(&mut old).unwrap();
            let mut new: Vec<Quad> = (0..3).map(|p| row(p, 1_000 + subject)).collect();
            transaction.insert(&mut new).unwrap();
            let pending = transaction.commit(CommitOptions::default()).unwrap();
            pending.wait().unwrap();
            if subject == 20 {
                writer.checkpoint().unwrap();
            }
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    (0..3).for_each(ask);
    assert!(adjacencies.counts().bytes <= bytes * 2);
}

#[test]
fn what_was_in_memory_is_wanted_at_the_first_look_up_over_the_next_base() {
    let iri = |name: &str| Term::iri(format!("http://example.org/{name}"));
    let quads = |predicates: &[&str]| -> Vec<SmallQuad> {
        let pairs = predicates
            .iter()
            .flat_map(|predicate| (0..100).map(move |subject| (*predicate, subject)));
        pairs
            .map(|(predicate, subject)| {
                let (subject, object) = (format!("s{subject}"), format!("o{subject}"));
                (iri(&subject), iri(predicate), iri(&object), None)
            })
            .collect()
    };
    const KEYS_MIN: u64 = 50;
    let adjacencies = Arc::new(Adjacencies::with_thresholds(
        u64::MAX,
        BuildThresholds {
            keys_min: KEYS_MIN,
            ..BuildThresholds::AT_ONCE
        },
    ));
    let look_up = |view: &ReadView, predicate: &str, keys: u64| {
        let index = view.index(Permutation::Psog).unwrap();
        let predicate = view.snapshot().term_id(&iri(predicate)).unwrap().unwrap();
        let slot = index.adjacency_slot(predicate).unwrap().unwrap();
        let workers = Workers::new(2);
        let found = adjacencies.find(&slot, (&index, predicate), keys as usize, &workers);
        (predicate, found.is_some())
    };
    let directory = directory();
    drop(build_small(directory.path(), &quads(&["p5", "p6", "p7"])).unwrap());
    let database = Database::open(directory.path()).unwrap();
    let derived = Arc::downgrade(&adjacencies);
    assert!(database.derive(derived));
    let before = database.view_of_process();
    let (old_id, is_built) = look_up(&before, "p6", KEYS_MIN);
    assert!(is_built);
    assert!(look_up(&before, "p5", KEYS_MIN).1);
    assert!(!look_up(&before, "p7", 1).1);

    // Written by another: ids of the predicates are other ones, and p5 is gone.
    drop(build_small(directory.path(), &quads(&["p1", "p2", "p6", "p7"])).unwrap());
    assert!(database.refresh().unwrap());
    let after = database.view_of_process();
    let (new_id, is_built) = look_up(&after, "p6", 1);
    assert_ne!(old_id, new_id);
    assert!(is_built, "wanted at once");
    for others in ["p1", "p2", "p7"] {
        assert!(!look_up(&after, others, 1).1, "{others} was not in memory");
    }
    assert!(look_up(&before, "p6", 1).1, "older states have theirs");
}
