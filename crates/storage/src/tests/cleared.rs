//! Tests of clearing whole graphs, against sets of quads.

use std::collections::BTreeMap;

use super::*;
use crate::files::log::log_file;

/// Quads of the base; several vectors of rows.
const BASE_QUADS: u64 = 3_000;
/// Longest record of a commit that clears graphs and changes nothing else.
const RECORD_BYTES_MAX: u64 = 100;

fn options() -> WriterOptions {
    WriterOptions {
        whole_graph_quads: 1,
        ..WriterOptions::default()
    }
}

fn open(directory: &Path) -> (Arc<Database>, Writer) {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    let writer = database.open_writer(options()).unwrap();
    (database, writer)
}

fn graph(number: u64) -> Option<Term<'static>> {
    match number % 4 {
        0 | 1 => None,
        rest => Some(iri(&format!("graph{rest}"))),
    }
}

fn quad(number: u64) -> SmallQuad {
    let subject = iri(&format!("s{}", number / 40));
    let object = Term::string(format!("a longer text with the number {number}"));
    (
        subject,
        iri(&format!("p{}", number % 3)),
        object,
        graph(number),
    )
}

fn build(directory: &Path) -> BTreeSet<u64> {
    let numbers: BTreeSet<u64> = (0..BASE_QUADS).collect();
    let quads: Vec<SmallQuad> = numbers.iter().copied().map(quad).collect();
    build_small(directory, &quads).unwrap();
    numbers
}

fn rows(transaction: &mut Transaction, numbers: &[u64]) -> Vec<[TermId; 4]> {
    let numbers = numbers.iter();
    let mut intern = |term: &Term<'_>| transaction.intern(term).unwrap();
    numbers
        .map(|&number| {
            let (s, p, o, g) = quad(number);
            let graph = g.map_or(TermId::DEFAULT_GRAPH, |graph| intern(&graph));
            [intern(&s), intern(&p), intern(&o), graph]
        })
        .collect()
}

fn quads(numbers: &BTreeSet<u64>) -> BTreeSet<SmallQuad> {
    numbers.iter().copied().map(quad).collect()
}

fn content(snapshot: &Arc<Snapshot>) -> BTreeSet<SmallQuad> {
    let content = dump(snapshot).unwrap();
    for index in snapshot.indexes() {
        assert_eq!(
            index.rows(),
            content.len() as u64,
            "{}",
            index.permutation()
        );
    }
    content
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn numbers(&mut self, count: u64) -> Vec<u64> {
        let start = self.below(BASE_QUADS + 500);
        (0..count).map(|_| start + self.below(200)).collect()
    }
}

/// Some graphs, and which quads are in them.
fn some_graphs(
    transaction: &mut Transaction,
    random: &mut Random,
) -> (GraphSet, Box<dyn Fn(u64) -> bool>) {
    match random.below(6) {
        0 => (GraphSet::all(), Box::new(|_| true)),
        1 => (
            GraphSet::named(),
            Box::new(|number| graph(number).is_some()),
        ),
        2 => (
            GraphSet::one(TermId::DEFAULT_GRAPH),
            Box::new(|number| graph(number).is_none()),
        ),
        _ => {
            let wanted = iri(&format!("graph{}", 2 + random.below(2)));
            let id = transaction.intern(&wanted).unwrap();
            let is_in = move |number| graph(number).as_ref() == Some(&wanted);
            (GraphSet::one(id), Box::new(is_in))
        }
    }
}

fn change(
    transaction: &mut Transaction,
    state: &mut BTreeSet<u64>,
    numbers: &[u64],
    is_insertion: bool,
) {
    let mut rows = rows(transaction, numbers);
    let changed = match is_insertion {
        true => transaction.insert(&mut rows).unwrap(),
        false => transaction.delete(&mut rows).unwrap(),
    };
    let before = state.len();
    match is_insertion {
        true => state.extend(numbers),
        false => state.retain(|number| !numbers.contains(number)),
    }
    assert_eq!(changed, before.abs_diff(state.len()) as u64);
}

/// A commit of changes, graphs that are cleared, and further changes.
fn commit(writer: &Writer, random: &mut Random, states: &mut BTreeMap<u64, BTreeSet<u64>>) {
    let mut transaction = writer.begin().unwrap();
    let before = states.last_key_value().unwrap().1.clone();
    let mut state = before.clone();
    let count = 1 + random.below(30);
    change(&mut transaction, &mut state, &random.numbers(count), true);
    change(&mut transaction, &mut state, &random.numbers(count), false);
    for _ in 0..random.below(3) {
        let (graphs, is_in) = some_graphs(&mut transaction, random);
        let gone = state.iter().filter(|&&number| is_in(number)).count();
        assert_eq!(transaction.clear(&graphs).unwrap(), gone as u64);
        state.retain(|&number| !is_in(number));
        if random.below(2) == 0 {
            assert_eq!(content(&transaction.snapshot().unwrap()), quads(&state));
        }
        change(&mut transaction, &mut state, &random.numbers(count), true);
        change(&mut transaction, &mut state, &random.numbers(count), false);
    }
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    assert_eq!(pending.added(), state.difference(&before).count() as u64);
    assert_eq!(pending.removed(), before.difference(&state).count() as u64);
    states.insert(pending.wait().unwrap(), state);
}

