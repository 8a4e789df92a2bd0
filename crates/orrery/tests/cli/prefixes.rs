//! Prefixes that need no declaration (the well-known ones, those of loaded files, those given as
//! options), and results that are written with them.

use std::fs;
use std::path::Path;

use crate::common::{fail, orrery, quads, succeed, text};
use crate::serve::Server;

const TURTLE: &str = "@prefix ex: <http://example.org/> .\n@prefix schema: <https://schema.org/> .\n\
                      ex:alice a foaf:Person ; ex:knows ex:bob ; schema:name \"Alice\" .\n";

fn loaded(home: &Path) -> std::path::PathBuf {
    let database = home.join("db");
    let file = home.join("people.ttl");
    let declared = format!("@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n{TURTLE}");
    fs::write(&file, declared).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    database
}

fn csv(database: &Path, query: &str) -> Vec<String> {
    let answer = succeed(&["query", "--db", text(database), "--format", "csv", query]);
    answer.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn well_known_prefixes_and_those_of_loaded_files_need_no_declaration() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    let query = "SELECT ?s { ?s rdf:type foaf:Person ; ex:knows ex:bob }";
    assert_eq!(csv(&database, query), ["http://example.org/alice"]);
    // A file never changes what is well known.
    assert!(csv(&database, "SELECT ?s { ?s schema:name ?n }").is_empty());
    // What the text declares wins.
    let other = format!("PREFIX ex: <http://other.org/> {query}");
    assert!(csv(&database, &other).is_empty());
    let update = "INSERT DATA { ex:bob a foaf:Person } ; DELETE WHERE { ex:alice ex:knows ?o }";
    succeed(&["update", "--db", text(&database), update]);
    assert_eq!(csv(&database, "SELECT ?s { ?s a foaf:Person }").len(), 2);
    for command in ["query", "update"] {
        let text_of = match command {
            "query" => query,
            _ => "INSERT DATA { ex:bob a foaf:Agent }",
        };
        let strict = [
            command,
            "--strict-prefixes",
            "--db",
            text(&database),
            text_of,
        ];
        fail(&strict, &["line 1"]);
    }
}

#[test]
fn results_for_people_are_written_with_prefixes_and_turtle_declares_what_it_uses() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    let ask = |format: &str, query: &str| {
        succeed(&["query", "--db", text(&database), "--format", format, query])
    };
    let table = ask("table", "SELECT ?s ?t { ?s a ?t }");
    assert!(table.contains("ex:alice  foaf:Person"), "{table}");
    let turtle = ask("turtle", "CONSTRUCT WHERE { ?s ex:knows ?o }");
    assert_eq!(
        turtle,
        "@prefix ex: <http://example.org/> .\nex:alice ex:knows ex:bob .\n"
    );
    // What programs read is written in full.
    let tsv = ask("tsv", "SELECT ?s { ?s ex:knows ?o }");
    assert_eq!(tsv, "?s\n<http://example.org/alice>\n");
    let dump = succeed(&["dump", "--db", text(&database), "--format", "trig"]);
    let again = home.path().join("again.trig");
    fs::write(&again, dump).unwrap();
    let copy = home.path().join("copy");
    succeed(&["load", "--db", text(&copy), text(&again)]);
    let all = |database: &Path| succeed(&["dump", "--db", text(database)]);
    assert_eq!(all(&copy), all(&database));
}

