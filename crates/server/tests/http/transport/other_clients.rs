//! Clients that were written for other servers, and people who have mistyped something: both get an
//! answer, and a word in a header.

use crate::client::{Answer, ask, encode, exchange, get, post, query_path, request};
use crate::fixture::TestServer;

const NAMES: &str =
    "SELECT ?name WHERE { <http://example.com/s7> <http://example.com/name> ?name }";
const TRIPLES: &str =
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?s = <http://example.com/s7>) }";

fn warnings(answer: &Answer) -> Vec<String> {
    let headers = answer.headers();
    let warnings = headers.filter(|(name, _)| name.eq_ignore_ascii_case("orrery-warning"));
    warnings.map(|(_, value)| value.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_are_unknown_are_passed_over_with_a_warning() {
    let server = TestServer::start().await;
    let path = |more: &str| format!("{}&{more}", query_path(NAMES));
    for silent in ["debug=on", "infer=false", "should-sponge=&signal_void=on"] {
        let answer = get(server.address, &path(silent), &[]).await;
        assert_eq!(answer.status, 200, "{silent}: {}", answer.text());
        assert_eq!(warnings(&answer), [""; 0], "{silent}");
        assert!(answer.text().contains("number is 7"), "{}", answer.text());
    }
    for (told, word) in [
        ("limti=10", "`limti`"),
        ("infer=true", "nothing is inferred"),
    ] {
        let answer = get(server.address, &path(told), &[]).await;
        assert_eq!(answer.status, 200, "{told}: {}", answer.text());
        let warnings = warnings(&answer);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(word), "{warnings:?}");
    }
    let form = ["Content-Type: application/x-www-form-urlencoded"];
    let update = encode("INSERT DATA { <http://e/a> <http://e/b> 1 }");
    let body = format!("update={update}&log_debug_info=1&transaction=x");
    let updated = post(server.address, "/sparql", &form, body.as_bytes()).await;
    assert_eq!(updated.status, 200, "{}", updated.text());
    assert_eq!(warnings(&updated).len(), 1);
    for refused in [
        "default-graph=http://e/",
        "$name=x",
        "namde-graph-uri=http://e/",
    ] {
        let answer = get(server.address, &path(refused), &[]).await;
        assert_eq!(answer.status, 400, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_updates_may_come_as_multipart_forms() {
    let server = TestServer::start().await;
    let headers = [
        "Content-Type: multipart/form-data; boundary=xyz",
        "Accept: text/csv",
    ];
    let form = |name: &str, value: &str| {
        format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--xyz--\r\n"
        )
    };
    let asked = post(
        server.address,
        "/sparql",
        &headers,
        form("query", NAMES).as_bytes(),
    )
    .await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(asked.text().contains("number is 7"), "{}", asked.text());
    let update = form("update", "CLEAR ALL");
    let page = [headers[0], "Origin: http://evil.example"];
    let refused = post(server.address, "/sparql", &page, update.as_bytes()).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let updated = post(server.address, "/sparql", &headers, update.as_bytes()).await;
    assert_eq!(updated.status, 200, "{}", updated.text());
    let gone = ask(server.address, "ASK { ?s ?p ?o }", &headers[1..]).await;
    assert!(gone.text().contains("false"), "{}", gone.text());
    let broken = post(server.address, "/sparql", &headers, b"--xy").await;
    assert_eq!(broken.status, 400, "{}", broken.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_are_understood_by_the_names_of_others() {
    let server = TestServer::start().await;
    for (query, format, content_type) in [
        (TRIPLES, "n3", "text/turtle; charset=utf-8"),
        (TRIPLES, "rdf%2Bxml", "application/rdf+xml"),
        // As it comes where nobody has encoded the plus.
        (TRIPLES, "rdf+xml", "application/rdf+xml"),
        (TRIPLES, "application/rdf+xml", "application/rdf+xml"),
        (TRIPLES, "json-ld", "application/ld+json"),
        (
            NAMES,
            "application/sparql-results+json",
            "application/sparql-results+json",
        ),
        (
            NAMES,
            "sparql-results+xml",
            "application/sparql-results+xml",
        ),
        (NAMES, "auto", "application/sparql-results+json"),
    ] {
        let path = format!("{}&format={format}", query_path(query));
        let answer = get(server.address, &path, &[]).await;
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        assert_eq!(
            answer.header("Content-Type"),
            Some(content_type),
            "{format}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_quads_are_read_where_no_graph_is_named() {
    let server = TestServer::start().await;
    let headers = ["Accept: application/n-quads"];
    let all = get(server.address, "/graphs", &headers).await;
    assert_eq!(all.status, 200, "{}", all.text());
    let lines: Vec<&str> = all.text().lines().collect();
    assert_eq!(lines.len(), 3002);
    for graph in ["g1", "g2"] {
        let end = format!("\"{graph}\" <http://example.com/{graph}> .");
        assert!(lines.iter().any(|line| line.ends_with(&end)), "{graph}");
    }
    let trig = get(server.address, "/graphs", &["Accept: application/trig"]).await;
    assert_eq!(
        (trig.status, trig.header("Content-Type")),
        (200, Some("application/trig"))
    );
    let turtle = get(server.address, "/graphs", &["Accept: text/turtle"]).await;
    assert_eq!(turtle.status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_as_the_client_takes_them_and_tagged_apart() {
    let server = TestServer::start().await;
    let all = query_path("SELECT * { ?s ?p ?o }");
    let mut tags = Vec::new();
    for coding in ["identity", "gzip", "br", "zstd"] {
        let accept = format!("Accept-Encoding: {coding}");
        let answer = exchange(server.address, &request("GET", &all, &[&accept])).await;
        assert_eq!(answer.status, 200);
        let sent = answer.header("Content-Encoding").unwrap_or("identity");
        assert_eq!(sent, coding);
        let tag = answer.header("ETag").unwrap().to_owned();
        let known = format!("If-None-Match: {tag}");
        let again = exchange(server.address, &request("GET", &all, &[&accept, &known])).await;
        assert_eq!(again.status, 304, "{coding}");
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_says_which_pattern_has_nothing() {
    let server = TestServer::start().await;
    let wrong = "SELECT * { ?s <http://example.com/nmae> ?name }";
    let answer = ask(server.address, wrong, &[]).await;
    assert_eq!(answer.status, 200);
    let told = warnings(&answer);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("but some have <http://example.com/name>"),
        "{told:?}"
    );
    let unbound = ask(
        server.address,
        &NAMES.replace("?name WHERE", "?name ?nmae WHERE"),
        &[],
    )
    .await;
    let told = warnings(&unbound);
    assert!(
        told.len() == 1 && told[0].starts_with("?nmae is selected"),
        "{told:?}"
    );
    for right in [NAMES, "ASK { ?s <http://example.com/nmae> ?name }"] {
        assert_eq!(warnings(&ask(server.address, right, &[]).await), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_alone_is_not_told_that_others_hold_the_memory() {
    let server = TestServer::start_with(|options| options.memory_bytes = 4_000_000).await;
    for query in [
        "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d))) AS ?all) { ?a ?b ?c . ?d ?e ?f }",
        "SELECT ?b (GROUP_CONCAT(?a) AS ?all) { ?a ?b ?c . ?d ?e ?f } GROUP BY ?b",
        "SELECT ?b (COUNT(DISTINCT ?x) AS ?n) { ?a ?b ?c . ?d ?e ?f BIND(CONCAT(STR(?a), STR(?d), STR(?f)) AS ?x) } GROUP BY ?b",
    ] {
        for _ in 0..3 {
            let answer = ask(server.address, query, &[]).await;
            assert_eq!(answer.status, 507, "{query}: {:.300}", answer.text());
            assert!(answer.text().contains("--memory"), "{}", answer.text());
        }
    }
}
