//! Tests of `--log-format json`: every line on standard error is a JSON object, whatever anybody
//! sends.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::common::{orrery, succeed, text};
use crate::serve::Server;

/// A line, which has to be one object.
fn object(line: &str) -> Value {
    let value = serde_json::from_str(line);
    let value: Value = value.unwrap_or_else(|error| panic!("{error}: {line:?}"));
    for name in ["time", "level", "target", "message", "fields"] {
        assert!(!value[name].is_null(), "no {name}: {line}");
    }
    value
}

/// What a server says.
struct Said(BufReader<ChildStderr>);

impl Said {
    /// The lines up to one that fits.
    fn until(&mut self, process: &mut Child, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                panic!("ended with {:?} after {seen:?}", process.wait());
            }
            let value = object(line.strip_suffix('\n').unwrap());
            let is_last = fits(&value);
            seen.push(value);
            if is_last {
                return seen;
            }
        }
    }
}

fn says(value: &Value, part: &str) -> bool {
    value["message"].as_str().unwrap().contains(part)
}

/// Starts a server, asks it, and stops it; what it has said.
fn serve(options: &[&str], asks: impl FnOnce(&Server)) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("db");
    let data = directory.path().join("data.nt");
    std::fs::write(&data, "<x:a> <x:b> <x:c> .\n").unwrap();
    succeed(&["load", "--db", text(&db), text(&data)]);
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .to_string();
    let process = orrery()
        .env("ORRERY_LOG", "info")
        .args(["serve", "--log-format", "json", "--db", text(&db)])
        .args(["--listen", &address])
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Server { process, address };
    let mut said = Said(BufReader::new(server.process.stderr.take().unwrap()));
    let mut all = said.until(&mut server.process, |it| says(it, "listening on http"));
    asks(&server);
    let id = server.process.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    all.extend(said.until(&mut server.process, |it| it["message"] == "stopped"));
    assert!(server.process.wait().unwrap().success());
    all
}

#[test]
fn no_query_breaks_a_line_or_looks_like_another() {
    // A line end, an object, a separator of Unicode, an escape of a terminal.
    let query = "ASK%20%7B%7D%20%23%0A%7B%22level%22%3A%22FAKE%22%7D%E2%80%A8%1B%5B2J%22%5C";
    let said = serve(&[], |server| {
        let answer = server.get(&format!("/sparql?query={query}"));
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        let answer = server.get("/%0A%22level%22");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    });
    let of_access = |status: u64| {
        let mut lines = said.iter().filter(|it| it["target"] == "orrery::access");
        lines.find(|it| it["fields"]["status"] == status).unwrap()
    };
    let query = of_access(400)["fields"]["query"].as_str().unwrap();
    assert!(
        query.starts_with("ASK {} # {\"level\":\"FAKE\"}"),
        "{query}"
    );
    assert_eq!(of_access(404)["fields"]["path"], "/%0A%22level%22");
    assert!(said.iter().all(|it| it["level"] != "FAKE"), "{said:?}");
}

#[test]
fn the_first_administrator_is_told_in_an_object() {
    let said = serve(&["--auth"], |_| {});
    let told = said.iter().find(|it| says(it, "made the user")).unwrap();
    assert!(says(told, "with the password"), "{told}");
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
    let value = object(said.strip_suffix('\n').unwrap());
    assert_eq!(value["level"], "ERROR");
    assert!(says(&value, "/no/such"), "{said}");
}
