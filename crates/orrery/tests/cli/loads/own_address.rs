//! Relative IRIs of a file are resolved against the file's own address, whatever its name and
//! format.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::common::{check_failure, fail, orrery, succeed, text};

/// All IRIs of a database that begin with `file:`, in order, without the address of `directory`.
fn own_iris(database: &Path, directory: &Path) -> Vec<String> {
    let all = succeed(&[
        "query",
        "--db",
        text(database),
        "--format",
        "csv",
        "SELECT ?t { { ?t ?p ?o } UNION { ?s ?p ?t } UNION { GRAPH ?g { ?t ?p ?o } } } ORDER BY ?t",
    ]);
    let address = address_of(directory);
    all.lines()
        .filter_map(|line| line.strip_prefix(&address).map(str::to_owned))
        .collect()
}

/// As RFC 3986 writes it, made here by other means than the loader's.
fn address_of(directory: &Path) -> String {
    let mut address = "file://".to_owned();
    for byte in directory.to_str().unwrap().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address + "/"
}

#[test]
fn a_file_of_any_format_is_the_base_of_its_iris() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("mit Leerzeichen & Übung #1");
    fs::create_dir(&directory).unwrap();
    let xml = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"a:\">\n\
               <rdf:Description rdf:about=\"s\"><e:p rdf:resource=\"#o\"/></rdf:Description>\n</rdf:RDF>\n";
    let cases: [(&str, &str); 4] = [
        ("größe 1.ttl", "<s> <a:p> <#o> .\n"),
        ("größe 2.trig", "<s> <a:p> <#o> .\n"),
        ("größe 3.rdf", xml),
        (
            "größe 4.jsonld",
            "{\"@id\": \"s\", \"a:p\": {\"@id\": \"#o\"}}\n",
        ),
    ];
    for (name, content) in cases {
        let plain = directory.join(name);
        fs::write(&plain, content).unwrap();
        let packed = directory.join(format!("{name}.gz"));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(content.as_bytes()).unwrap();
        fs::write(&packed, gzip.finish().unwrap()).unwrap();
        for file in [plain, packed] {
            let database = home.path().join("db");
            succeed(&["load", "--db", text(&database), text(&file)]);
            let own = address_of(&file);
            let own = own.trim_end_matches('/').rsplit('/').next().unwrap();
            assert_eq!(
                own_iris(&database, &directory),
                [format!("{own}#o"), "s".to_owned()],
                "{name}"
            );
            let base = "http://example.org/base/";
            fs::remove_dir_all(&database).unwrap();
            succeed(&["load", "--db", text(&database), "--base", base, text(&file)]);
            let found = succeed(&[
                "query",
                "--db",
                text(&database),
                "--format",
                "csv",
                "SELECT * { ?s ?p ?o }",
            ]);
            assert!(found.contains("http://example.org/base/s,a:p,"), "{found}");
            fs::remove_dir_all(&database).unwrap();
        }
    }
}

#[test]
fn texts_of_queries_and_updates_have_their_own_addresses_too() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("Größen und mehr");
    fs::create_dir(&directory).unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let database = home.path().join("db");
    let database = text(&database);
    let update = file("än derung.ru", "INSERT DATA { <s> <a:p> <#o> }");
    succeed(&["update", "--db", database, "-f", text(&update)]);
    let query = file("fra ge.rq", "SELECT ?o { <s> <a:p> ?o }");
    let found = succeed(&[
        "query",
        "--db",
        database,
        "--format",
        "csv",
        "-f",
        text(&query),
    ]);
    assert_eq!(
        found.lines().nth(1).unwrap(),
        format!("{}%C3%A4n%20derung.ru#o", address_of(&directory))
    );
    let other = "http://example.org/";
    let found = succeed(&[
        "query",
        "--db",
        database,
        "--base",
        other,
        "--format",
        "csv",
        "-f",
        text(&query),
    ]);
    assert_eq!(found.lines().count(), 1, "{found}");
    // A text of the command line has no address.
    fail(
        &["query", "--db", database, "SELECT ?o { <s> <a:p> ?o }"],
        &[],
    );
}

#[test]
fn standard_input_has_no_address_and_the_message_says_what_gives_one() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let mut load = orrery();
    load.args(["load", "--db", text(&database), "--format", "ttl", "-"]);
    let mut child = load
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"<s> <a:p> <a:o> .\n").unwrap();
    drop(input);
    check_failure(
        &child.wait_with_output().unwrap(),
        &["<s> is a relative IRI, and there is no base", "--base"],
    );
}
