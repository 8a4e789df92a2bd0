//! Queries that are divided among the nodes of a cluster: the same answers as one process gives,
//! also when a node is lost.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::clusters::cluster::{Cluster, listens};
use crate::clusters::stand_by::insert;
use crate::common::{succeed, text};
use crate::serve::{Server, wait_until};

/// So many that a query over them is spread over partitions.
const SUBJECTS: usize = 150_000;
const GROUPS: usize = 700;

/// Numbers in groups. The last digits of a number tell its group.
fn data() -> String {
    let mut lines = String::new();
    for subject in 0..SUBJECTS {
        let (group, number) = (subject * 7 % GROUPS, subject % 1_000);
        _ = writeln!(
            lines,
            "<http://e/s{subject}> <http://e/group> <http://e/g{group}> ."
        );
        _ = writeln!(lines, "<http://e/s{subject}> <http://e/number> {number} .");
    }
    lines
}

/// Each reads all subjects.
const QUERIES: [&str; 6] = [
    // States of aggregates, merged.
    "SELECT ?g (COUNT(*) AS ?n) (SUM(?o) AS ?sum) (AVG(?o) AS ?mean) { ?s <http://e/group> ?g ; <http://e/number> ?o } GROUP BY ?g",
    // Terms that each process computes for itself: as keys of groups, and within states.
    "SELECT ?name (MAX(?long) AS ?last) (MIN(?long) AS ?first) { ?s <http://e/group> ?g ; <http://e/number> ?o BIND(CONCAT('the group called ', STR(?g)) AS ?name) BIND(STRLANG(CONCAT('the number called ', STR(?o)), 'en-GB') AS ?long) } GROUP BY ?name",
    // The first rows.
    "SELECT ?s ?o { ?s <http://e/group> ?g ; <http://e/number> ?o FILTER(CONTAINS(STR(?g), '7')) } ORDER BY DESC(?o) ?s LIMIT 50",
    // Distinct terms, which are kept in one place.
    "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s <http://e/group> ?g ; <http://e/number> ?o FILTER(STRLEN(STR(?g)) > 9) }",
    // Rows as they are.
    "SELECT ?s ?o { ?s <http://e/group> <http://e/g7> ; <http://e/number> ?o FILTER(STRLEN(STR(?s)) > 9) }",
    // A join of two groupings.
    "SELECT ?g ?n ?m { { SELECT ?g (COUNT(*) AS ?n) { ?s <http://e/group> ?g ; <http://e/number> ?o FILTER(?o < 500) } GROUP BY ?g } { SELECT ?g (SUM(?o) AS ?m) { ?s <http://e/group> ?g ; <http://e/number> ?o FILTER(?o >= 500) } GROUP BY ?g } }",
];

fn answer(server: &Server, query: &str) -> BTreeSet<String> {
    let mut encoded = String::new();
    for byte in query.bytes() {
        _ = write!(encoded, "%{byte:02X}");
    }
    // Of version 1.0, so that the body comes in one piece.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "GET /sparql?query={encoded} HTTP/1.0\r\nHost: {}\r\nAccept: text/csv\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 OK"), "{query}: {answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.lines().map(|line| line.trim().to_owned()).collect()
}

fn figure(server: &Server, name: &str) -> u64 {
    let page = server.get("/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn nodes_divide_queries_and_answer_as_one_process_does() {
    let cluster = Cluster::new();
    let options = ["--divide-from", "1"];
    let mut servers: Vec<Server> = (1..=3)
        .map(|node| cluster.first_with(node, &options))
        .collect();
    let file = cluster.home.path().join("data.ttl");
    std::fs::write(&file, data()).unwrap();
    let database = cluster.home.path().join("alone");
    succeed(&["load", "--db", text(&database), text(&file)]);
    let alone = Server::start(text(&database));
    wait_until("all serve", || servers.iter().all(listens));
    wait_until("all take changes", || {
        servers.iter().all(|server| insert(server, 0).status == 200)
    });
    let url = format!("http://{}", servers[0].address);
    succeed(&["load", "--server", &url, text(&file)]);
    wait_until("all have it", || {
        servers
            .iter()
            .all(|server| server.count() > 2 * SUBJECTS as u64)
    });
    let divided = |servers: &[Server]| -> u64 {
        let of_each = servers.iter();
        of_each
            .map(|it| figure(it, "orrery_divided_queries_total "))
            .sum()
    };
    // The other queries are little work, or have one partition. When a node is too busy to answer
    // in time, a query stays where it was asked.
    wait_until("three queries were divided", || {
        for (at, query) in QUERIES.iter().enumerate() {
            let expected = answer(&alone, query);
            assert!(!expected.is_empty());
            let server = &servers[at % 3];
            assert_eq!(answer(server, query), expected, "{query}");
        }
        divided(&servers) >= 3
    });
    let before = divided(&servers);
    let worked = servers.iter();
    let worked: u64 = worked
        .map(|it| figure(it, "orrery_divided_worked_total "))
        .sum();
    assert!(worked >= 2 * before, "{worked} parts of {before} queries");
    for server in &servers {
        wait_until("all is closed", || {
            figure(server, "orrery_divided_open ") == 0
        });
    }
    let received = servers
        .iter()
        .map(|it| figure(it, "orrery_divided_received_bytes_total "));
    assert!(received.sum::<u64>() > 0);

    // One of them is gone.
    let mut killed = servers.pop().unwrap();
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let before = divided(&servers);
    for query in QUERIES {
        assert_eq!(answer(&servers[0], query), answer(&alone, query), "{query}");
    }
    // Not at once, where the one that is gone has led.
    wait_until("two go on dividing", || {
        assert_eq!(answer(&servers[0], QUERIES[0]), answer(&alone, QUERIES[0]));
        divided(&servers) > before
    });
}