#[test]
fn prefixes_are_given_listed_and_removed_and_stay_through_all_that_a_database_goes_through() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    let db = text(&database);
    let listed = || succeed(&["prefix", "list", "--db", db]);
    let given = succeed(&["prefix", "add", "--db", db, "my:", "http://my.org/"]);
    assert_eq!(given, "my: is now <http://my.org/> (commit 2)\n");
    fail(
        &["prefix", "add", "--db", db, "ex", "http://other.org/"],
        &["http://example.org/", "loaded", "--replace"],
    );
    fail(
        &["prefix", "add", "--db", db, "1", "http://other.org/"],
        &["'1'"],
    );
    fail(
        &["prefix", "add", "--db", db, "x", "relative"],
        &["'relative'"],
    );
    fail(&["prefix", "remove", "--db", db, "foaf"], &["everywhere"]);
    let same = succeed(&["prefix", "add", "--db", db, "my", "http://my.org/"]);
    assert!(same.contains("nothing was changed"), "{same}");
    succeed(&[
        "prefix",
        "add",
        "--replace",
        "--db",
        db,
        "schema",
        "https://schema.org/",
    ]);
    assert_eq!(csv(&database, "SELECT ?n { ?s schema:name ?n }"), ["Alice"]);

    let expect = |place: &str| {
        let all = listed();
        let lines: Vec<Vec<&str>> = all
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        for line in [
            ["ex:", "<http://example.org/>", "loaded"],
            ["my:", "<http://my.org/>", "given"],
            ["schema:", "<https://schema.org/>", "given"],
        ] {
            assert!(lines.iter().any(|found| found == &line), "{place}: {all}");
        }
        assert!(lines.contains(&vec![
            "sh:",
            "<http://www.w3.org/ns/shacl#>",
            "well",
            "known"
        ]));
    };
    expect("in the log");
    let data = "INSERT DATA { my:a my:b my:c }";
    succeed(&["update", "--db", db, data]);
    expect("after an update");
    succeed(&["compact", "--db", db]);
    expect("after a compaction");
    let file = home.path().join("more.nt");
    fs::write(&file, "<a:a> <a:b> <a:c> .\n").unwrap();
    succeed(&["load", "--db", db, text(&file)]);
    expect("after a load");
    let backup = home.path().join("backup");
    succeed(&["prefix", "add", "--db", db, "late", "http://late.org/"]);
    succeed(&["backup", "--db", db, "--to", text(&backup)]);
    let restored = home.path().join("restored");
    succeed(&["restore", "--from", text(&backup), "--db", text(&restored)]);
    let of_restored = succeed(&["prefix", "list", "--db", text(&restored)]);
    assert_eq!(of_restored, listed());
    assert!(of_restored.contains("late:"));
    succeed(&["verify", "--db", db]);

    let removed = succeed(&["prefix", "remove", "--db", db, "my"]);
    assert!(removed.starts_with("my: is removed (commit "), "{removed}");
    fail(
        &["query", "--db", db, "SELECT * { my:a ?p ?o }"],
        &["line 1"],
    );
    let removed = succeed(&["prefix", "remove", "--db", db, "schema"]);
    assert!(
        removed.starts_with("schema: is <http://schema.org/> again (commit "),
        "{removed}"
    );
    assert!(listed().contains("<http://schema.org/>"));
}

#[test]
fn a_served_database_takes_prefixes_that_survive_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let database = loaded(home.path());
    let before = quads(&database);
    {
        let server = Server::start(text(&database));
        let url = format!("http://{}", server.address);
        let given = succeed(&["prefix", "add", "--server", &url, "my", "http://my.org/"]);
        assert_eq!(given, "my: is now <http://my.org/> (commit 2)\n");
        fail(
            &["prefix", "add", "--server", &url, "my", "http://other.org/"],
            &["422", "replace=true"],
        );
        let of_server = succeed(&["prefix", "list", "--server", &url]);
        assert!(of_server.contains("<http://my.org/>"), "{of_server}");
        // A Turtle file that is loaded through the server brings its own.
        let file = home.path().join("more.ttl");
        fs::write(
            &file,
            "@prefix more: <http://more.org/> .\nmore:a more:b more:c .\n",
        )
        .unwrap();
        succeed(&["load", "--server", &url, text(&file)]);
        let answer =
            server.get("/sparql?query=SELECT%20%3Fo%20%7B%20more%3Aa%20more%3Ab%20%3Fo%20%7D");
        assert!(answer.contains("http://more.org/c"), "{answer}");
        // Killed when it goes out of scope.
    }
    let listed = succeed(&["prefix", "list", "--db", text(&database)]);
    assert!(
        listed.contains("my:") && listed.contains("more:"),
        "{listed}"
    );
    assert_eq!(quads(&database), before + 1);
    let output = orrery()
        .args([
            "prefix",
            "list",
            "--format",
            "json",
            "--db",
            text(&database),
        ])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = orrery_term::prefixes::WELL_KNOWN.len() + 3;
    assert_eq!(json["prefixes"].as_array().unwrap().len(), expected);
}