/// Follows the changes from a state on.
fn follow(database: &Database, states: &BTreeMap<u64, BTreeSet<u64>>) {
    let (&first, state) = states.first_key_value().unwrap();
    let mut quads_now = quads(state);
    let owned = |quad: QuadRef<'_>| -> SmallQuad {
        (
            quad.subject.clone(),
            quad.predicate.clone(),
            quad.object.into_owned().into_owned(),
            quad.graph.cloned(),
        )
    };
    database
        .changes(&ReadScope::all_graphs(Asker::Process), first, |changes| {
            let (mut removed, mut added) = (0, 0);
            changes.removed(|quad| {
                removed += 1;
                assert!(quads_now.remove(&owned(quad)), "it was not there");
                Ok(())
            })?;
            changes.added(|quad| {
                added += 1;
                assert!(quads_now.insert(owned(quad)), "it was there already");
                Ok(())
            })?;
            assert_eq!(
                (changes.entry.added, changes.entry.removed),
                (added, removed)
            );
            assert_eq!(quads_now, quads(&states[&changes.entry.number]));
            Ok(())
        })
        .unwrap();
}

#[test]
fn any_sequence_of_cleared_graphs_answers_as_plain_sets_do() {
    for seed in 0..12 {
        let directory = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let mut states = BTreeMap::new();
        let base = build(directory.path());
        let (mut database, mut writer) = open(directory.path());
        states.insert(database.snapshot().commit(), base);
        let reader = Database::open(directory.path()).unwrap();
        for _ in 0..10 {
            match random.below(6) {
                0 => drop(writer.checkpoint().unwrap()),
                1 => {
                    drop((writer, database));
                    (database, writer) = open(directory.path());
                }
                _ => commit(&writer, &mut random, &mut states),
            }
            let (&last, state) = states.last_key_value().unwrap();
            assert_eq!(database.snapshot().commit(), last);
            let expected = quads(state);
            assert_eq!(content(&database.snapshot()), expected, "seed {seed}");
            reader.refresh().unwrap();
            assert_eq!(content(&reader.snapshot()), expected, "seed {seed}");
        }
        for (&commit, state) in &states {
            let old = database.snapshot_at(At::Commit(commit)).unwrap();
            assert_eq!(content(&old), quads(state), "seed {seed}, commit {commit}");
        }
        follow(&database, &states);
        assert!(is_whole(directory.path()), "seed {seed}");
    }
}

#[test]
fn a_graph_is_cleared_by_one_small_record_however_many_quads_it_has() {
    for which in [
        GraphSet::all(),
        GraphSet::named(),
        GraphSet::one(TermId::DEFAULT_GRAPH),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let before = build(directory.path());
        let (database, writer) = open(directory.path());
        let log = || {
            let present = database.snapshot().manifest().generation;
            std::fs::metadata(log_file(directory.path(), present))
                .unwrap()
                .len()
        };
        let empty = log();
        let mut transaction = writer.begin().unwrap();
        let gone = transaction.clear(&which).unwrap();
        assert!(gone >= BASE_QUADS / 2, "{gone}");
        // What came back before the commit leaves no trace.
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        assert_eq!((pending.added(), pending.removed()), (0, gone));
        pending.wait().unwrap();
        assert!(log() - empty < RECORD_BYTES_MAX, "{}", log() - empty);
        assert_eq!(database.snapshot().quad_count(), before.len() as u64 - gone);
        assert_eq!(database.snapshot().deltas().len(), 0);
        // Only the log tells of it until there is a checkpoint.
        assert!(writer.checkpoint().unwrap());
        assert!(!writer.checkpoint().unwrap());
        drop(writer);
        let reader = Database::open(directory.path()).unwrap();
        assert_eq!(reader.snapshot().quad_count(), before.len() as u64 - gone);
        // Who does not know of this must not read the delta.
        let present = reader.snapshot();
        let need = present.manifest().features.get("cleared-graphs");
        assert_eq!(need, Some(&Need::Required));
    }
}

#[test]
fn a_graph_that_is_cleared_and_written_again_as_it_was_is_no_commit() {
    let directory = tempfile::tempdir().unwrap();
    let numbers = build(directory.path());
    let (database, writer) = open(directory.path());
    let last = database.snapshot().commit();
    let mut transaction = writer.begin().unwrap();
    transaction.clear_all().unwrap();
    let numbers: Vec<u64> = numbers.into_iter().collect();
    let mut rows = rows(&mut transaction, &numbers);
    transaction.insert(&mut rows).unwrap();
    let pending = transaction.commit(CommitOptions::default()).unwrap();
    assert_eq!((pending.added(), pending.removed()), (0, 0));
    assert_eq!(pending.wait().unwrap(), last);
}

#[test]
fn few_quads_of_a_graph_are_deleted_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    build(directory.path());
    let database = Arc::new(Database::open(directory.path()).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    for graphs in [GraphSet::named(), GraphSet::all()] {
        let mut transaction = writer.begin().unwrap();
        let gone = transaction.clear(&graphs).unwrap();
        let pending = transaction.commit(CommitOptions::default()).unwrap();
        assert_eq!(pending.removed(), gone);
        pending.wait().unwrap();
    }
    let spog = Arc::clone(database.snapshot().index(Permutation::Spog).unwrap());
    assert_eq!((spog.rows(), spog.hidden_rows()), (0, 0));
}

#[test]
fn a_refused_budget_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let numbers = build(directory.path());
    let (database, writer) = open(directory.path());
    let mut transaction = writer.begin().unwrap();
    transaction.count_memory(|| Box::new(FixedMemory::new(0)));
    // This takes nothing.
    transaction.clear_all().unwrap();
    let graph = transaction.intern(&iri("graph2")).unwrap();
    let few = |graph| vec![[graph; 4]];
    transaction.insert(&mut few(graph)).unwrap();
    let blank = |number| [TermId::blank_node(number), graph, graph, graph];
    let mut many = (0..10_000).map(blank).collect();
    let refused = transaction.insert(&mut many);
    assert!(matches!(refused, Err(Error::TransactionMemory { .. })));
    drop(transaction);
    assert_eq!(database.snapshot().quad_count(), numbers.len() as u64);
    writer.begin().unwrap();
}
