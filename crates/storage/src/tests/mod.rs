//! Tests of a whole small database: what is written reads back, and damage is found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_term::{Direction, Term, TermId, Triple};
use proptest::prelude::*;

use super::*;
use crate::quads::index::{Permutation, QuadIndex};
use crate::quads::statistics::STATISTICS_FILE;

mod backup;
mod cleared;
mod components;
mod faults;
mod fetched;
mod kept_states;
mod log_ends;
mod read_ahead;
mod read_views;
mod shown_files;
mod table_checkpoints;
mod table_definitions;
mod tables;
mod texts;
mod updates;
mod while_written;

fn iri(name: &str) -> Term<'static> {
    Term::iri(format!("http://example.org/{name}"))
}

fn some_quads(has_graphs: bool) -> Vec<SmallQuad> {
    let mut quads = Vec::new();
    for number in 0..60u64 {
        let subject = match number % 3 {
            0 => Term::BlankNode(number),
            _ => iri(&format!("s{number}")),
        };
        let graph = (has_graphs && number % 2 == 0).then(|| iri("g"));
        let objects = [
            Term::string(format!("a string of some length, number {number}")),
            Term::language("bonjour le monde", "fr"),
            Term::directional("bonjour le monde", "fr", Direction::LeftToRight),
            triple(
                Term::BlankNode(number),
                triple(iri("s"), Term::string("x\0")),
            ),
            Term::typed("01", "http://www.w3.org/2001/XMLSchema#integer"),
            Term::typed(
                number.to_string(),
                "http://www.w3.org/2001/XMLSchema#integer",
            ),
            Term::string("x".repeat(4090 + number as usize / 5)),
            Term::string(""),
        ];
        for (place, object) in objects.into_iter().enumerate() {
            let predicate = iri(&format!("p{place}"));
            quads.push((subject.clone(), predicate, object, graph.clone()));
        }
    }
    quads
}

fn triple(subject: Term<'static>, object: Term<'static>) -> Term<'static> {
    Triple::new(subject, iri("p"), object).unwrap().into()
}

fn dump(snapshot: &Arc<Snapshot>) -> Result<BTreeSet<SmallQuad>> {
    let mut quads = BTreeSet::new();
    let mut batches = ReadView::of_process(Arc::clone(snapshot)).quads()?;
    while let Some(batch) = batches.next_batch()? {
        quads.extend(batch.iter().map(|quad| {
            (
                quad.subject.clone(),
                quad.predicate.clone(),
                quad.object.into_owned().into_owned(),
                quad.graph.cloned(),
            )
        }));
    }
    Ok(quads)
}

fn is_whole(directory: &Path) -> bool {
    verify(directory, |_| {}).unwrap().is_empty()
}

#[test]
fn quads_come_back_and_terms_are_found() {
    for has_graphs in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let quads = some_quads(has_graphs);
        build_small(directory.path(), &quads).unwrap();
        let database = Database::open(directory.path()).unwrap();
        let snapshot = database.snapshot();
        let expected: BTreeSet<SmallQuad> = quads.iter().cloned().collect();
        assert_eq!(dump(&snapshot).unwrap(), expected);
        assert_eq!(snapshot.quad_count(), expected.len() as u64);
        assert_eq!(snapshot.has_named_graphs(), has_graphs);
        assert_eq!(snapshot.next_blank_node(), 60);
        for (subject, predicate, object, _) in &quads {
            for term in [subject, predicate, object] {
                let id = snapshot.term_id(term).unwrap().unwrap();
                assert_eq!(&snapshot.term(id).unwrap(), term);
            }
        }
        assert_eq!(snapshot.term_id(&iri("nowhere")).unwrap(), None);
        let p1 = snapshot.term_id(&iri("p1")).unwrap().unwrap();
        let crate::quads::statistics::Figures::Counted(statistics) = snapshot.figures() else {
            panic!("all is shown");
        };
        let figures = statistics.predicate(p1).unwrap();
        assert_eq!((figures.quads, figures.distinct_objects), (60, 1));
        let psog = snapshot.index(Permutation::Psog).unwrap();
        assert_eq!(psog.range(&[p1]).unwrap().len(), 60);
        assert!(is_whole(directory.path()));
    }
}

