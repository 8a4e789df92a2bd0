//! The first hour of a new user, and its messages: data that do not match their file names, an
//! empty table, a date, a file that exists already.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use tempfile::TempDir;

use crate::common::{check_failure, fail, orrery, quads, run, succeed, text};
use crate::serve::Server;

const TRIPLE: &str = "<http://x/s> <http://x/p> <http://x/o> .\n";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A database of this file.
    fn loaded(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let (file, database) = (self.file(name, content), self.path("db"));
        succeed(&["load", "--db", text(&database), text(&file)]);
        database
    }

    /// The address of a file in here.
    fn address(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_byte_order_mark_is_passed_over_in_data_and_queries() {
    let home = Home::new();
    let json = r#"{"@id": "http://x/s", "http://x/p": {"@id": "http://x/o"}}"#;
    let xml = "<?xml version=\"1.0\"?><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:x=\"http://x/\">\
               <rdf:Description rdf:about=\"http://x/s\"><x:p rdf:resource=\"http://x/o\"/></rdf:Description></rdf:RDF>";
    let files = [
        ("a.nt", TRIPLE),
        ("a.nq", TRIPLE),
        ("a.ttl", TRIPLE),
        ("a.trig", TRIPLE),
        ("a.jsonld", json),
        ("a.rdf", xml),
    ];
    let database = home.path("db");
    for (name, content) in files {
        let file = home.file(name, format!("\u{feff}{content}"));
        succeed(&["load", "--db", text(&database), text(&file)]);
        assert_eq!(quads(&database), 1, "{name}");
    }
    let query = home.file("q.rq", "\u{feff}ASK { <http://x/s> ?p ?o }");
    let answer = succeed(&["query", "--db", text(&database), "-f", text(&query)]);
    assert!(answer.contains("true"), "{answer}");
    for update in ["INSERT DATA { <http://x/s> <http://x/p> 1 }", "CLEAR ALL"] {
        let file = home.file("u.ru", format!("\u{feff}{update}"));
        succeed(&["update", "--db", text(&database), "-f", text(&file)]);
    }
    assert_eq!(quads(&database), 0);
    let sixteen = home.file("b.nt", [0xff, 0xfe, b'<', 0, b'a', 0]);
    fail(
        &["load", "--db", text(&database), text(&sixteen)],
        &["b.nt", "UTF-16", "UTF-8"],
    );
}

#[test]
fn relative_iris_are_resolved_against_the_address_of_their_file() {
    let home = Home::new();
    let database = home.loaded("some data.ttl", "<a> <#p> <> .\n");
    let dumped = succeed(&["dump", "--db", text(&database)]);
    let (here, own) = (home.address(""), home.address("some%20data.ttl"));
    assert_eq!(dumped, format!("<{here}a> <{own}#p> <{own}> .\n"));

    let json = home.file("more.jsonld", r#"{"@id": "a", "http://x/p": {"@id": "b"}}"#);
    succeed(&["load", "--db", text(&database), text(&json)]);
    // Queries and updates stand in files, too.
    let query = home.file("q.rq", "ASK { <a> <http://x/p> <b> }");
    let ask = |more: &[&str]| {
        let arguments = ["query", "--db", text(&database), "--format", "csv", "-f"];
        let mut arguments = arguments.to_vec();
        arguments.push(text(&query));
        arguments.extend(more);
        succeed(&arguments).trim().to_owned()
    };
    assert_eq!(ask(&[]), "true");
    assert_eq!(ask(&["--base", "http://elsewhere/"]), "false");
    let update = home.file("u.ru", "DELETE { <a> ?p ?o } WHERE { <a> ?p ?o }");
    let report = succeed(&["update", "--db", text(&database), "-f", text(&update)]);
    assert_eq!(report, "commit 3: 0 quads added, 2 removed\n");
    let stdin = orrery()
        .args(["load", "--format", "ttl", "--db", text(&database), "-"])
        .stdin(fs::File::open(home.path("some data.ttl")).unwrap())
        .output()
        .unwrap();
    check_failure(&stdin, &["standard input:1:", "--base"]);
}

#[test]
fn relative_iris_over_http_are_resolved_against_graph_and_request() {
    let home = Home::new();
    let database = home.loaded("a.nt", TRIPLE);
    let data = home.file("b.ttl", "<a> <http://x/q> <b> .\n");
    let server = Server::start(text(&database));
    let url = format!("http://{}", server.address);
    // With a length and without one, which goes through the bulk loader.
    let load = |more: &[&str]| {
        let mut arguments = vec!["load", "--server", &url, text(&data)];
        arguments.extend(more);
        succeed(&arguments)
    };
    load(&["--graph", "http://g/dir/graph"]);
    load(&[]);
    let update = "INSERT DATA { <c> <http://x/q> <d> }";
    succeed(&["update", "--server", &url, update]);
    drop(server);
    let mut dumped: Vec<String> = succeed(&["dump", "--db", text(&database)])
        .lines()
        .filter(|line| line.contains("http://x/q"))
        .map(str::to_owned)
        .collect();
    dumped.sort_unstable();
    let mut expected = vec![
        format!("<{url}/a> <http://x/q> <{url}/b> ."),
        format!("<{url}/c> <http://x/q> <{url}/d> ."),
        "<http://g/dir/a> <http://x/q> <http://g/dir/b> <http://g/dir/graph> .".to_owned(),
    ];
    expected.sort_unstable();
    assert_eq!(dumped, expected);
}

#[test]
fn what_json_ld_leaves_out_is_told() {
    let home = Home::new();
    let json = r#"{"@id": "http://x/s", "name": "x", "http://x/p": {"@id": "http://x/o"}}"#;
    let (file, database) = (home.file("a.jsonld", json), home.path("db"));
    let load = [
        "load",
        "--report",
        "json",
        "--db",
        text(&database),
        text(&file),
    ];
    let output = run(&load);
    assert!(output.status.success(), "{}", said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["quads"], &report["left_out"]),
        (&1.into(), &1.into())
    );
    let warning = said(&output);
    assert!(
        warning.contains("a.jsonld: 1 statement was left out"),
        "{warning}"
    );
    assert!(warning.contains("'name'"), "{warning}");

    let server = Server::start(text(&database));
    let url = format!("http://{}", server.address);
    let answer = succeed(&["load", "--server", &url, text(&file)]);
    assert!(
        answer.contains("the request's body: 1 statement was left out"),
        "{answer}"
    );
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_told_by_its_looks() {
    let home = Home::new();
    let database = home.path("db");
    let mut tar = vec![0; 1024];
    tar[..4].copy_from_slice(b"a.nt");
    tar[257..262].copy_from_slice(b"ustar");
    let xml = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>\n";
    let files: &[(&str, &[u8], &[&str])] = &[
        ("a.nt", &tar, &["a.nt", "tar archive", "unpack it"]),
        ("b.ttl", &tar, &["b.ttl", "tar archive"]),
        (
            "c.ttl",
            xml.as_bytes(),
            &["c.ttl:1", "looks like RDF/XML", "--format rdf"],
        ),
        (
            "d.rdf",
            TRIPLE.as_bytes(),
            &["d.rdf:1", "looks like N-Triples", "--format nt"],
        ),
        (
            "e.jsonld",
            TRIPLE.as_bytes(),
            &["e.jsonld", "looks like N-Triples"],
        ),
        (
            "f.nt",
            b"@prefix x: <http://x/> .\nx:s x:p x:o .\n",
            &["f.nt:1", "looks like Turtle", "--format ttl"],
        ),
        (
            "g.ttl",
            b"{\"@id\": \"http://x/s\"}",
            &["g.ttl:1", "looks like JSON-LD"],
        ),
        (
            "h.ttl",
            b"<!DOCTYPE html>\n<html></html>",
            &["h.ttl", "web page"],
        ),
        ("data.tar", &tar, &["data.tar", "tar archive", "unpack it"]),
        (
            "j.txt",
            TRIPLE.as_bytes(),
            &["j.txt", "format is unknown", "--format nt"],
        ),
        // What is only wrong is not called something else.
        (
            "i.ttl",
            b"<http://x/s> <http://x/p> nothing .",
            &["i.ttl:1", "correct it"],
        ),
    ];
    for (name, content, parts) in files {
        let file = home.file(name, content);
        fail(&["load", "--db", text(&database), text(&file)], parts);
    }
    for (name, format) in [("c.ttl", "rdf"), ("d.rdf", "nt")] {
        let file = home.path(name);
        succeed(&[
            "load",
            "--db",
            text(&database),
            "--format",
            format,
            text(&file),
        ]);
    }
    assert_eq!(quads(&database), 1);
}

#[test]
fn a_directory_is_loaded_with_all_below_it_when_asked() {
    let home = Home::new();
    let line = |number: u32| format!("<http://x/{number}> <http://x/p> <http://x/o> .\n");
    home.file("data/b.nt", line(1));
    home.file("data/sub/a.ttl", line(2));
    home.file("data/sub/notes.txt", "no RDF");
    home.file("data/.hidden.nt", "no RDF");
    let (data, database) = (home.path("data"), home.path("db"));
    let load = ["load", "--db", text(&database), text(&data)];
    fail(&load, &["data", "directory", "--recursive"]);
    let output = run(&[&load[..], &["--recursive"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("1 file passed over"),
        "{}",
        said(&output)
    );
    assert_eq!(quads(&database), 2);
    let empty = home.path("data/none");
    fs::create_dir(&empty).unwrap();
    fail(
        &["load", "--recursive", "--db", text(&database), text(&empty)],
        &["no file of RDF below", "none"],
    );
}

#[test]
fn a_load_that_brings_nothing_new_is_no_commit_and_keeps_old_states() {
    let home = Home::new();
    let data = home.file("a.nt", TRIPLE);
    let database = home.path("db");
    let database = text(&database);
    succeed(&[
        "update",
        "--db",
        database,
        "INSERT DATA { <http://x/s> <http://x/p> 1 }",
    ]);
    succeed(&["load", "--db", database, text(&data)]);
    succeed(&[
        "update",
        "--db",
        database,
        "INSERT DATA { <http://x/s> <http://x/p> 2 }",
    ]);
    let count = |at: &str| {
        let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
        let answer = succeed(&[
            "query", "--db", database, "--format", "csv", "--at", at, query,
        ]);
        answer.lines().nth(1).unwrap().trim().to_owned()
    };
    let log = succeed(&["log", "--db", database]);
    for _ in 0..3 {
        let report = succeed(&["load", "--db", database, text(&data)]);
        assert!(
            report.contains("0 quads added, 1 duplicate left out"),
            "{report}"
        );
        assert!(report.contains("the last commit is still 3"), "{report}");
    }
    let update = "INSERT DATA { <http://x/s> <http://x/p> 2 }";
    let report = succeed(&["update", "--db", database, update]);
    assert_eq!(report, "nothing was changed, the last commit is still 3\n");
    assert_eq!(succeed(&["log", "--db", database]), log);
    assert_eq!([count("2"), count("3")], ["2", "3"]);

    // Through a server, where a body without a length is loaded in bulk.
    let server = Server::start(database);
    let url = format!("http://{}", server.address);
    for _ in 0..3 {
        let report = succeed(&["load", "--server", &url, text(&data)]);
        assert!(
            report.contains(r#"{"added":0,"commit":3,"removed":0}"#),
            "{report}"
        );
    }
    let output = run(&["update", "--server", &url, update]);
    assert!(
        said(&output).contains("nothing was changed"),
        "{}",
        said(&output)
    );
    drop(server);
    assert_eq!(succeed(&["log", "--db", database]), log);
    assert_eq!([count("2"), count("3")], ["2", "3"]);
    succeed(&["verify", "--db", database]);
    let segments = fs::read_dir(database).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("segment-")
    });
    assert_eq!(segments.count(), 1, "what was written for nothing is gone");
}

#[test]
fn an_empty_table_of_data_in_named_graphs_is_explained() {
    let home = Home::new();
    let quad = "<http://x/s> <http://x/p> <http://x/o> <http://x/g> .\n";
    let database = home.loaded("a.nq", quad);
    let ask = |query: &str, more: &[&str]| {
        let mut arguments = vec!["query", "--db", text(&database)];
        arguments.extend(more);
        arguments.push(query);
        let output = run(&arguments);
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let readme = "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n)";
    for query in [
        readme,
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "ASK { ?s ?p ?o }",
        "CONSTRUCT WHERE { ?s ?p ?o }",
    ] {
        let note = ask(query, &[]);
        assert!(note.contains("the only quad is in named graphs"), "{note}");
        assert!(
            note.contains("GRAPH ?g {") && note.contains("--union-default-graph"),
            "{note}"
        );
    }
    assert_eq!(ask(readme, &["--union-default-graph"]), "");
    for (query, told) in [
        (
            "SELECT * { GRAPH ?g { ?s ?p <http://x/other> } }",
            "note: nothing matches the pattern ?s ?p <http://x/other>: no statement has the object <http://x/other>\n",
        ),
        (
            "SELECT * FROM <http://x/other> { ?s ?p ?o }",
            "note: nothing matches the pattern ?s ?p ?o\n",
        ),
        ("SELECT (1 AS ?one) {}", ""),
        ("ASK {}", ""),
    ] {
        assert_eq!(ask(query, &[]), told, "{query}");
    }
    let update = "INSERT DATA { <http://x/s> <http://x/p> 1 }";
    succeed(&["update", "--db", text(&database), update]);
    let none = ask("SELECT * { ?s <http://x/none> ?o }", &[]);
    assert!(
        none.contains("no statement has the predicate <http://x/none>"),
        "{none}"
    );
    assert!(!none.contains("named graphs"), "{none}");
}

#[test]
fn a_date_selects_the_state_at_the_end_of_that_day() {
    let home = Home::new();
    let database = home.loaded("a.nt", TRIPLE);
    let at = |at: &str| {
        run(&[
            "query",
            "--db",
            text(&database),
            "--at",
            at,
            "ASK { ?s ?p ?o }",
        ])
    };
    // The end of a day to come is now; a day long ago had nothing.
    for fine in ["2999-12-31", "2999-12-31T10:00", "2999-12-31 10:00:00"] {
        let output = at(fine);
        assert!(output.status.success(), "{fine}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("true"));
    }
    check_failure(&at("1980-01-01"), &["no state that is that old"]);
    let wrong = at("2026-02-30");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("a date such as"), "{}", said(&wrong));
    let listen = run(&["serve", "--db", text(&database), "--listen", "17777"]);
    assert_eq!(listen.status.code(), Some(2));
    assert!(
        said(&listen).contains("HOST:PORT, such as 127.0.0.1:17777"),
        "{}",
        said(&listen)
    );
}

#[test]
fn a_canonical_dump_has_small_language_tags_wherever_they_stand() {
    let home = Home::new();
    let long = "x".repeat(2 << 20);
    let data = format!(
        "<http://e/a> <http://e/p> \"x\"@en-GB .\n\
         <http://e/b> <http://e/p> <<( <http://e/s> <http://e/p> \"y\\t\"@DE--ltr )>> .\n\
         <http://e/c> <http://e/p> \"{long}\"@EN-US .\n\
         <http://e/d> <http://e/p> \"@EN-GB\"^^<http://e/EN-GB> .\n"
    );
    let database = home.loaded("tags.nt", &data);
    let dump = ["dump", "--db", text(&database)];
    assert_eq!(succeed(&dump), data, "as they were written");
    let small = data
        .replace("@en-GB", "@en-gb")
        .replace("@DE--ltr", "@de--ltr")
        .replace("@EN-US", "@en-us");
    for format in ["nq", "nt"] {
        let canonical = [&dump[..], &["--canonical", "--format", format]].concat();
        assert!(succeed(&canonical) == small, "{format}");
    }
    let turtle = [&dump[..], &["--canonical", "--format", "turtle"]].concat();
    fail(&turtle, &["no canonical form", "nq or nt"]);
}

#[test]
fn a_dump_overwrites_only_when_asked() {
    let home = Home::new();
    let database = home.loaded("a.nt", TRIPLE);
    let precious = home.file("precious.nq", "precious");
    let dump = ["dump", "--db", text(&database), "-o", text(&precious)];
    fail(&dump, &["precious.nq is there already", "--force"]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    succeed(&[&dump[..], &["--force"]].concat());
    assert_eq!(fs::read_to_string(&precious).unwrap(), TRIPLE);
    succeed(&["dump", "--db", text(&database), "-o", "/dev/null"]);
}

#[test]
fn messages_have_words_and_units_and_no_numbers_of_the_system() {
    let home = Home::new();
    let database = home.loaded("a.nt", TRIPLE);
    let directory = text(home.0.path());
    let output = run(&["query", "--db", text(&database), "-f", directory]);
    check_failure(&output, &["it is a directory; name a file"]);
    assert!(!said(&output).contains("os error"), "{}", said(&output));
    let report = succeed(&[
        "load",
        "--db",
        text(&home.path("other")),
        text(&home.path("a.nt")),
    ]);
    assert!(report.starts_with("1 statement in "), "{report}");
    assert!(
        report.contains("1 quad added, 0 duplicates left out"),
        "{report}"
    );

    let mut many = String::new();
    for number in 0..300_000 {
        many += &format!("<http://x/{number}> <http://x/p> \"the text of number {number}\" .\n");
    }
    let many = home.file("many.nt", many);
    succeed(&["load", "--db", text(&database), text(&many)]);
    let query =
        "SELECT (COUNT(DISTINCT ?t) AS ?n) { ?s ?p ?o BIND(CONCAT(STR(?o), STR(?s)) AS ?t) }";
    let output = run(&["query", "--db", text(&database), "--memory", "2M", query]);
    check_failure(
        &output,
        &[
            "more than --memory (2 MiB) allows",
            "more needed for",
            "raise --memory",
        ],
    );
    for part in ["allocate", "reservation", "Exec", "Stream", "bytes"] {
        assert!(!said(&output).contains(part), "{part}: {}", said(&output));
    }
}
