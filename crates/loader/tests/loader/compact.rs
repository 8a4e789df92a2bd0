//! Tests of compactions and loads beside commits: the quads stay what they were.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int32Array};
use orrery_loader::{
    BackgroundCompaction, BackgroundOptions, CompactOptions, Format, LoadError, LoadOptions,
    Progress, SilentProgress, Source, Stage, WhileAwaited, changes_of, compact, compact_tables,
    load, load_into,
};
use orrery_storage::Permutation;
use orrery_storage::io::LocalFileSystem;
use orrery_storage::io::testing::{FailingFileSystem, Fault};
use orrery_storage::table::{
    ColumnDefinition, ColumnId, ColumnType, DEFAULT_SCHEMA, DefinitionChange, PrimaryKey,
    RelationId, TableDefinition, TableState,
};
use orrery_storage::{CommitOptions, Database, ReadView, Snapshot, Writer, WriterOptions, verify};
use orrery_term::{Term, TermId};
use proptest::prelude::*;

/// A quad of numbers of the terms below; graph 0 is the default graph.
type Quad = (u8, u8, u8, u8);

fn subject(number: u8) -> Term<'static> {
    match number % 3 {
        0 => Term::BlankNode(u64::from(number / 3)),
        _ => Term::iri(format!("http://example.org/s{number}")),
    }
}

fn predicate(number: u8) -> Term<'static> {
    Term::iri(format!("http://example.org/p{number}"))
}

fn object(number: u8) -> Term<'static> {
    match number % 4 {
        0 => Term::iri(format!("http://example.org/s{number}")),
        1 => Term::string(format!("a string that no id has room for, number {number}")),
        2 => Term::typed(
            number.to_string(),
            "http://www.w3.org/2001/XMLSchema#integer",
        ),
        _ => Term::string(format!("s{number}")),
    }
}

fn graph(number: u8) -> Option<Term<'static>> {
    (number > 0).then(|| Term::iri(format!("http://example.org/g{number}")))
}

fn line(quad: Quad) -> String {
    let (s, p, o) = (subject(quad.0), predicate(quad.1), object(quad.2));
    let graph = graph(quad.3).map_or(String::new(), |graph| format!(" {graph}"));
    format!("{s} {p} {o}{graph} .")
}

fn lines_of(snapshot: &Arc<Snapshot>) -> BTreeSet<String> {
    let view = ReadView::of_process(Arc::clone(snapshot));
    let mut lines = BTreeSet::new();
    let mut quads = view.quads().unwrap();
    while let Some(batch) = quads.next_batch().unwrap() {
        for quad in batch.iter() {
            let graph = quad
                .graph
                .map_or(String::new(), |graph| format!(" {graph}"));
            let (s, p, o) = (quad.subject, quad.predicate, quad.object);
            assert!(
                lines.insert(format!("{s} {p} {o}{graph} .")),
                "a quad came twice"
            );
        }
    }
    assert_eq!(lines.len() as u64, view.quad_count());
    for index in view.indexes() {
        assert_eq!(index.rows(), view.quad_count());
    }
    lines
}

fn model_lines(model: &BTreeSet<Quad>) -> BTreeSet<String> {
    model.iter().copied().map(line).collect()
}

/// Commits one transaction: quads that are there are deleted, the others inserted.
fn turn(writer: &Writer, model: &mut BTreeSet<Quad>, quads: &[Quad]) {
    let mut transaction = writer.begin().unwrap();
    for is_insertion in [false, true] {
        let mut rows = Vec::new();
        for quad in quads.iter().copied().collect::<BTreeSet<_>>() {
            if model.contains(&quad) == is_insertion {
                continue;
            }
            let graph = match graph(quad.3) {
                Some(graph) => transaction.intern(&graph).unwrap(),
                None => TermId::DEFAULT_GRAPH,
            };
            let terms = [subject(quad.0), predicate(quad.1), object(quad.2)];
            let [s, p, o] = terms.map(|term| transaction.intern(&term).unwrap());
            rows.push([s, p, o, graph]);
        }
        let expected = rows.len() as u64;
        let changed = match is_insertion {
            true => transaction.insert(&mut rows).unwrap(),
            false => transaction.delete(&mut rows).unwrap(),
        };
        assert_eq!(changed, expected);
    }
    for &quad in quads.iter().collect::<BTreeSet<_>>() {
        if !model.remove(&quad) {
            model.insert(quad);
        }
    }
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
}

