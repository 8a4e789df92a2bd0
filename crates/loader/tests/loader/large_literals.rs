//! Tests of streamed literals: the database is the same, to the last id, as with literals in
//! memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use orrery_loader::{
    CompactOptions, Format, LoadError, LoadOptions, LoadReport, SilentProgress, Source, compact,
    load, load_into,
};
use orrery_storage::{CommitOptions, Database, Writer, WriterOptions, verify};
use orrery_term::{Term, TermId, parse_key};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// All keys of the dictionary, and the ids of all quads.
type Contents = (Vec<Vec<u8>>, Vec<[u64; 4]>);

fn contents(db: &Path) -> Contents {
    let damage = verify(db, |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let staged = fs::read_dir(db.join("load-stage")).map_or(0, Iterator::count);
    assert_eq!(staged, 0, "files of the load are left");
    let view = Database::open(db).unwrap().view_of_process();
    let snapshot = view.snapshot();
    let mut cursor = snapshot.dictionary().iter(0);
    let mut keys = Vec::new();
    while let Some(key) = cursor.next().unwrap() {
        let term = parse_key(key).unwrap();
        assert!(snapshot.term_id(&term).unwrap().is_some());
        keys.push(key.to_vec());
    }
    let index = view.index(orrery_storage::Permutation::Spog).unwrap();
    let mut rows = Vec::new();
    let mut scan = index.scan(index.all(), [true; 4]);
    while let Some(vector) = scan.next_vector().unwrap() {
        let columns = [0, 1, 2, 3].map(|column| vector.column(column));
        let length = columns[0].len();
        rows.extend((0..length).map(|row| columns.map(|column| column[row])));
    }
    (keys, rows)
}

/// Number of literals in the dictionary that are stored as streams.
fn streamed(db: &Path) -> usize {
    let snapshot = Database::open(db).unwrap().snapshot();
    let mut cursor = snapshot.dictionary().iter(0);
    let ranks = 0..snapshot.dictionary().len();
    ranks
        .filter(|&rank| cursor.streamed(rank).unwrap().is_some())
        .count()
}

fn options(memory_bytes: u64, literal_bytes_max: usize) -> LoadOptions {
    LoadOptions {
        memory_bytes,
        threads: 2,
        literal_bytes_max,
        ..LoadOptions::default()
    }
}

fn load_text(
    directory: &Path,
    db: &str,
    text: &[u8],
    options: &LoadOptions,
) -> Result<LoadReport, LoadError> {
    let file = directory.join("data.nq");
    fs::write(&file, text).unwrap();
    load(
        &directory.join(db),
        &[Source::File(file)],
        options,
        &SilentProgress,
    )
}

/// The body of a literal, with escapes: lengths around all borders, many with the same beginning,
/// many equal.
fn body() -> impl Strategy<Value = String> {
    let unit = proptest::sample::select(vec!["x", "é", "\\n", "\\u4E2D", "\\\\"]);
    let length = prop_oneof![
        3 => 0..50_usize,
        3 => 4085..4100_usize,
        3 => Just(70_000_usize),
        2 => 60_000..200_000_usize,
        1 => 900_000..1_200_000_usize,
    ];
    (unit, length, "[ab]{0,2}")
        .prop_map(|(unit, length, end)| unit.repeat(length / unit.len()) + &end)
}

fn statement() -> impl Strategy<Value = String> {
    let after = proptest::sample::select(vec![
        "\" .",
        "\"@en .",
        "\"@en--ltr <urn:g> .",
        "\"^^<urn:t> .",
        "\"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:h> .",
    ]);
    (0..5_u8, body(), after)
        .prop_map(|(subject, body, after)| format!("<urn:s{subject}> <urn:p> \"{body}{after}\n"))
}

proptest! {
    // Every case creates and publishes databases, with real files.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn streams_and_memory_give_the_same_database(
        first in proptest::collection::vec(statement(), 0..14),
        second in proptest::collection::vec(statement(), 0..14),
        memory_bytes in prop_oneof![Just(1_u64 << 20), Just(256 << 20)],
        maximum in prop_oneof![Just(0_usize), Just(100_000)],
    ) {
        let directory = tempfile::tempdir().unwrap();
        let whole = options(1 << 30, 1 << 30);
        let parts = options(memory_bytes, maximum);
        let mixed = [(&parts, &whole), (&whole, &parts)];
        for (db, (early, late)) in ["memory", "streams", "late", "early"]
            .into_iter()
            .zip([(&whole, &whole), (&parts, &parts)].into_iter().chain(mixed))
        {
            load_text(directory.path(), db, first.concat().as_bytes(), early).unwrap();
            load_text(directory.path(), db, second.concat().as_bytes(), late).unwrap();
        }
        let expected = contents(&directory.path().join("memory"));
        prop_assert_eq!(streamed(&directory.path().join("memory")), 0);
        for db in ["streams", "late", "early"] {
            prop_assert!(contents(&directory.path().join(db)) == expected, "{}", db);
        }
    }
}

