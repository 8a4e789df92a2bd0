//! `--log-format json`: what a process writes to standard error are objects, a line each, whatever somebody sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{orrery, succeed, text};

fn object(line: &str) -> Value {
    let value: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    for name in ["time", "level", "target", "message", "fields"] {
        assert!(!value[name].is_null(), "no {name}: {line}");
    }
    value
}

#[test]
fn a_server_logs_one_object_a_line_whatever_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (db, data) = (
        directory.path().join("db"),
        directory.path().join("data.nt"),
    );
    std::fs::write(&data, "<x:a> <x:b> <x:c> .\n").unwrap();
    succeed(&["load", "--db", text(&db), text(&data)]);
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap();
    let mut process = orrery()
        .env("ORRERY_LOG", "info")
        .args(["serve", "--log-format", "json", "--auth", "--db", text(&db)])
        .args(["--listen", &address.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut seen: Vec<Value> = Vec::new();
    // The first administrator, and that it listens.
    while !seen
        .last()
        .is_some_and(|it| it["message"].as_str().unwrap().starts_with("listening"))
    {
        seen.push(object(&lines.next().unwrap()));
    }
    assert!(
        seen.iter()
            .any(|it| it["message"].as_str().unwrap().contains("made the user")),
        "{seen:?}"
    );
    // Line ends, quotes, objects, separators of Unicode.
    let query = "%0A%7B%22level%22%3A%22FAKE%22%7D%E2%80%A8%22%5C";
    let request = format!(
        "GET /sparql?query={query} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let access = lines
        .by_ref()
        .map(|line| object(&line))
        .find(|it| it["target"] == "orrery::access")
        .unwrap();
    assert_eq!(access["fields"]["status"], 401);
    assert_eq!(access["fields"]["path"], "/sparql");
    let stopped = Command::new("kill")
        .arg(process.id().to_string())
        .status()
        .unwrap();
    assert!(stopped.success());
    let rest: Vec<Value> = lines.map(|line| object(&line)).collect();
    assert_eq!(rest.last().unwrap()["message"], "stopped");
    assert!(process.wait().unwrap().success());
}

#[test]
fn a_command_that_fails_says_why_in_an_object_even_where_nothing_is_logged() {
    let output = orrery()
        .env("ORRERY_LOG", "off")
        .args([
            "stats",
            "--log-format",
            "json",
            "--db",
            "/no/such\ndirectory",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let line = said.strip_suffix('\n').unwrap();
    let value = object(line);
    assert_eq!(value["level"], "ERROR");
    assert!(
        value["message"].as_str().unwrap().contains("/no/such"),
        "{line}"
    );
}