fn open(directory: &Path) -> Writer {
    let database = Arc::new(Database::create_or_open(directory).unwrap());
    database.open_writer(WriterOptions::default()).unwrap()
}

fn assert_whole(directory: &Path, model: &BTreeSet<Quad>) {
    let damage = verify(directory, |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let snapshot = Database::open(directory).unwrap().snapshot();
    assert_eq!(lines_of(&snapshot), model_lines(model));
}

/// The dictionary of a base without changes has the terms of its quads and no others.
fn assert_no_unused_terms(view: &ReadView) {
    let snapshot = view.snapshot();
    assert_eq!(changes_of(view), 0);
    let index = view.index(Permutation::Spog).unwrap();
    let mut scan = index.scan(index.all(), [true; 4]);
    let mut used: BTreeSet<u64> = BTreeSet::new();
    while let Some(vector) = scan.next_vector().unwrap() {
        let ids = (0..4).flat_map(|column| vector.column(column));
        used.extend(
            ids.copied()
                .filter(|&bits| TermId::from_bits(bits).is_dictionary()),
        );
    }
    assert_eq!(used.len() as u64, snapshot.dictionary().len());
}

/// Does something when a stage begins.
struct AtStage<F>(Stage, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Progress for AtStage<F> {
    fn begin(&self, stage: Stage, _total: Option<u64>) {
        if stage == self.0
            && let Some(action) = self.1.lock().unwrap().take()
        {
            action();
        }
    }
}

fn quad() -> impl Strategy<Value = Quad> {
    (
        0u8..12,
        0u8..3,
        0u8..16,
        prop_oneof![4 => Just(0u8), 1 => 1u8..3],
    )
}

fn batches() -> impl Strategy<Value = Vec<Vec<Quad>>> {
    prop::collection::vec(prop::collection::vec(quad(), 0..40), 0..4)
}

fn options(memory_bytes: u64) -> CompactOptions {
    CompactOptions {
        memory_bytes,
        threads: 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn compaction_keeps_the_quads_and_what_is_committed_meanwhile(
        before in batches(), checkpoint in any::<bool>(), between in batches(), during in batches(), after in batches(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let writer = open(directory.path());
        let mut model = BTreeSet::new();
        for quads in &before {
            turn(&writer, &mut model, quads);
        }
        // A base with all that, and a flushed delta over it.
        compact(&writer, &options(256 << 20), &SilentProgress).unwrap();
        for quads in &between {
            turn(&writer, &mut model, quads);
            if checkpoint {
                writer.checkpoint().unwrap();
            }
        }
        let commits_before = writer.database().commits().unwrap();
        let old_state = model_lines(&model);
        let held = writer.database().snapshot();

        let model = Mutex::new(model);
        let progress = AtStage(Stage::Permutations, Mutex::new(Some(|| {
            for quads in &during {
                turn(&writer, &mut model.lock().unwrap(), quads);
            }
        })));
        compact(&writer, &options(256 << 20), &progress).unwrap();
        let was_due = changes_of(&ReadView::of_process(Arc::clone(&held))) > 0;
        prop_assert_eq!(progress.1.into_inner().unwrap().is_none(), was_due);
        let mut model = model.into_inner().unwrap();
        let view = writer.database().view_of_process();
        let snapshot = view.snapshot();
        prop_assert_eq!(lines_of(snapshot), model_lines(&model));
        if during.is_empty() {
            prop_assert_eq!(changes_of(&view), 0);
            prop_assert_eq!(snapshot.commit(), held.commit());
            assert_no_unused_terms(&view);
            let has_named = model.iter().any(|quad| quad.3 > 0);
            prop_assert_eq!(view.index(Permutation::Gspo).is_some(), has_named);
        }
        // Who read before still reads the same, and the commits are still listed.
        prop_assert_eq!(lines_of(&held), old_state.clone());
        let commits = writer.database().commits().unwrap();
        prop_assert!(commits.starts_with(&commits_before), "{commits:?} {commits_before:?}");
        let old = writer.database().snapshot_at(orrery_storage::At::Commit(held.commit())).unwrap();
        prop_assert_eq!(lines_of(&old), old_state);

        for quads in &after {
            turn(&writer, &mut model, quads);
        }
        prop_assert_eq!(lines_of(&writer.database().snapshot()), model_lines(&model));
        drop((writer, held, snapshot, old));
        assert_whole(directory.path(), &model);
    }

    #[test]
    fn loads_take_up_what_updates_changed(
        base in batches(), changes in batches(), loaded in prop::collection::vec(quad(), 0..60), into_writer in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db");
        let mut model = BTreeSet::new();
        let writer = open(&database);
        for quads in &base {
            turn(&writer, &mut model, quads);
        }
        compact(&writer, &options(256 << 20), &SilentProgress).unwrap();
        for quads in &changes {
            turn(&writer, &mut model, quads);
        }
        // Blank nodes of a file are new ones, so there are none in it.
        let loaded: Vec<Quad> = loaded.into_iter().filter(|quad| quad.0 % 3 != 0).collect();
        let text: Vec<String> = loaded.iter().copied().map(line).collect();
        let file = directory.path().join("data.nq");
        std::fs::write(&file, text.join("\n")).unwrap();
        let load_options = LoadOptions {
            memory_bytes: 256 << 20,
            threads: 2,
            format: Some(Format::NQuads),
            ..LoadOptions::default()
        };
        let commit = writer.database().snapshot().commit();
        let sources = [Source::File(file)];
        let report = match into_writer {
            true => load_into(&writer, &sources, &load_options, &SilentProgress).unwrap(),
            false => {
                drop(writer);
                load(&database, &sources, &load_options, &SilentProgress).unwrap()
            }
        };
        let added = loaded.iter().copied().filter(|&quad| model.insert(quad)).count();
        prop_assert_eq!(report.quads_added, added as u64);
        prop_assert_eq!(report.quads, model.len() as u64);
        assert_whole(&database, &model);
        let view = Database::open(&database).unwrap().view_of_process();
        let snapshot = view.snapshot();
        // What brings nothing new is no commit, and writes nothing.
        prop_assert_eq!(snapshot.commit(), commit + u64::from(added > 0));
        prop_assert_eq!(report.commit, snapshot.commit());
        if added > 0 {
            assert_no_unused_terms(&view);
        }
    }
}

#[test]
fn a_compaction_that_spills_keeps_the_quads() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let count = 120_000u64;
    let mut transaction = writer.begin().unwrap();
    let predicate = transaction.intern(&predicate(0)).unwrap();
    let mut quads = Vec::new();
    for number in 0..count {
        let subject = Term::iri(format!("http://example.org/thing/{number:09}"));
        let subject = transaction.intern(&subject).unwrap();
        let text = format!("the text of thing number {}", number * 7919 % count);
        let object = transaction.intern(&Term::string(text)).unwrap();
        quads.push([subject, predicate, object, TermId::DEFAULT_GRAPH]);
    }
    transaction.insert(&mut quads).unwrap();
    transaction
        .commit(CommitOptions::default())
        .unwrap()
        .wait()
        .unwrap();
    let before = lines_of(&writer.database().snapshot());
    let report = compact(&writer, &options(8 << 20), &SilentProgress).unwrap();
    assert_eq!(report.quads, count);
    let view = writer.database().view_of_process();
    assert_eq!(changes_of(&view), 0);
    assert_eq!(view.snapshot().delta_terms(), 0);
    assert_eq!(lines_of(view.snapshot()), before);
    drop(writer);
    assert!(verify(directory.path(), |_| {}).unwrap().is_empty());
}

#[test]
fn a_load_that_fails_leaves_the_database_and_its_writer_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let mut model = BTreeSet::new();
    turn(&writer, &mut model, &[(1, 1, 1, 0), (2, 1, 1, 1)]);
    let file = directory.path().with_extension("nt");
    std::fs::write(&file, "<http://example.org/a> nonsense .\n").unwrap();
    let options = LoadOptions::default();
    assert!(
        load_into(
            &writer,
            &[Source::File(file.clone())],
            &options,
            &SilentProgress
        )
        .is_err()
    );
    std::fs::remove_file(file).unwrap();
    let rebase = writer.begin_compaction().unwrap();
    let left = rebase.files().directory().to_path_buf();
    assert!(left.exists());
    drop(rebase);
    assert!(!left.exists());
    turn(&writer, &mut model, &[(4, 1, 1, 0)]);
    assert_eq!(lines_of(&writer.database().snapshot()), model_lines(&model));
    drop(writer);
    assert_whole(directory.path(), &model);
}

/// What the metrics and their alert tell: the disk that fails is counted, a wrong file is for who
/// sent it.
#[test]
fn a_load_that_the_disk_fails_is_counted_and_one_of_a_wrong_file_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FailingFileSystem::new(Arc::new(LocalFileSystem));
    let database = Database::create_or_open_with(Arc::new(disk.clone()), directory.path());
    let writer = Arc::new(database.unwrap())
        .open_writer(WriterOptions::default())
        .unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".nt").unwrap();
    let load = |text: &str, progress: &dyn Progress| {
        std::fs::write(file.path(), text).unwrap();
        let source = Source::File(file.path().to_owned());
        load_into(&writer, &[source], &LoadOptions::default(), progress)
    };
    let loads = || {
        let loads = &writer.database().activity().loads;
        (loads.done(), loads.failed())
    };
    let right = "<http://example.org/a> <http://example.org/b> \"c\" .\n";
    assert!(load("<http://example.org/a> nonsense .\n", &SilentProgress).is_err());
    for stage in [Stage::Parse, Stage::Permutations] {
        let progress = CancelAt(stage, AtomicBool::new(false));
        assert!(matches!(load(right, &progress), Err(LoadError::Cancelled)));
    }
    let nobody = WhileAwaited(Arc::downgrade(&Arc::new(())));
    assert!(matches!(load(right, &nobody), Err(LoadError::Cancelled)));
    assert_eq!(loads(), (0, 0));
    // When it makes its directory, and in the midst of what it writes.
    for (number, calls) in [0, 4].into_iter().enumerate() {
        disk.fail_from(disk.calls() + calls, Fault::NoSpace);
        let failed = load(right, &SilentProgress);
        assert!(matches!(failed, Err(LoadError::Storage(_))), "{failed:?}");
        assert_eq!(loads(), (0, number as u64 + 1));
        disk.heal();
    }
    load(right, &SilentProgress).unwrap();
    assert_eq!(loads(), (1, 2));
}