#[test]
fn compressed_input_and_documents_take_the_same_way() {
    let directory = tempfile::tempdir().unwrap();
    let long = "many words of a long text ".repeat(20_000);
    let line = format!("<urn:s> <urn:p> \"{long}\"@en .\n<urn:s> <urn:p> \"{long}2\"@en .\n");
    let plain = directory.path().join("a.nt");
    fs::write(&plain, &line).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(line.as_bytes()).unwrap();
    let gzip = directory.path().join("b.nt.gz");
    fs::write(&gzip, encoder.finish().unwrap()).unwrap();
    let turtle = directory.path().join("c.ttl");
    fs::write(&turtle, &line).unwrap();
    let sources = [plain, gzip, turtle].map(Source::File);
    let db = directory.path().join("db");
    let report = load(&db, &sources, &options(1 << 20, 4096), &SilentProgress).unwrap();
    assert_eq!((report.quads, report.duplicates, report.terms), (2, 4, 4));
    assert_eq!(streamed(&db), 2);
    let (keys, _) = contents(&db);
    assert!(keys.contains(&format!("Len\0{long}2").into_bytes()));
}

#[test]
fn errors_in_long_lines_have_their_line_and_can_be_skipped() {
    let directory = tempfile::tempdir().unwrap();
    // Longer than what is read at a time, so that each of them is handed out alone.
    let long = "x".repeat(2_500_000);
    let good = format!("<urn:s> <urn:p> \"{long}\" .\n");
    let bad = [
        [b"<urn:s> <urn:p> \"", long.as_bytes(), b"\xff\" .\n"].concat(),
        format!("<urn:s> <urn:p> \"{long}\\q\" .\n").into_bytes(),
        format!("<urn:s> <urn:p> \"{long}\" <urn:g> <urn:h> .\n").into_bytes(),
        format!("<urn:s> <urn:p> \"{long}{long}\n").into_bytes(),
        format!("<urn:s> <urn:p> <<( <urn:s> <urn:p> \"{long}\" )>> .\n").into_bytes(),
        format!("<urn:s> \"{long}\" <urn:o> .\n").into_bytes(),
    ];
    // Little memory, so that blocks are shorter than the lines.
    let strict = options(1 << 20, 4096);
    for bad in &bad {
        let text = [good.as_bytes(), b"\n", bad, good.as_bytes()].concat();
        let error = load_text(directory.path(), "strict", &text, &strict).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("data.nq:3:"), "{message}");
        assert!(
            message.len() < 1_000,
            "the literal is not repeated: {message}"
        );
        assert!(!directory.path().join("strict").exists());
    }
    let skipping = LoadOptions {
        skip_errors: true,
        ..strict
    };
    let text = [good.as_bytes(), &bad.concat(), b"<urn:a> <urn:b> <urn:c> ."].concat();
    let report = load_text(directory.path(), "db", &text, &skipping).unwrap();
    assert_eq!((report.quads, report.errors_skipped), (2, bad.len() as u64));
    assert_eq!(contents(&directory.path().join("db")).0.len(), 6);
}

#[test]
fn they_survive_loads_into_a_running_database_and_compactions() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    let text = |number: u32| format!("{}{number}", "long ".repeat(50_000));
    let line = |number: u32| format!("<urn:s> <urn:p> \"{}\" .\n", text(number));
    let small = options(256 << 20, 4096);
    load_text(
        directory.path(),
        "db",
        (line(5) + &line(1)).as_bytes(),
        &small,
    )
    .unwrap();
    let database = Arc::new(Database::open(&db).unwrap());
    let writer = database.open_writer(WriterOptions::default()).unwrap();
    let mut transaction = writer.begin().unwrap();
    let row = ["urn:s", "urn:p"].map(|iri| transaction.intern(&Term::iri(iri)).unwrap());
    let object = |transaction: &mut orrery_storage::Transaction, number| {
        transaction.intern(&Term::string(text(number))).unwrap()
    };
    let (three, one) = (object(&mut transaction, 3), object(&mut transaction, 1));
    let quad = |object| [row[0], row[1], object, TermId::DEFAULT_GRAPH];
    transaction.insert(&mut vec![quad(three)]).unwrap();
    transaction.delete(&mut vec![quad(one)]).unwrap();
    let commit = transaction.commit(CommitOptions::default()).unwrap();
    commit.wait().unwrap();
    let file = directory.path().join("more.nt");
    fs::write(&file, line(2) + &line(5)).unwrap();
    let more = LoadOptions {
        format: Some(Format::NTriples),
        ..small
    };
    load_into(&writer, &[Source::File(file)], &more, &SilentProgress).unwrap();
    let expected = |numbers: &[u32]| {
        let keys = [b"Iurn:p".to_vec(), b"Iurn:s".to_vec()].into_iter();
        let literals = numbers
            .iter()
            .map(|&number| ("S".to_owned() + &text(number)).into_bytes());
        keys.chain(literals).collect::<Vec<_>>()
    };
    let keys = |writer: &Writer| {
        let snapshot = writer.database().snapshot();
        let mut keys = vec![Vec::new(); snapshot.dictionary().len() as usize];
        for (rank, key) in keys.iter_mut().enumerate() {
            snapshot.dictionary().key(rank as u64, key).unwrap();
        }
        keys
    };
    assert!(keys(&writer) == expected(&[2, 3, 5]));
    let mut transaction = writer.begin().unwrap();
    let two = object(&mut transaction, 2);
    let row = ["urn:s", "urn:p"].map(|iri| transaction.intern(&Term::iri(iri)).unwrap());
    transaction
        .delete(&mut vec![[row[0], row[1], two, TermId::DEFAULT_GRAPH]])
        .unwrap();
    let commit = transaction.commit(CommitOptions::default()).unwrap();
    commit.wait().unwrap();
    compact(&writer, &CompactOptions::default(), &SilentProgress).unwrap();
    assert!(keys(&writer) == expected(&[3, 5]));
    drop(writer);
    assert_eq!(contents(&db).1.len(), 2);
}
