//! Tests of distributed loads in one process, with transports that die, cut and damage. The segment
//! is, to the byte, that of a load by one process.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use orrery_loader::{
    Format, LoadError, LoadOptions, LoadReport, LoadWorker, LoadWorkers, Progress, SilentProgress,
    Source, Upload, WorkPieces, WorkerPlace, answer_load_request, load, load_by_workers, load_into,
    load_into_by_workers,
};
use orrery_storage::io::testing::RecordingFileSystem;
use orrery_storage::io::{FileSystem, LocalFileSystem};
use orrery_storage::{CommitOptions, Database, Permutation, WriterOptions, verify};
use orrery_term::{Term, TermId};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::fixture::Fixture;

fn files() -> Arc<dyn FileSystem> {
    Arc::new(LocalFileSystem)
}

/// What happens to the answers of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// After so many bytes of one answer the connection is gone, and the worker with it.
    DiesAfter(usize),
    /// Answers end after so many bytes, as if that were all.
    CutAfter(usize),
    /// The byte at this place of each answer is another.
    DamagedAt(usize),
    /// There was never anybody.
    Dead,
}

/// A worker in this process, with memory and a directory of its own.
struct InProcess {
    name: String,
    place: WorkerPlace,
    reads_files: bool,
    fault: Fault,
    is_dead: Arc<AtomicBool>,
}

impl LoadWorker for InProcess {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn reads_files(&self) -> bool {
        self.reads_files
    }

    fn request(&self, request: Vec<u8>) -> io::Result<Box<dyn Read + Send>> {
        if self.fault == Fault::Dead || self.is_dead.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (answer, mut out) = io::pipe()?;
        let place = self.place.clone();
        thread::spawn(move || {
            // What went wrong the coordinator hears, or does not want to hear any more.
            let _ = answer_load_request(&request, &place, &mut out);
        });
        Ok(Box::new(Faulty {
            answer,
            at: 0,
            fault: self.fault,
            is_dead: Arc::clone(&self.is_dead),
        }))
    }
}

struct Faulty {
    answer: io::PipeReader,
    at: usize,
    fault: Fault,
    is_dead: Arc<AtomicBool>,
}

impl Read for Faulty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = match self.fault {
            Fault::DiesAfter(limit) | Fault::CutAfter(limit) => limit,
            Fault::None | Fault::DamagedAt(_) | Fault::Dead => usize::MAX,
        };
        if self.at >= limit {
            if matches!(self.fault, Fault::DiesAfter(_)) {
                self.is_dead.store(true, Ordering::Relaxed);
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            return Ok(0);
        }
        let wanted = buffer.len().min(limit - self.at);
        let length = self.answer.read(&mut buffer[..wanted])?;
        if let Fault::DamagedAt(place) = self.fault
            && (self.at..self.at + length).contains(&place)
        {
            buffer[place - self.at] ^= 0x10;
        }
        self.at += length;
        Ok(length)
    }
}

/// Small pieces of work, so that all have some.
const PIECES: WorkPieces = WorkPieces {
    part_bytes: 20_000,
    request_bytes: 100_000,
    sort_rows: 5000,
};

/// How a load is helped.
#[derive(Debug, Clone, Copy)]
struct Help {
    faults: [Fault; 3],
    read_files: bool,
    sort: bool,
}

const SOUND: Help = Help {
    faults: [Fault::None; 3],
    read_files: false,
    sort: true,
};

impl Fixture {
    fn gzip(&self, name: &str, text: &str) -> Source {
        let file = fs::File::create(self.path(name)).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        Source::File(self.path(name))
    }

    /// Three workers with small pieces of work.
    fn workers(&self, help: Help) -> LoadWorkers {
        let workers = (0..).zip(help.faults).map(|(number, fault)| {
            let worker: Arc<dyn LoadWorker> = Arc::new(InProcess {
                name: format!("worker {number}"),
                place: WorkerPlace {
                    files: files(),
                    directory: self.path(&format!("worker-{number}")),
                    memory_bytes: 16 << 20,
                    threads: 2,
                },
                reads_files: help.read_files,
                fault,
                is_dead: Arc::default(),
            });
            worker
        });
        LoadWorkers::new(workers.collect(), help.sort, PIECES)
    }

    fn by_workers(
        &self,
        db: &str,
        sources: &[Source],
        options: &LoadOptions,
        help: Help,
    ) -> Result<LoadReport, LoadError> {
        let workers = self.workers(help);
        load_by_workers(
            &files(),
            &self.path(db),
            sources,
            options,
            &workers,
            &SilentProgress,
        )
    }