/// Wants the work no more as soon as a stage begins.
struct CancelAt(Stage, AtomicBool);

impl Progress for CancelAt {
    fn begin(&self, stage: Stage, _total: Option<u64>) {
        if stage == self.0 {
            self.1.store(true, Ordering::Release);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::Acquire)
    }
}

#[test]
fn a_cancelled_compaction_leaves_the_database_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let mut model = BTreeSet::new();
    turn(&writer, &mut model, &[(1, 1, 1, 0), (2, 1, 1, 1)]);
    let progress = CancelAt(Stage::Permutations, AtomicBool::new(false));
    let cancelled = compact(&writer, &options(64 << 20), &progress);
    assert!(
        matches!(cancelled, Err(LoadError::Cancelled)),
        "{cancelled:?}"
    );
    assert_eq!(changes_of(&writer.database().view_of_process()), 2);
    turn(&writer, &mut model, &[(4, 1, 1, 0), (2, 1, 1, 1)]);
    drop(writer);
    assert_whole(directory.path(), &model);
}

#[test]
fn the_background_compacts_when_there_are_enough_changes() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    let background = BackgroundOptions {
        changes_min: 3,
        compact: options(64 << 20),
        ..BackgroundOptions::default()
    };
    let compaction = BackgroundCompaction::start(writer.clone(), background).unwrap();
    let mut model = BTreeSet::new();
    turn(
        &writer,
        &mut model,
        &[(1, 1, 1, 0), (2, 1, 1, 1), (4, 1, 2, 0)],
    );
    let begin = Instant::now();
    while changes_of(&writer.database().view_of_process()) > 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "nothing was compacted"
        );
        std::thread::yield_now();
    }
    drop(compaction);
    drop(writer);
    assert_whole(directory.path(), &model);
}

