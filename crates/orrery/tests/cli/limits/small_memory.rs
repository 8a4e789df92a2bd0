//! A server with the least memory that it accepts, and with twice as much: all common work, one
//! thing after the other, with the right results.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::{succeed, text};
use crate::serve::Server;

/// Texts of the base, and of each change.
const TEXTS: usize = 20_000;
const CHANGED: usize = 1_000;
/// The most bytes of index per text; with a part for each text, it would be ten thousand and more.
const BYTES_PER_TEXT_MAX: u64 = 2_000;

fn triple(number: usize) -> String {
    format!(
        "<http://e/s{number}> <http://e/label> \"the word{} of an old wine, and another{}, number {number}\"@en ; <http://e/n> {} .\n",
        number % 3_000,
        number * 7,
        number % 100
    )
}

fn post(server: &Server, target: &str, content_type: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nAccept: text/csv, */*;q=0.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{target}: {answer}");
    answer
}

fn count(server: &Server, pattern: &str) -> usize {
    let query = format!("SELECT (COUNT(*) AS ?total) {{ {pattern} }}");
    let answer = post(server, "/sparql", "application/sparql-query", &query);
    // Behind the name of the column; the answer may come in chunks.
    let lines = answer.lines().map(str::trim);
    let value = lines.skip_while(|line| *line != "total").nth(1);
    value.and_then(|value| value.parse().ok()).expect(&answer)
}

/// Searches, filters by trigrams, and counts, of so many texts.
fn look(server: &Server, texts: usize) {
    let search = |words: &str| {
        format!(
            "SERVICE text:search {{ [] text:query \"{words}\" ; text:entity ?s ; text:literal ?l }}"
        )
    };
    assert_eq!(count(server, &search("wine")), texts);
    assert_eq!(count(server, &search("another7007")), 1);
    assert_eq!(
        count(
            server,
            "?s <http://e/label> ?l FILTER(CONTAINS(?l, \"another7007,\"))"
        ),
        1
    );
    assert_eq!(count(server, "?s <http://e/n> 7"), texts / 100);
    assert_eq!(
        count(
            server,
            "SELECT ?n (COUNT(*) AS ?c) { ?s <http://e/n> ?n ; <http://e/label> ?l } GROUP BY ?n ORDER BY ?c"
        ),
        100
    );
}

fn indexed(answer: &str) -> serde_json::Value {
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let body = &body[body.find('{').unwrap()..=body.rfind('}').unwrap()];
    let listed: serde_json::Value = serde_json::from_str(body).unwrap();
    listed["index"].clone()
}

fn used_with(memory: &str) {
    let home = tempfile::tempdir().unwrap();
    let (database, data) = (home.path().join("db"), home.path().join("1.ttl"));
    std::fs::write(&data, (0..TEXTS).map(triple).collect::<String>()).unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start_with(text(&database), &["--memory", memory]);
    let index = indexed(&post(&server, "/text?grams=true", "text/plain", ""));
    assert_eq!(index["texts"], TEXTS);
    let bytes = index["bytes"].as_u64().unwrap();
    assert!(
        bytes < BYTES_PER_TEXT_MAX * TEXTS as u64,
        "{memory}: {bytes} bytes"
    );
    look(&server, TEXTS);
    let mut texts = TEXTS;
    for round in 0..12 {
        let mut update = String::from("INSERT DATA {");
        (texts..texts + CHANGED).for_each(|number| update.write_str(&triple(number)).unwrap());
        update += "}";
        post(&server, "/sparql", "application/sparql-update", &update);
        texts += CHANGED;
        look(&server, texts);
        if round % 4 == 3 {
            post(&server, "/compact", "text/plain", "");
            look(&server, texts);
            succeed(&["verify", "--db", text(&database)]);
        }
    }
    let index = indexed(&post(&server, "/text?rebuild=true", "text/plain", ""));
    assert_eq!(index["texts"], texts);
    assert_eq!(index["texts_since"], 0);
    post(&server, "/sparql", "application/sparql-update", "CLEAR ALL");
    assert_eq!(count(&server, "?s ?p ?o"), 0);
    succeed(&["verify", "--db", text(&database)]);
}

#[test]
fn the_least_memory_is_enough_for_loads_texts_changes_compactions_and_verification() {
    used_with("256M");
}

#[test]
fn twice_the_least_memory_is_enough_for_all_of_it_as_well() {
    used_with("512M");
}
