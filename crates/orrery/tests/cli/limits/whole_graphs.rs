//! Changes of whole graphs, and of more than memory holds, on a server with the least memory: it
//! stays within its limit.

use std::fmt::Write as _;
use std::fs;

use crate::common::{fail, succeed, text};
use crate::limits::server_memory::most_held;
use crate::serve::Server;

/// Quads of each graph: each would take 270 MB as changes of a transaction.
const QUADS: u64 = 600_000;
const MEMORY_BYTES: u64 = 256 << 20;

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
    let most = most_held(server.process.id(), |_| change(&server));
    assert!(most < MEMORY_BYTES, "the server held {most} bytes");
}

fn change(server: &Server) {
    let url = format!("http://{}", server.address);
    let update = |update: &str| succeed(&["update", "--server", &url, update]);
    let in_graph = |graph: &str| count(server, &format!("GRAPH <{graph}> {{ ?s ?p ?o }}"));
    // Too many quads to be deleted one by one.
    let deletion = "DELETE WHERE { GRAPH <urn:a> { ?s ?p ?o . ?s <urn:p0> ?x } }";
    let parts = ["507", "256 MiB", "nothing was changed"];
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
