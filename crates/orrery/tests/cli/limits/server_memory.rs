//! `serve --memory`: the process stays within it, whatever is sent to it in few bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::{succeed, text};
use crate::serve::Server;

const MEMORY_BYTES: u64 = 256 << 20;
const LONG_BYTES: usize = 300 << 20;
/// So often it is looked what a server holds.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Gzip of one long text between two others.
fn bomb(before: &str, after: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(before.as_bytes()).unwrap();
    for _ in 0..LONG_BYTES >> 20 {
        gzip.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    gzip.write_all(after.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// Memory of a process that is not pages of files; `None` when it has ended.
fn anonymous_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Does some work; the most memory that the process held meanwhile, in bytes. The work may read the
/// maximum so far, which is never 0 at the end.
pub(crate) fn most_held(process: u32, work: impl FnOnce(&AtomicU64)) -> u64 {
    /// Ends the looking, also where the work fails.
    struct Done<'d>(&'d AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (is_done, most) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                most.fetch_max(anonymous_bytes(process).unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(LOOK_EVERY);
            }
        });
        let _done = Done(&is_done);
        work(&most);
    });
    let most = most.into_inner();
    assert!(most > 0, "nothing was seen of process {process}");
    most
}

pub(crate) fn send(address: &str, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{head}\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(body);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
#[cfg(target_os = "linux")]
fn a_few_bytes_that_decompress_to_very_many_stay_within_the_memory() {
    let home = tempfile::tempdir().unwrap();
    let (database, data) = (home.path().join("db"), home.path().join("1.nt"));
    std::fs::write(&data, "<a:s> <a:p> <a:o> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start_with(text(&database), &["--memory", "256M"]);
    let literal = bomb("<a:s> <a:long> \"", "\" .\n");
    let comment = bomb("# ", "\n<a:s> <a:p> <a:q> .\n");
    let update = bomb("INSERT DATA { <a:s> <a:p> \"", "\" }");
    assert!(literal.len() < 2 << 20);
    let most = most_held(server.process.id(), |_| {
        for (method, path, content_type, body, statuses) in [
            (
                "PUT",
                "/graphs?graph=a:g",
                "application/n-triples",
                &literal,
                &["507"][..],
            ),
            (
                "PUT",
                "/graphs?graph=a:g",
                "text/turtle",
                &literal,
                &["507"],
            ),
            (
                "PUT",
                "/graphs?graph=a:g",
                "application/n-triples",
                &comment,
                &["507"],
            ),
            (
                "PUT",
                "/graphs?graph=a:g",
                "text/turtle",
                &comment,
                &["507"],
            ),
            ("POST", "/graphs?default", "text/turtle", &literal, &["413"]),
            (
                "POST",
                "/graphs?default",
                "text/turtle",
                &comment,
                &["200", "413"],
            ),
            // In these lines a literal may have any length.
            (
                "POST",
                "/graphs?default",
                "application/n-triples",
                &literal,
                &["200"],
            ),
            (
                "POST",
                "/sparql",
                "application/sparql-update",
                &update,
                &["413", "507"],
            ),
            (
                "POST",
                "/sparql",
                "application/sparql-query",
                &update,
                &["413"],
            ),
        ] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nContent-Type: {content_type}\r\nContent-Encoding: gzip"
            );
            let answer = send(&server.address, &head, body);
            let status = answer.split(' ').nth(1).unwrap_or_default();
            let shown: String = answer.chars().take(1000).collect();
            assert!(
                statuses.contains(&status),
                "{method} {path} {content_type}: {shown}"
            );
        }
    });
    assert!(most < MEMORY_BYTES, "{most} bytes at the most");
}

#[test]
#[cfg(target_os = "linux")]
fn a_form_of_many_large_files_stays_within_the_memory() {
    let home = tempfile::tempdir().unwrap();
    let (database, data) = (home.path().join("db"), home.path().join("1.nt"));
    std::fs::write(&data, "<a:s> <a:p> <a:o> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start_with(text(&database), &["--memory", "256M"]);
    let mut body = Vec::new();
    let mut part = |name: &str, lines: &[u8]| {
        let head = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(lines);
        body.extend_from_slice(b"\r\n");
    };
    for file in 0..4 {
        let line = |number| {
            let text = "x".repeat(3 << 20);
            format!("<a:s{file}> <a:long> \"{number} {text}\" .\n")
        };
        let lines: String = (0..25).map(line).collect();
        part(&format!("{file}.nt"), lines.as_bytes());
    }
    for file in 0..5000 {
        let line = format!("<a:t{file}> <a:p> {file} .");
        part(&format!("{file}.ttl"), line.as_bytes());
    }
    body.extend_from_slice(b"--xyz--\r\n");
    assert!(body.len() as u64 > MEMORY_BYTES);
    let head = "POST /graphs?default HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=xyz";
    let mut answer = String::new();
    let most = most_held(server.process.id(), |_| {
        answer = send(&server.address, head, &body);
    });
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"added\":5100,\"commit\":2"), "{answer}");
    assert!(most < MEMORY_BYTES, "{most} bytes at the most");
}

/// A huge page of which little is used counts as a whole, and the system rebuilds one from returned
/// pages.
#[test]
#[cfg(target_os = "linux")]
fn a_server_with_little_memory_has_no_huge_pages() {
    let home = tempfile::tempdir().unwrap();
    let (database, data) = (home.path().join("db"), home.path().join("1.nt"));
    std::fs::write(&data, "<a:s> <a:p> <a:o> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let server = Server::start_with(text(&database), &["--memory", "256M"]);
    let head = "POST /sql HTTP/1.1\r\nContent-Type: application/sql";
    for statement in [
        "create table t (i int primary key, a text)",
        "insert into t select i, repeat('x', 2000) || i from generate_series(1, 4000) g(i)",
        "select count(*) from (select a, repeat(a, 5) b from t order by b desc, a) q where b > 'y'",
        "select count(distinct a || i) from t",
        "drop table t",
    ] {
        let answer = send(&server.address, head, statement.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let rollup = format!("/proc/{}/smaps_rollup", server.process.id());
    let rollup = std::fs::read_to_string(rollup).unwrap();
    let huge = rollup
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"));
    let huge = huge.and_then(|huge| huge.split_whitespace().next());
    let huge: u64 = huge.unwrap().parse().unwrap();
    // What came before it read its options; with huge pages some 30 MiB.
    assert!(huge <= 8 << 10, "{huge} KiB");
}
