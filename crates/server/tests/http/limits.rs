//! Time, memory, sizes and numbers have limits, and answers that name them.

use super::client::{ask, exchange, get, post, query_path, request};
use super::fixture::{ENDLESS_WORK, TestServer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const POINT: &str = "SELECT ?n WHERE { <http://example.com/s7> <http://example.com/number> ?n }";

#[tokio::test(flavor = "multi_thread")]
async fn a_query_over_its_time_gets_503_naming_the_limit() {
    let server = TestServer::start_with(|options| {
        options.http.timeout_max = Duration::from_millis(700);
    })
    .await;
    let path = format!("{}&timeout=0.3", query_path(ENDLESS_WORK));
    let answer = get(server.address, &path, &[]).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("limit of 0.3 s"),
        "{}",
        answer.text()
    );
    assert!(answer.text().contains("at most 0.7 s"), "{}", answer.text());
    // A wish beyond the maximum is cut to it.
    let path = format!("{}&timeout=3600", query_path(ENDLESS_WORK));
    let answer = get(server.address, &path, &[]).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("limit of 0.7 s"),
        "{}",
        answer.text()
    );
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cheap_queries_and_health_answer_beside_heavy_ones() {
    let server = TestServer::start().await;
    let heavy = begin_heavy(&server, 4).await;
    for _ in 0..20 {
        assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
    }
    // The last cheap one may still be counted for a moment after its answer.
    server.wait_until_running(4).await;
    drop(heavy);
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_queries_get_503_and_when_to_come_back() {
    let server = TestServer::start_with(|options| {
        options.http.queries_running_max = 1;
        options.http.queries_waiting_max = 0;
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = request("GET", &query_path(ENDLESS_WORK), &[]);
    stream.write_all(&bytes).await.unwrap();
    server.wait_until_running(1).await;
    let answer = ask(server.address, POINT, &[]).await;
    assert_eq!(
        (answer.status, answer.header("Retry-After")),
        (503, Some("1"))
    );
    assert!(
        answer.text().starts_with("1 queries are running already"),
        "{}",
        answer.text()
    );
    drop(stream);
    server.wait_until_running(0).await;
    assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_gets_413() {
    let server = TestServer::start_with(|options| options.http.body_bytes_max = 1000).await;
    let query = format!("ASK {{}} #{}", "x".repeat(2000));
    let headers = ["Content-Type: application/sparql-query"];
    let answer = post(server.address, "/sparql", &headers, query.as_bytes()).await;
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("1000 bytes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory_gets_507_with_the_figure_and_the_server_goes_on() {
    let server = TestServer::start_with(|options| options.memory_bytes = 100_000).await;
    let query = "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d))) AS ?all) \
                 WHERE { ?a ?b ?c . ?d ?e ?f }";
    let answer = ask(server.address, query, &[]).await;
    assert_eq!(
        answer.status,
        507,
        "{}",
        answer.text().chars().take(300).collect::<String>()
    );
    assert!(answer.text().contains("100000 bytes"), "{}", answer.text());
    assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_tells_what_is_served() {
    let server = TestServer::start().await;
    let answer = exchange(server.address, &request("GET", "/health", &[])).await;
    let health: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["quads"], 3002);
    assert!(health["generation"].as_u64().unwrap() >= 1);
}

async fn begin_heavy(server: &TestServer, queries: u64) -> Vec<TcpStream> {
    let mut heavy = Vec::new();
    for _ in 0..queries {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let bytes = request("GET", &query_path(ENDLESS_WORK), &[]);
        stream.write_all(&bytes).await.unwrap();
        heavy.push(stream);
    }
    server.wait_until_running(queries).await;
    heavy
}

/// What the way through HTTP costs; run with `--ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, not a check"]
async fn microseconds_of_a_point_query_on_a_kept_connection() {
    let server = TestServer::start().await;
    measure(&server, "health", "/health", 3000).await;
    measure(&server, "point query", &query_path(POINT), 3000).await;
    let _heavy = begin_heavy(&server, 4).await;
    measure(&server, "health beside 4 heavy queries", "/health", 300).await;
    measure(
        &server,
        "point query beside 4 heavy queries",
        &query_path(POINT),
        300,
    )
    .await;
}

async fn measure(server: &TestServer, name: &str, path: &str, rounds: usize) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut buffer = vec![0; 65536];
    let mut times: Vec<Duration> = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let started = std::time::Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        // A small answer comes in one piece.
        assert!(stream.read(&mut buffer).await.unwrap() > 0);
        times.push(started.elapsed());
    }
    times.sort();
    let (median, late) = (times[rounds / 2], times[rounds * 99 / 100]);
    println!("{name}: median {median:?}, 99 % {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn monstrous_queries_do_not_bring_the_server_down() {
    let server = TestServer::start().await;
    let chain = |link: &str, links: usize| link.repeat(links);
    for query in [
        format!("SELECT (1{} AS ?x) {{}}", chain("+1", 19_000)),
        format!("SELECT (1{} AS ?x) {{}}", chain("+?y", 5_000)),
        format!("ASK {{ FILTER(true{}) }}", chain(" && true", 9_000)),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER(?o = 1{}) }}",
            chain(" || ?o = 1", 2_000)
        ),
        format!(
            "SELECT * {{ {{}} {} }} LIMIT 1",
            chain("UNION { ?s ?p 1 }", 2_000)
        ),
        format!(
            "SELECT * {{ {} }} LIMIT 1",
            chain("OPTIONAL { ?s ?p 1 }", 1_000)
        ),
        format!(
            "SELECT * {{ {} }} LIMIT 1",
            chain("MINUS { ?s ?p 1 }", 1_000)
        ),
        format!("SELECT * {{ {} }} LIMIT 1", chain("?s ?p 1 . ", 3_000)),
        format!(
            "SELECT * {{ {} }} LIMIT 1",
            chain("BIND(1 AS ?x) ", 1) + &chain("?s ?p ?o . ", 1_000)
        ),
        format!(
            "SELECT * {{ ?s {}<http://e/> ?o }} LIMIT 1",
            chain("<http://e/>/", 2_000)
        ),
        format!(
            "SELECT * {{ ?s {}<http://e/> ?o }} LIMIT 1",
            chain("<http://e/>|", 5_000)
        ),
        format!(
            "SELECT * {{ ?s {}<http://e/>{} ?o }} LIMIT 1",
            chain("(", 120),
            chain(")*", 120)
        ),
        format!(
            "SELECT * {{ {}?s ?p ?o{} }} LIMIT 1",
            chain("{ OPTIONAL { ", 60),
            chain("} }", 60)
        ),
        format!(
            "SELECT * {{ {}?s ?p ?o{} }} LIMIT 1",
            chain("{ SELECT * { ", 60),
            chain("} }", 60)
        ),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER({}true{}) }}",
            chain("!(", 120),
            chain(")", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER({}1{}) }}",
            chain("!<e:f>(", 120),
            chain(")", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER({}1{}) }}",
            chain("1 IN (", 120),
            chain(")", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER({}1{}) }}",
            chain("COALESCE(", 120),
            chain(")", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p ?o {}{} }}",
            chain("FILTER EXISTS { ?s ?p ?o ", 120),
            chain("}", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p {}1{} }}",
            chain("[ ?p ", 120),
            chain("]", 120)
        ),
        format!(
            "SELECT * {{ ?s ?p {}1{} }}",
            chain("( ", 120),
            chain(")", 120)
        ),
        format!(
            "SELECT * {{ ?s {}<e:p>{} ?o }} LIMIT 1",
            chain("^(", 120),
            chain(")", 120)
        ),
        format!("SELECT * {{ ?s ?p {}", chain("<<( ", 120)),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER(?o IN (1{})) }}",
            chain(",1", 100_000)
        ),
        format!("SELECT * {{ VALUES ?x {{ {} }} }}", chain("1 ", 200_000)),
    ] {
        let body = query.as_bytes();
        let headers = ["Content-Type: application/sparql-query"];
        let answer = post(server.address, "/sparql?timeout=2", &headers, body).await;
        let beginning: String = query.chars().take(60).collect();
        assert!(
            [200, 400, 501, 503, 507].contains(&answer.status),
            "{beginning}"
        );
    }
    // None of them goes on after its time.
    server.wait_until_running(0).await;
    assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
}