/// A table of one column.
fn numbers_table() -> TableDefinition {
    TableDefinition {
        id: RelationId(1),
        schema: DEFAULT_SCHEMA.to_owned(),
        name: "numbers".to_owned(),
        columns: vec![ColumnDefinition {
            id: ColumnId(1),
            name: "number".to_owned(),
            column_type: ColumnType::Integer,
            is_nullable: false,
            default: None,
            initial: None,
        }],
        next_column: 2,
        primary_key: Some(PrimaryKey {
            name: "numbers_pkey".to_owned(),
            columns: vec![ColumnId(1)],
        }),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
    }
}

/// Inserts rows of these numbers.
fn insert_numbers(writer: &Writer, numbers: std::ops::Range<i32>) {
    let mut transaction = writer.begin().unwrap();
    if transaction.tables().table(RelationId(1)).is_none() {
        let table = DefinitionChange::CreateTable(numbers_table());
        transaction.define(table).unwrap();
    }
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers));
    transaction.insert_rows(RelationId(1), &[numbers]).unwrap();
    let pending = transaction.commit(CommitOptions::default());
    pending.unwrap().wait().unwrap();
}

fn table_changes(writer: &Writer) -> u64 {
    let snapshot = writer.database().snapshot();
    snapshot.tables().tables().map(TableState::changes).sum()
}

