//! Changes of whole graphs, and of more than memory holds, on a server with the least memory: it never holds more than it may.

use std::fmt::Write as _;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{fail, succeed, text};
use crate::serve::Server;

/// Quads of each graph: each would take 270 MB as changes of a transaction.
const QUADS: u64 = 600_000;
const MEMORY_BYTES: u64 = 256 << 20;
/// So often it is looked what the server holds.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// `RssAnon` of a process.
fn anonymous_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

fn data(graphs: &[&str]) -> String {
    let mut lines = String::new();
    for graph in graphs {
        for number in 0..QUADS {
            let (subject, predicate, object) = (number / 4, number % 4, number % 1_000);
            let _ = writeln!(
                lines,
                "<urn:s{subject}> <urn:p{predicate}> <urn:o{object}> <{graph}> ."
            );
        }
    }
    lines
}

fn count(server: &Server, pattern: &str) -> u64 {
    let query = format!("SELECT (COUNT(*) AS ?c) {{ {pattern} }}");
    let mut target = "/sparql?query=".to_owned();
    for byte in query.bytes() {
        let _ = write!(target, "%{byte:02X}");
    }
    let answer = server.get(&target);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.lines().last().unwrap().trim().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn whole_graphs_are_cleared_copied_and_moved_within_the_least_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (database, file) = (directory.path().join("db"), directory.path().join("a.nq"));
    fs::write(&file, data(&["urn:a", "urn:b"])).unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    let server = Server::start_with(text(&database), &["--memory", "256M"]);
    let process = server.process.id();
    let (most, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let bytes = anonymous_bytes(process).unwrap_or(0);
                most.fetch_max(bytes, Ordering::Relaxed);
                thread::sleep(LOOK_EVERY);
            }
        });
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| change(&server)));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    let most = most.into_inner();
    assert!(most > 0, "nothing was seen of the server");
    assert!(most < MEMORY_BYTES, "the server held {most} bytes");
}

fn change(server: &Server) {
    let url = format!("http://{}", server.address);
    let update = |update: &str| succeed(&["update", "--server", &url, update]);
    let in_graph = |graph: &str| count(server, &format!("GRAPH <{graph}> {{ ?s ?p ?o }}"));
    // Too many quads to be deleted one by one.
    let deletion = "DELETE WHERE { GRAPH <urn:a> { ?s ?p ?o . ?s <urn:p0> ?x } }";
    let parts = ["507", "268435456 bytes", "nothing was changed"];
    fail(&["update", "--server", &url, deletion], &parts);
    assert_eq!(in_graph("urn:a"), QUADS);

    let answer = update("COPY <urn:a> TO <urn:c>");
    assert!(answer.contains("600000"), "{answer}");
    assert_eq!([in_graph("urn:a"), in_graph("urn:c")], [QUADS; 2]);
    let answer = update("DROP GRAPH <urn:b>");
    assert!(answer.contains("600000"), "{answer}");
    assert_eq!([in_graph("urn:b"), in_graph("urn:c")], [0, QUADS]);
    update("MOVE <urn:c> TO <urn:d>");
    assert_eq!([in_graph("urn:c"), in_graph("urn:d")], [0, QUADS]);
    update("INSERT DATA { <urn:s> <urn:p> 1 }");
    update("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }");
    assert_eq!(count(server, "GRAPH ?g { ?s ?p ?o }"), 0);
    assert_eq!(count(server, "?s ?p ?o"), 1);
    update("CLEAR ALL");
    assert_eq!(count(server, "?s ?p ?o"), 0);
}