#[test]
fn an_empty_database_can_be_created_opened_and_dumped() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new");
    assert!(matches!(
        Database::open(&directory),
        Err(Error::NotFound { .. })
    ));
    Database::create_or_open(&directory).unwrap();
    let database = Database::create_or_open(&directory).unwrap();
    assert_eq!(database.snapshot().quad_count(), 0);
    assert!(dump(&database.snapshot()).unwrap().is_empty());
    assert_eq!(database.snapshot().term_id(&iri("x")).unwrap(), None);
    assert!(is_whole(&directory));
}

#[test]
fn readers_keep_their_snapshot_while_a_writer_publishes() {
    let directory = tempfile::tempdir().unwrap();
    let first = some_quads(false);
    let writer = build_small(directory.path(), &first).unwrap();
    let reader = Database::open(directory.path()).unwrap();
    let old = reader.snapshot();
    let old_directory = old.directory().to_path_buf();
    assert!(!reader.refresh().unwrap());

    let second = some_quads(true);
    build_small(directory.path(), &second).unwrap();
    assert!(!old_directory.exists());
    assert_eq!(dump(&old).unwrap(), first.iter().cloned().collect());
    assert!(reader.refresh().unwrap());
    assert!(writer.refresh().unwrap());
    for database in [&reader, &writer] {
        let quads = dump(&database.snapshot()).unwrap();
        assert_eq!(quads, second.iter().cloned().collect());
    }
}

#[test]
fn leftovers_of_a_killed_writer_go_away_and_harm_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let quads = some_quads(false);
    build_small(directory.path(), &quads).unwrap();
    let leftover = directory.path().join("segment-000099");
    std::fs::create_dir(&leftover).unwrap();
    std::fs::write(leftover.join("psog.col"), "half").unwrap();
    std::fs::write(directory.path().join("MANIFEST.new"), "half").unwrap();

    let database = Database::open(directory.path()).unwrap();
    assert!(leftover.exists());
    assert_eq!(
        dump(&database.snapshot()).unwrap(),
        quads.iter().cloned().collect()
    );
    let lock = WriterLock::acquire(directory.path()).unwrap();
    let builder = SegmentBuilder::begin(&database, &lock).unwrap();
    assert!(!leftover.exists());
    // Given up: the database stays as it was.
    drop(builder);
    assert!(is_whole(directory.path()));
}