    fn alone(
        &self,
        db: &str,
        sources: &[Source],
        options: &LoadOptions,
    ) -> Result<LoadReport, LoadError> {
        load(&self.path(db), sources, options, &SilentProgress)
    }
}

fn options(memory_bytes: u64) -> LoadOptions {
    LoadOptions {
        memory_bytes,
        threads: 2,
        literal_bytes_max: 4096,
        ..LoadOptions::default()
    }
}

const MEMORY: [u64; 2] = [1 << 20, 256 << 20];

/// The files of the segment with their bytes.
fn segment(db: &Path) -> BTreeMap<String, Vec<u8>> {
    let damage = verify(db, |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let left = fs::read_dir(db.join("load-stage")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files of the load are left");
    let snapshot = Database::open(db).unwrap().snapshot();
    let entries = fs::read_dir(snapshot.directory()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[track_caller]
fn assert_same_files(db: &Path, expected: &Path, what: &str) {
    let (found, expected) = (segment(db), segment(expected));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected), "{what}");
    assert!(found.contains_key("gspo.col") && found.contains_key("terms.dict"));
    for (name, bytes) in &found {
        assert!(*bytes == expected[name], "{what}: {name} differs");
    }
}

/// N-Quads with named graphs, blank nodes also within triple terms, large literals, all kinds of
/// others, and duplicates.
fn quads(from: u32, to: u32) -> String {
    let mut text = String::new();
    for n in from..to {
        let subject = match n % 9 {
            0 => format!("_:node{}", n % 50),
            _ => format!("<http://example.org/subject/{}>", n / 7),
        };
        let object = match n % 11 {
            0 => format!("_:node{}", n % 60),
            1 => format!("\"a string that is too long for an id, number {n}\""),
            2 => format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            3 => format!("\"0{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            4 => format!("\"text {n}\"@en-GB"),
            5 => format!("<<( _:node{} <http://example.org/p1> \"{n}\" )>>", n % 40),
            6 if n % 97 == 0 => format!("\"{}{}\"@de", "long\\n".repeat(1000), n % 5),
            7 if n % 1009 == 0 => format!("\"{}{}\"", "x".repeat(80_000), n % 7),
            _ => format!("<http://example.org/object/{}>", n % 1000),
        };
        let graph = match n % 5 {
            0 => format!(" <http://example.org/graph/{}>", n % 13),
            1 if n % 35 == 1 => " _:graph".to_owned(),
            _ => String::new(),
        };
        text.push_str(&format!(
            "{subject} <http://example.org/p{}> {object}{graph} .\n",
            n % 17
        ));
        if n % 50 == 0 {
            text.push_str("# nothing\n<urn:again> <urn:and> <urn:again> .\r\n");
        }
    }
    text
}

fn turtle(number: u32) -> String {
    let mut text = format!(
        "@prefix ex: <http://example.org/{number}/> .\n@prefix p{number}: <urn:p{number}:> .\n"
    );
    for n in 0..2000 {
        text.push_str(&format!(
            "ex:s{n} ex:p \"text {n}\"@en-US , {n} , _:node{} ; p{number}:q _:n{n} .\n",
            n % 40
        ));
    }
    text
}

/// Files of all kinds. All their blank nodes have labels, which the order of their numbers comes
/// from.
fn sources(fixture: &Fixture) -> Vec<Source> {
    vec![
        fixture.file("a.nq", format!("\u{FEFF}{}", quads(0, 12_000))),
        fixture.file("b.nq", quads(11_000, 20_000)),
        fixture.gzip("c.nq.gz", &quads(19_000, 26_000)),
        fixture.file("d.ttl", turtle(1)),
        fixture.gzip("e.ttl.gz", &turtle(2)),
        fixture.file("f.nt", "_:node1 <urn:p> _:node2 .\n# without a line end"),
        fixture.file("empty.nt", ""),
    ]
}

#[test]
fn a_load_by_workers_writes_the_same_files_as_one_process() {
    let fixture = Fixture::new();
    let sources = sources(&fixture);
    let text_bytes: usize = [
        quads(0, 12_000),
        quads(11_000, 20_000),
        quads(19_000, 26_000),
    ]
    .iter()
    .map(String::len)
    .sum();
    let expected = fixture
        .alone("alone", &sources, &options(MEMORY[1]))
        .unwrap();
    for (case, (read_files, sort)) in [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .enumerate()
    {
        for memory_bytes in MEMORY {
            let what = format!("files {read_files}, sort {sort}, memory {memory_bytes}");
            let db = format!("db-{case}-{memory_bytes}");
            let help = Help {
                read_files,
                sort,
                ..SOUND
            };
            let report = fixture
                .by_workers(&db, &sources, &options(memory_bytes), help)
                .unwrap();
            assert_same_files(&fixture.path(&db), &fixture.path("alone"), &what);
            assert_eq!(
                (report.quads, report.quads_read, report.terms, report.commit),
                (expected.quads, expected.quads_read, expected.terms, 1)
            );
            assert_eq!(report.workers.len(), 3);
            let sum = |count: fn(&orrery_loader::WorkerCounts) -> u64| {
                report.workers.iter().map(count).sum::<u64>()
            };
            assert!(sum(|worker| worker.requests) > 0, "{:?}", report.workers);
            assert_eq!(sum(|worker| worker.failures), 0, "{:?}", report.warnings);
            let (sent, received) = (
                sum(|worker| worker.bytes_sent),
                sum(|worker| worker.bytes_received),
            );
            println!("{what}: {text_bytes} bytes of N-Quads, {sent} sent, {received} received");
            // Texts and keys in order pack well; each row travels there once for each permutation,
            // in a few bytes.
            let rows = if sort { 5 * 8 * report.quads_read } else { 0 };
            assert!(sent <= text_bytes as u64 / 2 + rows, "{what}");
            assert!(received <= text_bytes as u64 + rows, "{what}");
            assert!(report.warnings.is_empty());
            assert_eq!(
                prefixes(&fixture.path(&db)),
                prefixes(&fixture.path("alone"))
            );
        }
    }
}

/// What the database knows beside the segment's files: prefixes, and how language tags are written.
fn prefixes(db: &Path) -> (Vec<(String, String)>, Vec<String>) {
    let snapshot = Database::open(db).unwrap().snapshot();
    let prefixes = snapshot.prefixes();
    let tags = snapshot.language_tags();
    (
        prefixes
            .iter()
            .map(|(name, iri, _)| (name.to_owned(), iri.to_owned()))
            .collect(),
        tags.iter().map(str::to_owned).collect(),
    )
}

#[test]
fn workers_that_die_cut_or_damage_their_answers_change_nothing() {
    let fixture = Fixture::new();
    let sources = sources(&fixture);
    let expected = fixture
        .alone("alone", &sources, &options(MEMORY[1]))
        .unwrap();
    let cases = [
        [Fault::None, Fault::DiesAfter(3000), Fault::None],
        [Fault::CutAfter(700), Fault::None, Fault::DamagedAt(2500)],
        [
            Fault::DiesAfter(0),
            Fault::CutAfter(4),
            Fault::DamagedAt(30),
        ],
        [Fault::Dead; 3],
    ];
    for (case, faults) in cases.into_iter().enumerate() {
        for read_files in [false, true] {
            let what = format!("{faults:?}, files {read_files}");
            let db = format!("db-{case}-{read_files}");
            let help = Help {
                faults,
                read_files,
                sort: true,
            };
            let report = fixture
                .by_workers(&db, &sources, &options(MEMORY[case % 2]), help)
                .unwrap();
            assert_same_files(&fixture.path(&db), &fixture.path("alone"), &what);
            assert_eq!(report.quads_read, expected.quads_read, "{what}");
            // Who is asked first is chance, so not each of them need have come to fail.
            let failures: u64 = report.workers.iter().map(|worker| worker.failures).sum();
            assert!(failures > 0, "{what}: {:?}", report.workers);
            for (worker, fault) in report.workers.iter().zip(faults) {
                let failed = worker.failures > 0;
                assert!(!failed || fault != Fault::None, "{what}: {worker:?}");
                let is_told = |warning: &String| warning.contains(&worker.name);
                assert_eq!(report.warnings.iter().any(is_told), failed);
            }
        }
    }
}

#[test]
fn files_that_workers_do_not_find_are_read_by_the_coordinator() {
    let fixture = Fixture::new();
    let sources = sources(&fixture);
    fixture
        .alone("alone", &sources, &options(MEMORY[1]))
        .unwrap();
    // None of the files is in its file system.
    let worker = InProcess {
        name: "elsewhere".to_owned(),
        place: WorkerPlace {
            files: Arc::new(RecordingFileSystem::new()),
            directory: PathBuf::from("/elsewhere"),
            memory_bytes: 16 << 20,
            threads: 1,
        },
        reads_files: true,
        fault: Fault::None,
        is_dead: Arc::default(),
    };
    let workers = LoadWorkers::new(vec![Arc::new(worker)], false, PIECES);
    let report = load_by_workers(
        &files(),
        &fixture.path("db"),
        &sources,
        &options(MEMORY[1]),
        &workers,
        &SilentProgress,
    );
    let counts = &report.unwrap().workers[0];
    // It says that it cannot, and parses what it is sent.
    assert!(counts.failures == 0 && counts.requests > 0, "{counts:?}");
    assert_same_files(&fixture.path("db"), &fixture.path("alone"), "elsewhere");
}

#[test]
fn a_load_by_workers_into_a_database_with_changes_writes_the_same_files() {
    let fixture = Fixture::new();
    let sources = sources(&fixture);
    let first = fixture.file("first.nq", quads(5000, 15_000));
    let dbs = ["alone", "helped"].map(|db| fixture.path(db));
    for db in &dbs {
        load(
            db,
            std::slice::from_ref(&first),
            &options(MEMORY[1]),
            &SilentProgress,
        )
        .unwrap();
        let database = Arc::new(Database::create_or_open(db).unwrap());
        let writer = database.open_writer(WriterOptions::default()).unwrap();
        let mut change = writer.begin().unwrap();
        let id = |change: &mut orrery_storage::Transaction, iri: &str| {
            change.intern(&Term::iri(iri)).unwrap()
        };
        let [s, p, again, and] = ["urn:new", "http://example.org/p1", "urn:again", "urn:and"]
            .map(|iri| id(&mut change, iri));
        change
            .insert(&mut vec![[s, p, again, TermId::DEFAULT_GRAPH]])
            .unwrap();
        change
            .delete(&mut vec![[again, and, again, TermId::DEFAULT_GRAPH]])
            .unwrap();
        change
            .commit(CommitOptions::default())
            .unwrap()
            .wait()
            .unwrap();
        let options = options(MEMORY[0]);
        let report = if db.ends_with("alone") {
            load_into(&writer, &sources[1..], &options, &SilentProgress)
        } else {
            let workers = fixture.workers(Help {
                read_files: true,
                faults: [Fault::None, Fault::CutAfter(900), Fault::None],
                sort: true,
            });
            load_into_by_workers(&writer, &sources[1..], &options, &workers, &SilentProgress)
        };
        assert_eq!(report.unwrap().commit, 3);
    }
    assert_same_files(&dbs[1], &dbs[0], "into");
    // And once more, with workers and without a writer: nothing new.
    let again = fixture.by_workers("helped", &sources[1..3], &options(MEMORY[1]), SOUND);
    // Their blank nodes are new, so there is something new but them only.
    assert!(again.unwrap().quads_added > 0);
    let again = fixture.file("again.nq", "<urn:again> <urn:and> <urn:again> .\n");
    let report = fixture
        .by_workers("helped", &[again], &options(MEMORY[1]), SOUND)
        .unwrap();
    assert_eq!((report.quads_added, report.duplicates), (0, 1));
}

/// Keeps what is told of wrong statements that were left out.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Progress for Told {
    fn skipped(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

#[test]
fn wrong_statements_are_told_with_file_and_line_whoever_parsed_them() {
    let fixture = Fixture::new();
    let mut lines: Vec<String> = quads(0, 3000).lines().map(str::to_owned).collect();
    lines[1500] = "<urn:s> <not absolute> \"x\" .".to_owned();
    let one_wrong = fixture.file("one.nq", lines.join("\r\n"));
    lines[100] = "<urn:s> a <urn:c> .".to_owned();
    lines[2900] = "<urn:s> <urn:p> 7 .".to_owned();
    let several = fixture.file("several.nq", lines.join("\n"));
    let broken = fixture.file(
        "broken.ttl",
        "@prefix ex: <urn:x:> .\nex:a ex:b ex:c .\nex:a b:c ex:d .\n",
    );
    let html = fixture.file("page.nt", "<!DOCTYPE html>\n<html></html>\n");
    let said = |result: Result<LoadReport, LoadError>| result.unwrap_err().to_string();
    for read_files in [false, true] {
        let help = Help {
            read_files,
            ..SOUND
        };
        for source in [&one_wrong, &broken, &html] {
            let sources = [
                fixture.file("a.nt", "<urn:a> <urn:p> <urn:b> .\n"),
                source.clone(),
            ];
            let alone = said(fixture.alone("db", &sources, &options(MEMORY[1])));
            let helped = said(fixture.by_workers("db", &sources, &options(MEMORY[1]), help));
            assert_eq!(helped, alone);
            assert!(!fixture.path("db").exists(), "nothing is left");
        }
        let skipping = LoadOptions {
            skip_errors: true,
            ..options(MEMORY[1])
        };
        let sources = [one_wrong.clone(), several.clone(), broken.clone()];
        let [alone, helped] = [Told::default(), Told::default()];
        let expected = load(&fixture.path("skipped"), &sources, &skipping, &alone).unwrap();
        let workers = fixture.workers(help);
        let db = fixture.path("skipped-helped");
        let report = load_by_workers(&files(), &db, &sources, &skipping, &workers, &helped);
        let report = report.unwrap();
        let [mut alone, mut helped] = [alone, helped].map(|told| told.0.into_inner().unwrap());
        alone.sort();
        helped.sort();
        assert_eq!(helped, alone);
        assert_eq!(alone.len(), 5);
        assert_eq!(report.errors_skipped, expected.errors_skipped);
        assert_same_files(&db, &fixture.path("skipped"), "skipped");
        fs::remove_dir_all(db).unwrap();
        fs::remove_dir_all(fixture.path("skipped")).unwrap();
    }
}

/// The quads as lines, with `_:b` for every blank node.
fn lines_without_labels(db: &Path) -> Vec<String> {
    let damage = verify(db, |_| {}).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    let view = Database::open(db).unwrap().view_of_process();
    for permutation in Permutation::ALL {
        if let Some(index) = view.index(permutation) {
            assert_eq!(index.rows(), view.quad_count(), "{permutation}");
        }
    }
    let mut lines = Vec::new();
    let mut quads = view.quads().unwrap();
    while let Some(batch) = quads.next_batch().unwrap() {
        for quad in batch.iter() {
            let shown = |term: &Term<'_>| match term {
                Term::BlankNode(_) => "_:b".to_owned(),
                term => term.to_string(),
            };
            let terms = [quad.subject, quad.predicate, quad.object.as_ref()].map(shown);
            let graph = quad.graph.map_or(String::new(), shown);
            lines.push(terms.join(" ") + &graph);
        }
    }
    lines.sort();
    lines
}

#[test]
fn documents_whose_blank_nodes_have_no_labels_hold_the_same_whoever_parsed_them() {
    let fixture = Fixture::new();
    let mut trig = "@prefix ex: <urn:x:> .\n".to_owned();
    for n in 0..300 {
        trig.push_str(&format!(
            "ex:g{} {{ ex:s{n} ex:p [ ex:q ( {n} \"a\" ) ] . }}\n",
            n % 4
        ));
    }
    let json = r#"{"@context": {"ex": "urn:x:"}, "@id": "ex:a", "ex:b": [{"ex:c": "d"}, {"@value": "e", "@language": "en-GB"}], "left": "out"}"#;
    let xml = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="urn:x:"><rdf:Description rdf:about="urn:x:z"><ex:p rdf:parseType="Resource"><ex:q>r</ex:q></ex:p></rdf:Description></rdf:RDF>"#;
    let sources = [
        fixture.file("a.trig", &trig),
        fixture.file("b.jsonld", json),
        fixture.file("c.rdf", xml),
        fixture.file("relative.ttl", "<#me> <urn:p> <other> .\n"),
    ];
    let expected = fixture
        .alone("alone", &sources, &options(MEMORY[1]))
        .unwrap();
    let lines = lines_without_labels(&fixture.path("alone"));
    for read_files in [false, true] {
        let db = format!("db-{read_files}");
        let help = Help {
            read_files,
            ..SOUND
        };
        let report = fixture
            .by_workers(&db, &sources, &options(MEMORY[1]), help)
            .unwrap();
        assert_eq!(lines_without_labels(&fixture.path(&db)), lines);
        assert_eq!(
            (report.quads, report.terms, report.left_out, report.warnings),
            (
                expected.quads,
                expected.terms,
                expected.left_out,
                expected.warnings.clone()
            )
        );
        assert_eq!(
            prefixes(&fixture.path(&db)),
            prefixes(&fixture.path("alone"))
        );
    }
}

#[test]
fn what_is_no_request_is_answered_by_a_failure() {
    let fixture = Fixture::new();
    let place = WorkerPlace {
        files: files(),
        directory: fixture.path("worker"),
        memory_bytes: 16 << 20,
        threads: 1,
    };
    for request in [
        &b""[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"ORLW\x01",
        b"ORLW\x02\x01\0\0\0",
    ] {
        let mut answer = Vec::new();
        let error = answer_load_request(request, &place, &mut answer).unwrap_err();
        assert!(matches!(error, LoadError::WorkerRequest(_)), "{error}");
        assert!(answer.len() > 5, "it is told");
    }
}

/// Documents in one file, each with its format, its graph, and whether it is brotli data.
fn uploads(fixture: &Fixture, documents: &[(Format, Option<&str>, Vec<u8>)]) -> Vec<Source> {
    let path = fixture.path("uploaded");
    let (mut whole, mut sources) = (Vec::new(), Vec::new());
    for (number, (format, graph, bytes)) in documents.iter().enumerate() {
        let start = whole.len() as u64;
        let is_brotli = number % 2 == 1;
        match is_brotli {
            false => whole.extend_from_slice(bytes),
            true => {
                let mut encoder = brotli::CompressorWriter::new(&mut whole, 4096, 5, 20);
                encoder.write_all(bytes).unwrap();
            }
        }
        sources.push(Source::Upload(Upload {
            path: path.clone(),
            range: start..whole.len() as u64,
            is_brotli,
            name: format!("document {number}").into(),
            format: *format,
            graph: graph.map(Into::into),
            base_iri: "http://base.example/".into(),
        }));
    }
    fs::write(path, whole).unwrap();
    sources
}

#[test]
fn uploads_go_to_their_graphs_whoever_parses_them() {
    let fixture = Fixture::new();
    let lines = |text: &str| {
        let lines = text.lines().filter(|line| line.contains("<http"));
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        lines.into_bytes()
    };
    let documents = [
        (Format::NQuads, Some("urn:g1"), lines(&quads(0, 9000))),
        (Format::NQuads, None, lines(&quads(9000, 15_000))),
        (Format::Turtle, Some("urn:g2"), turtle(1).into_bytes()),
        (Format::Turtle, Some("urn:g1"), turtle(2).into_bytes()),
        (Format::Turtle, None, b"<rel> <urn:p> _:b .".to_vec()),
        (Format::NTriples, Some("urn:g2"), lines(&turtle_lines())),
        (Format::NTriples, None, Vec::new()),
    ];
    let sources = uploads(&fixture, &documents);
    for memory_bytes in MEMORY {
        let alone = format!("alone-{memory_bytes}");
        let report = fixture.alone(&alone, &sources, &options(memory_bytes));
        let quads_read = report.unwrap().quads_read;
        for read_files in [false, true] {
            let help = Help {
                read_files,
                ..SOUND
            };
            let db = format!("{alone}-{read_files}");
            let report = fixture.by_workers(&db, &sources, &options(memory_bytes), help);
            assert_eq!(report.unwrap().quads_read, quads_read);
            assert_same_files(&fixture.path(&db), &fixture.path(&alone), &db);
        }
    }
    // As files that are loaded one after the other, each with its graph.
    for (number, (format, graph, bytes)) in documents.into_iter().enumerate() {
        let file = fixture.path(&format!("file-{number}"));
        fs::write(&file, bytes).unwrap();
        let options = LoadOptions {
            format: Some(format),
            graph: graph.map(str::to_owned),
            base_iri: Some("http://base.example/".to_owned()),
            ..options(MEMORY[1])
        };
        fixture
            .alone("one by one", &[Source::File(file)], &options)
            .unwrap();
    }
    let alone = fixture.path(&format!("alone-{}", MEMORY[1]));
    assert_eq!(
        lines_without_labels(&alone),
        lines_without_labels(&fixture.path("one by one"))
    );
    // What is wrong is told with the name of its document.
    let wrong = [
        (Format::NTriples, None, Vec::new()),
        (Format::NTriples, None, b"<urn:s> .".to_vec()),
    ];
    let error = fixture.alone("wrong", &uploads(&fixture, &wrong), &options(MEMORY[1]));
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("document 1:1:"), "{error}");
}

fn turtle_lines() -> String {
    let line = |n| format!("<http://example.org/line/{n}> <urn:p> _:node{} .\n", n % 7);
    (0..3000).map(line).collect()
}
