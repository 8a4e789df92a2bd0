//! Tests of loads through the public interface: all quads come back.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use orrery_loader::{Format, LoadError, LoadOptions, LoadReport, SilentProgress, Source, load};
use orrery_storage::Permutation;
use orrery_storage::{Database, verify};
use orrery_term::Term;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::fixture::Fixture;

impl Fixture {
    fn db(&self) -> PathBuf {
        self.path("db")
    }

    fn load(&self, sources: &[Source]) -> Result<LoadReport, LoadError> {
        self.load_with(sources, &options())
    }

    fn load_with(
        &self,
        sources: &[Source],
        options: &LoadOptions,
    ) -> Result<LoadReport, LoadError> {
        load(&self.db(), sources, options, &SilentProgress)
    }
}

fn options() -> LoadOptions {
    LoadOptions {
        memory_bytes: 256 << 20,
        threads: 2,
        ..LoadOptions::default()
    }
}

/// All quads as N-Quads lines; also checks that every permutation has them and nothing is damaged.
fn quads_of(db: &Path) -> BTreeSet<String> {
    let damage = verify(db, |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let view = Database::open(db).unwrap().view_of_process();
    let mut lines = BTreeSet::new();
    let mut quads = view.quads().unwrap();
    while let Some(batch) = quads.next_batch().unwrap() {
        for quad in batch.iter() {
            let graph = quad
                .graph
                .map_or(String::new(), |graph: &Term<'_>| format!(" {graph}"));
            let (s, p, o) = (quad.subject, quad.predicate, quad.object);
            assert!(
                lines.insert(format!("{s} {p} {o}{graph} .")),
                "a quad came twice"
            );
        }
    }
    assert_eq!(lines.len() as u64, view.quad_count());
    for permutation in Permutation::ALL {
        if let Some(index) = view.index(permutation) {
            assert_eq!(index.rows(), view.quad_count(), "{permutation}");
        }
    }
    lines
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// N-Triples with all kinds of objects, many terms, and duplicates.
fn many_triples(from: u32, to: u32) -> String {
    let mut text = String::new();
    for n in from..to {
        let subject = format!("<http://example.org/subject/{}>", n / 7);
        let object = match n % 7 {
            0 => format!("<http://example.org/object/{}>", n % 1000),
            1 => format!("\"a string that is too long for an id, number {n}\""),
            2 => format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            3 => format!("\"0{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            4 => format!("\"text {n}\"@en-gb"),
            5 => format!("\"s{}\"", n % 100),
            _ => format!("\"custom {n}\"^^<http://example.org/type/{}>", n % 3),
        };
        text.push_str(&format!(
            "{subject} <http://example.org/p{}> {object} .\n",
            n % 11
        ));
    }
    text
}

#[test]
fn a_load_of_nothing_new_is_no_commit() {
    let fixture = Fixture::new();
    let source = fixture.file("a.nq", many_triples(0, 500));
    let first = fixture.load(std::slice::from_ref(&source)).unwrap();
    assert_eq!(first.commit, 1);
    let again = fixture
        .load(&[source, fixture.file("empty.nt", "")])
        .unwrap();
    assert_eq!(
        (again.commit, again.quads_added, again.quads),
        (1, 0, first.quads)
    );
    assert_eq!((again.quads_read, again.duplicates), (500, 500));
    assert_eq!(again.database_bytes, first.database_bytes);
    assert_eq!(again.terms, first.terms);
    assert_eq!(Database::open(fixture.db()).unwrap().snapshot().commit(), 1);
    assert_eq!(quads_of(&fixture.db()).len() as u64, first.quads);
    let segments = fs::read_dir(fixture.db()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("segment-")
    });
    assert_eq!(segments.count(), 1);
}

#[test]
fn every_kind_of_term_comes_back_to_the_letter() {
    let text = r#"<urn:s> <urn:p> "" .
<urn:s> <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:s> <urn:p> "-0.0"^^<http://www.w3.org/2001/XMLSchema#double> .
<urn:s> <urn:p> "NaN"^^<http://www.w3.org/2001/XMLSchema#double> .
<urn:s> <urn:p> "12025-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
<urn:s> <urn:p> "2025-01-01T00:00:00.5-14:00"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:s> <urn:p> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .
<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#boolean> .
<urn:s> <urn:p> "9999999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:s> <urn:p> "en"@en .
<urn:s> <urn:p> "x"@x-private .
<urn:s> <urn:p> "a\"b\\c\nd\re" .
<urn:s> <urn:p> "é中😀" .
<urn:s> <urn:p> <urn:s> <urn:g> .
<urn:s> <urn:p> <urn:s> .
<urn:s> <urn:p> "v"^^<urn:datatype> <urn:g2> .
"#;
    let long = format!("<urn:s> <urn:p> \"{}\" .\n", "long ".repeat(20_000));
    let text = format!("{text}{long}");
    let fixture = Fixture::new();
    let report = fixture.load(&[fixture.file("a.nq", &text)]).unwrap();
    assert_eq!(quads_of(&fixture.db()), lines(&text));
    assert_eq!(
        (report.quads_read, report.quads_added, report.duplicates),
        (18, 18, 0)
    );
    assert!(report.seconds > 0.0 && report.database_bytes > 0);
}

#[test]
fn duplicates_within_and_across_files_are_kept_once() {
    let fixture = Fixture::new();
    let text = many_triples(0, 5000);
    let sources = [
        fixture.file("a.nt", format!("{text}{text}")),
        fixture.file("b.nt", &text),
    ];
    let report = fixture.load(&sources).unwrap();
    assert_eq!(quads_of(&fixture.db()), lines(&text));
    assert_eq!(report.quads, 5000);
    assert_eq!((report.quads_read, report.duplicates), (15_000, 10_000));
}

#[test]
fn a_tiny_budget_gives_the_same_database_through_the_disk() {
    let fixture = Fixture::new();
    let text = many_triples(0, 150_000);
    let sources = [
        fixture.file("a.nt", &text),
        fixture.file("b.nt", many_triples(100_000, 101_000)),
    ];
    let tiny = LoadOptions {
        memory_bytes: 1 << 20,
        ..options()
    };
    let report = fixture.load_with(&sources, &tiny).unwrap();
    assert_eq!(report.quads_added, 150_000);
    assert_eq!(quads_of(&fixture.db()), lines(&text));
    assert!(!fixture.db().join("load-stage").exists());

    let other = fixture.path("other");
    load(&other, &sources, &options(), &SilentProgress).unwrap();
    for name in ["terms.dict", "spog.col", "posg.col", "psog.col", "ospg.col"] {
        let of = |db: &Path| {
            let snapshot = Database::open(db).unwrap().snapshot();
            fs::read(snapshot.directory().join(name)).unwrap()
        };
        assert!(of(&fixture.db()) == of(&other), "{name} differs");
    }
}

#[test]
fn a_second_load_adds_to_what_is_there() {
    for memory_bytes in [1 << 20, 256 << 20] {
        let fixture = Fixture::new();
        let options = LoadOptions {
            memory_bytes,
            ..options()
        };
        let load = |name: &str, text: &str| {
            fixture
                .load_with(&[fixture.file(name, text)], &options)
                .unwrap()
        };
        load("a.nt", &many_triples(0, 30_000));
        let report = load("b.nt", &many_triples(20_000, 60_000));
        assert_eq!((report.quads_added, report.duplicates), (30_000, 10_000));
        assert_eq!(quads_of(&fixture.db()), lines(&many_triples(0, 60_000)));

        // The first named graph makes a GSPO with the old quads in it.
        load("c.nq", "<urn:a> <urn:p> \"new\" <urn:g> .\n");
        let mut expected = lines(&many_triples(0, 60_000));
        expected.insert("<urn:a> <urn:p> \"new\" <urn:g> .".to_owned());
        assert_eq!(quads_of(&fixture.db()), expected);
        let view = Database::open(fixture.db()).unwrap().view_of_process();
        assert!(view.has_named_graphs());

        // And stays, when nothing named is added.
        load("d.nt", "<urn:a> <urn:p> \"newer\" .\n");
        expected.insert("<urn:a> <urn:p> \"newer\" .".to_owned());
        assert_eq!(quads_of(&fixture.db()), expected);
    }
}

#[test]
fn blank_nodes_belong_to_their_file_and_their_load() {
    let fixture = Fixture::new();
    let text = "_:a <urn:p> _:b .\n_:b <urn:p> _:a .\n";
    fixture
        .load(&[fixture.file("a.nt", text), fixture.file("b.nt", text)])
        .unwrap();
    let expected =
        "_:b0 <urn:p> _:b1 .\n_:b1 <urn:p> _:b0 .\n_:b2 <urn:p> _:b3 .\n_:b3 <urn:p> _:b2 .";
    assert_eq!(quads_of(&fixture.db()), lines(expected));
    fixture.load(&[fixture.file("c.nt", text)]).unwrap();
    let more = format!("{expected}\n_:b4 <urn:p> _:b5 .\n_:b5 <urn:p> _:b4 .");
    assert_eq!(quads_of(&fixture.db()), lines(&more));
}

#[test]
fn a_graph_option_takes_what_names_no_graph() {
    let fixture = Fixture::new();
    let options = LoadOptions {
        graph: Some("urn:target".to_owned()),
        ..options()
    };
    let text = "<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o> <urn:g> .\n";
    fixture
        .load_with(&[fixture.file("a.nq", text)], &options)
        .unwrap();
    let expected = "<urn:s> <urn:p> <urn:o> <urn:target> .\n<urn:s> <urn:p> <urn:o> <urn:g> .";
    assert_eq!(quads_of(&fixture.db()), lines(expected));

    let wrong = LoadOptions {
        graph: Some("no iri".to_owned()),
        ..options
    };
    let error = fixture.load_with(&[], &wrong).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::InvalidIri {
                option: "graph",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn all_formats_and_compressions_load_at_once() {
    let fixture = Fixture::new();
    let triple = |n: u32| format!("<urn:s{n}> <urn:p> <urn:o> .\n");
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(triple(2).as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let bzip2 = {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(triple(3).as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let xml = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:u=\"urn:\">\
        <rdf:Description rdf:about=\"urn:s7\"><u:p rdf:resource=\"urn:o\"/></rdf:Description></rdf:RDF>";
    let sources = [
        fixture.file("1.nt", triple(1)),
        fixture.file("2.nt.gz", gzip),
        fixture.file("3.nq.bz2", bzip2),
        fixture.file(
            "4.nt.zst",
            zstd::encode_all(triple(4).as_bytes(), 1).unwrap(),
        ),
        fixture.file("5.ttl", "@prefix u: <urn:> . u:s5 u:p u:o ."),
        fixture.file(
            "6.trig",
            "<urn:s6> <urn:p> <urn:o> . <urn:g> { <urn:s6> <urn:p> <urn:o> }",
        ),
        fixture.file("7.rdf", xml),
        fixture.file(
            "8.jsonld",
            "{\"@id\": \"urn:s8\", \"urn:p\": {\"@id\": \"urn:o\"}}",
        ),
    ];
    let report = fixture.load(&sources).unwrap();
    assert_eq!(report.quads_added, 9);
    let mut expected: BTreeSet<String> = (1..=8).map(|n| triple(n).trim().to_owned()).collect();
    expected.insert("<urn:s6> <urn:p> <urn:o> <urn:g> .".to_owned());
    assert_eq!(quads_of(&fixture.db()), expected);
}

#[test]
fn a_syntax_error_is_told_with_its_place_and_nothing_is_loaded() {
    let fixture = Fixture::new();
    let mut text = many_triples(0, 40_000);
    text.push_str("<urn:s> <urn:p> <urn: o> .\n<urn:s> <urn:p>\n");
    let error = fixture.load(&[fixture.file("a.nt", &text)]).unwrap_err();
    let LoadError::Syntax(syntax) = &error else {
        panic!("{error}");
    };
    assert_eq!((syntax.line, syntax.column), (Some(40_001), Some(22)));
    assert_eq!(syntax.text, "<urn: o>");
    assert!(error.to_string().contains("a.nt:40001:22: "), "{error}");
    assert!(
        !fixture.db().exists(),
        "a directory that the load made is removed"
    );

    // With a database there, it stays as it was.
    let good = many_triples(0, 100);
    fixture.load(&[fixture.file("good.nt", &good)]).unwrap();
    fixture
        .load(&[Source::File(fixture.path("a.nt"))])
        .unwrap_err();
    assert_eq!(quads_of(&fixture.db()), lines(&good));
    let left: Vec<_> = fs::read_dir(fixture.db())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "manifest, lock and one segment: {left:?}");
}

#[test]
fn the_first_of_several_errors_is_told() {
    let fixture = Fixture::new();
    let good = many_triples(0, 20_000);
    let text = format!("{good}x\n{good}y\n{good}z\n");
    let small_blocks = LoadOptions {
        memory_bytes: 4 << 20,
        ..options()
    };
    let error = fixture
        .load_with(&[fixture.file("a.nt", &text)], &small_blocks)
        .unwrap_err();
    assert!(error.to_string().contains("a.nt:20001:1:"), "{error}");
}

#[test]
fn wrong_statements_can_be_skipped_and_leave_no_trace() {
    let fixture = Fixture::new();
    let good = many_triples(0, 1000);
    let text = format!("<urn:orphan-subject> <urn:orphan-predicate> x .\n{good}\"y\n");
    let options = LoadOptions {
        skip_errors: true,
        ..options()
    };
    let turtle = fixture.file(
        "b.ttl",
        "<urn:a> <urn:b> <urn:c> . <urn:a> x:y 5 .\n<urn:d> <urn:e> <urn:f> .",
    );
    let report = fixture
        .load_with(&[fixture.file("a.nt", &text), turtle], &options)
        .unwrap();
    assert!(report.errors_skipped >= 3, "{}", report.errors_skipped);
    let quads = quads_of(&fixture.db());
    assert!(quads.is_superset(&lines(&good)));
    let snapshot = Database::open(fixture.db()).unwrap().snapshot();
    assert_eq!(
        snapshot.term_id(&Term::iri("urn:orphan-subject")).unwrap(),
        None
    );
}

#[test]
fn truncated_and_false_compressed_files_fail_whole() {
    let fixture = Fixture::new();
    let mut bytes = zstd::encode_all(many_triples(0, 50_000).as_bytes(), 1).unwrap();
    bytes.truncate(bytes.len() - 100);
    let error = fixture
        .load(&[fixture.file("a.nt.zst", bytes)])
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("a.nt.zst") && text.contains("truncated"),
        "{text}"
    );
    let error = fixture
        .load(&[fixture.file("b.nt.gz", "<urn:a> <urn:b> <urn:c> .\n")])
        .unwrap_err();
    assert!(error.to_string().contains("not gzip data"), "{error}");
    assert!(!fixture.db().exists());
}

#[test]
fn bad_sources_are_refused_before_anything_is_made() {
    let fixture = Fixture::new();
    let error = |source: PathBuf| fixture.load(&[Source::File(source)]).unwrap_err();
    assert!(matches!(
        error(fixture.path("none.nt")),
        LoadError::NoSuchFile { .. }
    ));
    assert!(matches!(
        error(fixture.directory.path().to_owned()),
        LoadError::IsDirectory { .. }
    ));
    let unnamed = fixture.load(&[Source::Stdin]).unwrap_err();
    assert!(matches!(unnamed, LoadError::UnknownFormat { .. }));
    assert!(!fixture.db().exists());
}

#[test]
fn leftovers_of_a_killed_load_are_removed_and_two_writers_are_refused() {
    let fixture = Fixture::new();
    let text = many_triples(0, 1000);
    fixture.load(&[fixture.file("a.nt", &text)]).unwrap();
    let db = fixture.db();
    fs::create_dir_all(db.join("load-stage")).unwrap();
    fs::write(db.join("load-stage/batch-000001.terms"), "half").unwrap();
    fs::create_dir_all(db.join("segment-000077")).unwrap();
    fs::write(db.join("segment-000077/spog.col"), "half").unwrap();
    assert_eq!(quads_of(&db), lines(&text));
    fixture.load(&[Source::File(fixture.path("a.nt"))]).unwrap();
    assert_eq!(quads_of(&db), lines(&text));
    assert!(!db.join("load-stage").exists() && !db.join("segment-000077").exists());

    let _lock = orrery_storage::WriterLock::acquire(&db).unwrap();
    let error = fixture
        .load(&[Source::File(fixture.path("a.nt"))])
        .unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Storage(orrery_storage::Error::Locked { .. })
        ),
        "{error}"
    );
}

#[test]
fn no_statements_make_an_empty_database() {
    let fixture = Fixture::new();
    let report = fixture
        .load(&[fixture.file("a.nt", "# nothing\n\n")])
        .unwrap();
    assert_eq!((report.quads, report.terms), (0, 0));
    assert!(quads_of(&fixture.db()).is_empty());
    let options = LoadOptions {
        format: Some(Format::NTriples),
        ..options()
    };
    fixture
        .load_with(
            &[fixture.file("b.txt", "<urn:a> <urn:b> <urn:c> .")],
            &options,
        )
        .unwrap();
    assert_eq!(quads_of(&fixture.db()).len(), 1);
}

/// Blank nodes within triple terms, in several files and batches, on top of what is there.
#[test]
fn triple_terms_keep_their_blank_nodes_through_every_way_of_a_load() {
    let text = |file: usize| {
        let mut text = String::new();
        for n in 0..3_000 {
            text += &format!(
                "_:s{n} <urn:says> <<( _:s{n} <urn:p{file}> <<( _:o{} <urn:q> \"{n}\" )>> )>> .\n\
                 _:o{n} <urn:is> \"object {n} of file {file}\" .\n",
                n % 700
            );
        }
        text
    };
    let mut answers = Vec::new();
    for memory_bytes in [1 << 20, 256 << 20] {
        let fixture = Fixture::new();
        let options = LoadOptions {
            memory_bytes,
            ..options()
        };
        let file = |n: usize| fixture.file(&format!("{n}.nt"), text(n));
        fixture.load_with(&[file(0), file(1)], &options).unwrap();
        fixture.load_with(&[file(2)], &options).unwrap();
        let lines = quads_of(&fixture.db());
        assert_eq!(lines.len(), 3 * 6_000);
        // The subject is the one within; the inner node is the one that `is` the object of its
        // number.
        let objects: std::collections::BTreeMap<&str, &str> = lines
            .iter()
            .filter_map(|line| line.split_once(" <urn:is> "))
            .collect();
        let mut meanings = BTreeSet::new();
        for line in &lines {
            let Some((subject, triple)) = line.split_once(" <urn:says> ") else {
                continue;
            };
            let words: Vec<&str> = triple.split(' ').collect();
            assert_eq!(words[1], subject, "{line}");
            let object = objects[words[4]];
            assert!(meanings.insert(format!("{} {} {object}", words[2], words[6])));
            let number: usize = words[6].trim_matches('"').parse().unwrap();
            let file = &words[2]["<urn:p".len()..words[2].len() - 1];
            let expected = format!("\"object {} of file {file}\" .", number % 700);
            assert_eq!(object, expected, "{line}");
        }
        assert_eq!(meanings.len(), 9_000);
        answers.push(meanings);
    }
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn blank_nodes_of_triple_terms_survive_wrong_statements() {
    let fixture = Fixture::new();
    let text = "_:a <urn:p> <<( _:b <urn:p> _:c )>> .\n\
                _:wrong <urn:p> <<( _:worse <urn:p> _:c )>> x .\n\
                _:c <urn:p> \"c\" .\n";
    let options = LoadOptions {
        skip_errors: true,
        ..options()
    };
    let source = fixture.file("a.nt", text);
    fixture.load_with(&[source], &options).unwrap();
    let lines: Vec<String> = quads_of(&fixture.db()).into_iter().collect();
    assert_eq!(
        lines,
        [
            "_:b0 <urn:p> <<( _:b1 <urn:p> _:b2 )>> .",
            "_:b2 <urn:p> \"c\" .",
        ]
    );
}
