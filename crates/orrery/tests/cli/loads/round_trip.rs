//! What is loaded comes out again: every format, compressed or not, several files,
//! standard input, graphs, adding to a database.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{orrery, quads, succeed, text};

const TRIPLES: &str = r#"<http://e/s> <http://e/p> <http://e/o> .
<http://e/s> <http://e/p> "plain \"quoted\" \\ text\n" .
<http://e/s> <http://e/p> "héllo"@en-gb .
<http://e/s> <http://e/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/s> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://e/s> <http://e/q> "2020-02-29"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://e/t> <http://e/q> "-0.0"^^<http://www.w3.org/2001/XMLSchema#double> .
"#;

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn dump(database: &Path) -> BTreeSet<String> {
    let dumped = succeed(&["dump", "--db", text(database)]);
    let set = lines(&dumped);
    assert_eq!(set.len(), dumped.lines().count(), "no quad twice");
    set
}

/// The same triples, written by our own serializers in each format, load to the same set.
#[test]
fn every_format_loads_to_the_same_set() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let source = path("source.nt");
    fs::write(&source, TRIPLES).unwrap();
    let database = path("source-db");
    succeed(&["load", "--db", text(&database), text(&source)]);
    assert_eq!(dump(&database), lines(TRIPLES));

    for (format, extension) in [
        ("turtle", "ttl"),
        ("nt", "nt"),
        ("rdf", "rdf"),
        ("jsonld", "jsonld"),
    ] {
        let graph = succeed(&[
            "query",
            "--db",
            text(&database),
            "--format",
            format,
            "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        ]);
        let file = path(&format!("copy.{extension}"));
        fs::write(&file, graph).unwrap();
        let copy = path(&format!("copy-{extension}"));
        succeed(&["load", "--db", text(&copy), text(&file)]);
        assert_eq!(dump(&copy), lines(TRIPLES), "{format}");
    }
    for (format, extension) in [("nq", "nq"), ("trig", "trig")] {
        let file = path(&format!("dump.{extension}"));
        succeed(&[
            "dump",
            "--format",
            format,
            "-o",
            text(&file),
            "--db",
            text(&database),
        ]);
        let copy = path(&format!("dump-{extension}"));
        succeed(&["load", "--db", text(&copy), text(&file)]);
        assert_eq!(dump(&copy), lines(TRIPLES), "{format}");
    }
}

#[test]
fn compressed_files_load_in_parallel_and_duplicates_go() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let mut files = Vec::new();
    let mut expected = BTreeSet::new();
    for file in 0..4 {
        let mut content = String::new();
        for row in 0..3000 {
            // Every file shares half of its triples with the next one.
            let subject = file * 1500 + row;
            let line = format!("<http://e/{subject}> <http://e/p> \"value {subject}\" .\n");
            expected.insert(line.trim_end().to_owned());
            content.push_str(&line);
        }
        let name = path(&format!(
            "part{file}.nt{}",
            if file % 2 == 0 { ".gz" } else { "" }
        ));
        if file % 2 == 0 {
            // Two members, as `cat a.gz b.gz` makes.
            let half = content.len() / 2;
            let mut bytes = Vec::new();
            for part in [&content[..half], &content[half..]] {
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(part.as_bytes()).unwrap();
                bytes.extend(gzip.finish().unwrap());
            }
            fs::write(&name, bytes).unwrap();
        } else {
            fs::write(&name, content).unwrap();
        }
        files.push(name);
    }
    let database = path("db");
    let mut arguments = vec!["load", "--db", text(&database)];
    arguments.extend(files.iter().map(|file| text(file)));
    succeed(&arguments);
    assert_eq!(dump(&database), expected);
}

#[test]
fn standard_input_and_graph() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let mut child = orrery()
        .args([
            "load",
            "--format",
            "nt",
            "--graph",
            "http://e/g",
            "--db",
            text(&database),
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(TRIPLES.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let expected: BTreeSet<String> = TRIPLES
        .lines()
        .map(|line| format!("{}<http://e/g> .", line.strip_suffix('.').unwrap()))
        .collect();
    assert_eq!(dump(&database), expected);
    let answer = succeed(&[
        "query",
        "--db",
        text(&database),
        "--format",
        "csv",
        "SELECT ?g { GRAPH ?g {} }",
    ]);
    assert_eq!(answer.replace('\r', ""), "g\nhttp://e/g\n");
}

#[test]
fn a_second_load_adds_and_renumbers_nothing_wrongly() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let database = path("db");
    let mut expected = BTreeSet::new();
    for round in 0..5 {
        let mut content = String::new();
        for row in 0..500 {
            let line = format!(
                "<http://e/{}> <http://e/p{}> \"text {:05}\" {}.",
                (row * 7 + round) % 1000,
                row % 3,
                (row * 31 + round * 17) % 2000,
                if round % 2 == 1 { "<http://e/g> " } else { "" }
            );
            content.push_str(&line);
            content.push('\n');
            expected.insert(line);
        }
        let file = path(&format!("{round}.nq"));
        fs::write(&file, content).unwrap();
        succeed(&["load", "--db", text(&database), text(&file)]);
        assert_eq!(dump(&database), expected, "after round {round}");
        succeed(&["verify", "--db", text(&database)]);
    }
    assert_eq!(quads(&database), expected.len() as u64);
}

#[test]
fn blank_nodes_of_different_loads_stay_apart() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let file = home.path().join("data.nt");
    fs::write(&file, "_:a <http://e/p> _:b .\n_:b <http://e/p> _:a .\n").unwrap();
    for load in 1..=3 {
        succeed(&["load", "--db", text(&database), text(&file)]);
        assert_eq!(quads(&database), load * 2);
    }
    let answer = succeed(&[
        "query",
        "--db",
        text(&database),
        "--format",
        "csv",
        "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s <http://e/p>/<http://e/p> ?s }",
    ]);
    assert_eq!(answer.replace('\r', ""), "n\n6\n");
}

/// Literals of some megabytes pass through load and dump in pieces, and come out to the letter.
#[test]
fn long_literals_come_out_of_a_dump_as_they_went_in() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let body = "héllo \\\"quoted\\\" \\\\ 中 text\\n".repeat(100_000);
    let texts = ["", "@en", "^^<http://e/type>"]
        .map(|kind| format!("<http://e/s> <http://e/p> \"{body}\"{kind} <http://e/g> .\n"));
    let all = texts.concat();
    let source = path("source.nq");
    fs::write(&source, &all).unwrap();
    let database = path("db");
    succeed(&["load", "--db", text(&database), text(&source)]);
    assert!(dump(&database) == lines(&all));
    let trig = path("dump.trig");
    let dumped = succeed(&["dump", "--db", text(&database), "--format", "trig"]);
    fs::write(&trig, dumped).unwrap();
    let copy = path("copy");
    succeed(&["load", "--db", text(&copy), text(&trig)]);
    assert!(dump(&copy) == lines(&all));
}