#[test]
fn the_background_brings_changes_of_tables_into_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let writer = open(directory.path());
    insert_numbers(&writer, 0..2);
    let background = BackgroundOptions {
        changes_min: 3,
        compact: options(64 << 20),
        ..BackgroundOptions::default()
    };
    let compaction = BackgroundCompaction::start(writer.clone(), background).unwrap();
    insert_numbers(&writer, 2..100);
    let begin = Instant::now();
    while table_changes(&writer) > 0 {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "nothing was brought into a file"
        );
        std::thread::yield_now();
    }
    drop(compaction);
    // What is too little for it is done when somebody asks; then nothing is left.
    insert_numbers(&writer, 100..102);
    assert_eq!(compact_tables(&writer, &SilentProgress).unwrap(), 1);
    assert_eq!(table_changes(&writer), 0);
    assert_eq!(compact_tables(&writer, &SilentProgress).unwrap(), 0);
    let snapshot = writer.database().snapshot();
    let table = snapshot.tables().table(RelationId(1)).unwrap();
    assert_eq!(table.rows(), 102);
    drop(writer);
    assert!(verify(directory.path(), |_| {}).unwrap().is_empty());
}

/// Clears a graph as a whole, and writes a quad into it, whenever the permutations begin.
struct Clearing<'a> {
    writer: &'a Writer,
    /// How often it does.
    left: Mutex<u8>,
    model: Mutex<BTreeSet<Quad>>,
}

impl Progress for Clearing<'_> {
    fn begin(&self, stage: Stage, _total: Option<u64>) {
        let mut left = self.left.lock().unwrap();
        if stage != Stage::Permutations || *left == 0 {
            return;
        }
        *left -= 1;
        let mut model = self.model.lock().unwrap();
        let mut transaction = self.writer.begin().unwrap();
        let name = *left + 1;
        let id = transaction.intern(&graph(name).unwrap()).unwrap();
        transaction.clear_graph(id).unwrap();
        model.retain(|quad| quad.3 != name);
        transaction
            .commit(CommitOptions::default())
            .unwrap()
            .wait()
            .unwrap();
        turn(self.writer, &mut model, &[(1, 2, 3, name)]);
    }
}

#[test]
fn a_compaction_in_which_graphs_are_cleared_begins_anew_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::create_or_open(directory.path()).unwrap());
    let options_of_writer = WriterOptions {
        whole_graph_quads: 1,
        ..WriterOptions::default()
    };
    let writer = database.open_writer(options_of_writer).unwrap();
    let mut model = BTreeSet::new();
    let all: Vec<Quad> = (0..120).map(|n| (n % 12, n % 3, n / 12, n % 4)).collect();
    turn(&writer, &mut model, &all);
    compact(&writer, &options(256 << 20), &SilentProgress).unwrap();
    turn(&writer, &mut model, &all[..7]);
    let held = database.snapshot();
    let before = lines_of(&held);
    // Cleared in both attempts that let others write; then others would wait.
    let last = Clearing {
        writer: &writer,
        left: Mutex::new(2),
        model: Mutex::new(model),
    };
    compact(&writer, &options(256 << 20), &last).unwrap();
    assert_eq!(*last.left.lock().unwrap(), 0);
    let view = database.view_of_process();
    let model = last.model.into_inner().unwrap();
    assert_eq!(lines_of(view.snapshot()), model_lines(&model));
    assert_no_unused_terms(&view);
    let old = database.snapshot_at(orrery_storage::At::Commit(held.commit()));
    assert_eq!(lines_of(&old.unwrap()), before);
    drop((writer, view, held, database));
    assert_whole(directory.path(), &model);
}