#[test]
fn what_is_no_database_or_not_whole_is_refused_with_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let opened = |path: &Path| Database::open(path).unwrap_err().to_string();
    assert!(opened(path).contains("the directory is empty"));
    std::fs::write(path.join("letter.txt"), "x").unwrap();
    assert!(opened(path).contains("there is no MANIFEST in it"));
    let error = Database::create_or_open(path).unwrap_err().to_string();
    assert!(error.contains("letter.txt"), "{error}");
    assert!(Database::create_or_open(path.join("letter.txt")).is_err());

    let database = path.join("db");
    build_small(&database, &some_quads(false)).unwrap();
    for file in files_of(&database) {
        let whole = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let error = opened(&database);
        assert!(!error.contains('\n') && error.contains("db"), "{error}");
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        match name {
            // They are counted anew.
            STATISTICS_FILE => drop(Database::open(&database).unwrap()),
            name => {
                let error = opened(&database);
                assert!(error.contains(name), "{error}");
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    Database::open(&database).unwrap();
}

/// The manifest and all files of its segment.
fn files_of(directory: &Path) -> Vec<PathBuf> {
    let database = Database::open(directory).unwrap();
    let snapshot = database.snapshot();
    let mut files: Vec<PathBuf> = snapshot
        .manifest()
        .present()
        .segment
        .files()
        .map(|file| snapshot.directory().join(&file.name))
        .collect();
    files.push(directory.join("MANIFEST"));
    files
}

#[test]
fn every_flipped_bit_is_found_and_no_wrong_answer_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let quads = some_quads(true);
    let expected: BTreeSet<SmallQuad> = quads.iter().cloned().collect();
    build_small(directory.path(), &quads).unwrap();
    let mut random = 1u64;
    for file in files_of(directory.path()) {
        let whole = std::fs::read(&file).unwrap();
        let bits = whole.len() * 8;
        for _ in 0..400.min(bits) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bit = (random >> 20) as usize % bits;
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, &damaged).unwrap();
            let found = verify(directory.path(), |_| {}).unwrap();
            assert!(!found.is_empty(), "{} bit {bit}", file.display());
            assert!(
                found.damages.iter().any(|damage| damage.file == file),
                "{} bit {bit}: {found:?}",
                file.display()
            );
            if let Ok(database) = Database::open(directory.path())
                && let Ok(quads) = dump(&database.snapshot())
            {
                assert_eq!(quads, expected);
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(is_whole(directory.path()));
}

fn odd_term() -> impl Strategy<Value = Term<'static>> {
    let xsd = |name: &str| format!("http://www.w3.org/2001/XMLSchema#{name}");
    let typed = (
        prop_oneof![
            Just("01"),
            Just("1"),
            Just("-0.0"),
            Just("NaN"),
            Just("1.0E0"),
            Just("10000-01-01"),
            Just("2024-02-30"),
            Just("true"),
            Just("1.50"),
            Just(""),
            Just("\u{0}"),
        ],
        prop_oneof![
            Just("integer"),
            Just("double"),
            Just("decimal"),
            Just("date"),
            Just("dateTime"),
            Just("boolean"),
            Just("string"),
            Just("byte"),
            Just("unknown"),
        ],
    );
    let leaf = prop_oneof![
        (0u64..5).prop_map(Term::BlankNode),
        "[a-z:/#\\x00é]{0,12}".prop_map(Term::iri),
        any::<String>().prop_map(Term::string),
        (0usize..9000).prop_map(|length| Term::string("ab ".repeat(length))),
        ("[a-z ]{0,9}", "[a-zA-Z]{1,3}").prop_map(|(text, tag)| Term::language(text, tag)),
        typed.prop_map(move |(lexical, name)| Term::typed(lexical, xsd(name))),
    ];
    leaf.prop_recursive(3, 6, 1, |object| {
        let subject = prop_oneof![
            (0u64..9).prop_map(Term::BlankNode),
            "[a-z:/#é]{0,12}".prop_map(Term::iri)
        ];
        (subject, object).prop_filter_map("an IRI with a zero byte", |(subject, object)| {
            let has_zero = matches!(&object, Term::Iri(iri) if iri.contains('\0'));
            (!has_zero).then(|| triple(subject, object))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_set_of_quads_comes_back_and_verifies(
        quads in proptest::collection::vec(
            (odd_term(), odd_term(), odd_term(), proptest::option::of(odd_term())),
            0..40,
        )
    ) {
        let directory = tempfile::tempdir().unwrap();
        let database = build_small(directory.path(), &quads).unwrap();
        let snapshot = database.snapshot();
        prop_assert_eq!(dump(&snapshot).unwrap(), quads.iter().cloned().collect());
        prop_assert_eq!(verify(directory.path(), |_| {}).unwrap().damages, []);
        for (subject, ..) in &quads {
            let id = snapshot.term_id(subject).unwrap().unwrap();
            let found = snapshot.index(Permutation::Spog).unwrap().range(&[id]).unwrap();
            let expected: BTreeSet<_> = quads.iter().filter(|quad| quad.0 == *subject).collect();
            prop_assert_eq!(found.len(), expected.len() as u64);
        }
    }
}
