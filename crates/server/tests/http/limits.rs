//! Time, memory, sizes and numbers have limits, and answers that name them.

use super::client::{ask, exchange, get, post, query_path, request};
use super::fixture::{ENDLESS_WORK, TestServer};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const POINT: &str = "SELECT ?n WHERE { <http://example.com/s7> <http://example.com/number> ?n }";

#[tokio::test(flavor = "multi_thread")]
async fn a_query_over_its_time_gets_503_naming_the_limit() {
    let server = TestServer::start_with(|options| {
        options.service.timeout_max = Duration::from_millis(700);
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
    // The server's own default is no longer than its maximum.
    let answer = get(server.address, &query_path(ENDLESS_WORK), &[]).await;
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
        options.service.queries_running_max = 1;
        options.service.queries_waiting_max = 0;
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
    assert!(answer.text().contains("1000 B"));
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
    assert!(answer.text().contains("97.7 KiB"), "{}", answer.text());
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

/// Asks by POST; the answer's status and the beginning of its text.
async fn ask_by_post(server: &TestServer, query: &str, timeout: &str) -> (u16, String) {
    let headers = ["Content-Type: application/sparql-query"];
    let path = format!("/sparql?timeout={timeout}");
    let answer = post(server.address, &path, &headers, query.as_bytes()).await;
    let text = answer.text().chars().take(300).collect();
    (answer.status, text)
}

/// The server is as it was before: nothing runs, no memory is held, it answers.
async fn assert_unharmed(server: &TestServer) {
    server.wait_until_running(0).await;
    let answer = exchange(server.address, &request("GET", "/health", &[])).await;
    let health: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(health["query_memory_bytes"], 0, "{health}");
    assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_nested_ten_thousand_deep_are_refused_with_their_position() {
    let server = TestServer::start().await;
    let nested = |before: &str, open: &str, inside: &str, close: &str, after: &str| {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        format!("{before}{open}{inside}{close}{after}")
    };
    for query in [
        nested("ASK { FILTER(", "(", "1", ")", ") }"),
        nested("ASK ", "{", "?s ?p ?o", "}", ""),
        nested("ASK { FILTER(", "!(", "true", ")", ") }"),
        nested("ASK { ", "OPTIONAL { ", "?s ?p ?o", "}", " }"),
        nested("ASK { ", "{ SELECT * { ", "?s ?p ?o", "} }", " }"),
        nested("ASK { ?s ", "(", "<e:p>", ")*", " ?o }"),
        nested("ASK { ?s ", "^(", "<e:p>", ")", " ?o }"),
        nested("ASK { FILTER(", "STR(", "1", ")", ") }"),
        nested("ASK { FILTER(", "1 + (", "1", ")", ") }"),
        nested("ASK { FILTER(", "1 IN (", "1", ")", ") }"),
        nested("ASK { ", "FILTER NOT EXISTS { ", "?s ?p ?o", "}", " }"),
        nested("ASK { ", "MINUS { ", "?s ?p ?o", "}", " }"),
        nested("ASK { ", "GRAPH ?g { ", "?s ?p ?o", "}", " }"),
        nested("ASK { ", "{} UNION { ", "?s ?p ?o", "}", " }"),
        nested("ASK { ?s ?p ", "[ ?p ", "1", "]", " }"),
        nested("ASK { ?s ?p ", "( ", "1", ")", " }"),
        nested("ASK { ", "<< ", "?s ?p ?o", " >>", " ?q ?r }"),
        nested("ASK { ?s ?p ", "<<( ?s ?p ", "?o", " )>>", " }"),
    ] {
        let (status, text) = ask_by_post(&server, &query, "10").await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("nested deeper than"), "{text}");
        assert!(text.contains("line 1, column "), "{text}");
    }
    // These need no brackets; each is cut off by some limit, or is answered.
    for query in [
        nested("ASK { FILTER(", "!", "true", "", ") }"),
        nested("ASK { FILTER(1 ", "+ 1", "", "", ") }"),
        nested("ASK { FILTER(true ", "&& true ", "", "", ") }"),
        nested("ASK { ?s <e:p>", "/<e:p>", "", "", " ?o }"),
    ] {
        let (status, text) = ask_by_post(&server, &query, "10").await;
        assert!(
            [200, 400, 501, 503, 507].contains(&status),
            "{status} {text}"
        );
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_ten_megabytes_is_refused() {
    let server = TestServer::start().await;
    // By what its head says; a client that waits for "100 Continue" sends no more.
    let headers = [
        "Content-Type: application/sparql-query",
        "Content-Length: 10000000",
    ];
    let answer = exchange(server.address, &request("POST", "/sparql", &headers)).await;
    assert_eq!(answer.status, 413);
    // Small enough for the door, and still too long for a query.
    let query = format!("ASK {{ VALUES ?x {{ {} }} }}", "1 ".repeat(1_000_000));
    let (status, text) = ask_by_post(&server, &query, "10").await;
    assert_eq!(status, 400);
    assert!(text.contains("more than the limit of"), "{text}");
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn regular_expressions_take_linear_time_or_are_refused() {
    let server = TestServer::start().await;
    let on_long_text = |pattern: &str| {
        let text = "a".repeat(50_000);
        format!("ASK {{ FILTER(REGEX(\"{text}!\", \"{pattern}\")) }}")
    };
    for pattern in [
        "^(a+)+$",
        "^(a|aa)+$",
        "^(a|a?)+$",
        "(.*a){12}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        let (status, text) = ask_by_post(&server, &on_long_text(pattern), "10").await;
        assert_eq!(status, 200, "{text}");
    }
    for (pattern, reason) in [
        ("(((a{100}){100}){100}){100}", "when compiled"),
        ("(a)\\\\1", "back-reference"),
    ] {
        let (status, text) = ask_by_post(&server, &on_long_text(pattern), "10").await;
        assert_eq!(status, 501, "{text}");
        assert!(text.contains(reason), "{text}");
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_products_over_everything_are_stopped_and_others_answer_meanwhile() {
    let server = TestServer::start_with(|options| options.memory_bytes = 8_000_000).await;
    let everything = "(<e:p>|!<e:p>|^<e:p>)*";
    let heavy = [
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }".to_owned(),
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?i ?f ?c".to_owned(),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ ?a {everything} ?b . ?c {everything} ?d . ?e {everything} ?f }}"
        ),
        format!("SELECT DISTINCT ?a ?d {{ ?a {everything} ?b . ?c {everything} ?d }}"),
        format!("SELECT (COUNT(*) AS ?n) {{ ?a ({everything}/{everything})* ?b . ?c ?d ?e }}"),
    ];
    let running = async {
        let asked = heavy.iter().map(|query| ask_by_post(&server, query, "1.5"));
        futures::future::join_all(asked).await
    };
    let meanwhile = async {
        for _ in 0..20 {
            let answer = exchange(server.address, &request("GET", "/health", &[])).await;
            assert_eq!(answer.status, 200);
            assert_eq!(ask(server.address, POINT, &[]).await.status, 200);
        }
    };
    let (answers, ()) = tokio::join!(running, meanwhile);
    for (query, (status, text)) in heavy.iter().zip(answers) {
        // What streams is broken off in the middle.
        assert!(
            [200, 503, 507].contains(&status),
            "{query}: {status} {text}"
        );
        if status != 200 {
            // On a busy machine the time may be over while others hold the memory.
            let says_why = [
                "limit of",
                "than --memory (",
                "hold the memory",
                "hold all of",
            ];
            assert!(says_why.iter().any(|why| text.contains(why)), "{text}");
        }
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_beyond_the_memory_gets_507() {
    let server = TestServer::start_with(|options| options.memory_bytes = 100_000).await;
    let query = "SELECT (COUNT(*) AS ?n) { ?a <http://example.com/next>+ ?b }";
    let (status, text) = ask_by_post(&server, query, "10").await;
    assert_eq!(status, 507, "{text}");
    assert!(text.contains("97.7 KiB"), "{text}");
    assert_unharmed(&server).await;
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
