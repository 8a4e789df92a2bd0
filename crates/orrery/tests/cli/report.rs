//! `orrery report usage` over the log that `orrery serve --query-log` has written.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::{fail, run, succeed, text};
use crate::serve::Server;

#[test]
fn what_a_server_was_asked_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| text(&directory.path().join(name)).to_owned();
    let data = place("data.nt");
    fs::write(&data, "<http://e/s> <http://e/p> \"o\" .\n").unwrap();
    let (database, log) = (place("db"), place("log"));
    succeed(&["load", "--db", &database, &data]);
    let options = ["--query-log", &log, "--slow-query", "60s"];
    let mut server = Server::start_with(&database, &options);
    for query in ["ASK%20{?s%20<http://e/p>%20?o}", "SELECT%20?s%20{?s}"] {
        let query = query.replace('<', "%3C").replace('>', "%3E");
        let query = query.replace('{', "%7B").replace('}', "%7D");
        server.get(&format!("/sparql?query={query}"));
    }
    let asked = Command::new("kill")
        .args(["-TERM", &server.process.id().to_string()])
        .status();
    assert!(asked.unwrap().success());
    assert!(server.process.wait().unwrap().success());

    let report = succeed(&["report", "usage", "--log", &log, "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["queries"], 2);
    assert_eq!(report["failed"], 1);
    assert_eq!(report["clients"]["count"], 1);
    assert_eq!(report["predicates"]["top"][0]["name"], "http://e/p");
    let page = place("usage.html");
    succeed(&["report", "usage", "--log", &log, "--out", &page]);
    assert!(fs::read_to_string(&page).unwrap().contains("http://e/p"));
    let last_year = ["report", "usage", "--log", &log, "--to", "2020-12-31"];
    assert!(succeed(&last_year).contains("Nothing was asked"));

    let bill = succeed(&["usage", "--log", &log]);
    let [head, line] = bill.lines().collect::<Vec<_>>()[..] else {
        panic!("{bill}");
    };
    assert_eq!(head, "day,user,requests,failed,seconds,rows,bytes,touches");
    let cells: Vec<&str> = line.split(',').collect();
    assert_eq!((cells[1], cells[2], cells[3]), ("", "2", "1"), "{line}");
    assert!(cells[7].parse::<u64>().unwrap() > 0, "{line}");
    let json = succeed(&["usage", "--log", &log, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["lines"][0]["requests"], 2);
    fail(&["usage", "--log", &database], &["has no query log"]);

    fail(
        &["report", "usage", "--log", &database],
        &["has no query log"],
    );
    let wrong_day = run(&["report", "usage", "--log", &log, "--from", "2026-02-30"]);
    assert_eq!(wrong_day.status.code(), Some(2));
}
