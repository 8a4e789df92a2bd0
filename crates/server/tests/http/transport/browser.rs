//! What browsers see: the console, its policy, CORS.

use crate::client::{ask, exchange, get, post, request};
use crate::fixture::TestServer;
use orrery_storage::build_small;
use orrery_term::Term;

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_one_page_without_foreign_resources() {
    let server = TestServer::start().await;
    let page = get(server.address, "/", &[]).await;
    assert_eq!(
        page.header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("Content-Security-Policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
    assert!(!policy.contains("unsafe"));
    for (path, content_type) in [
        ("/console.js", "text/javascript; charset=utf-8"),
        ("/console.css", "text/css; charset=utf-8"),
    ] {
        assert!(page.text().contains(&path[1..]));
        let file = get(server.address, path, &[]).await;
        assert_eq!(
            (file.status, file.header("Content-Type")),
            (200, Some(content_type))
        );
    }
    assert!(!page.text().contains("://"), "a foreign address");
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_reach_the_page_as_text_only() {
    let server = TestServer::start().await;
    let script = get(server.address, "/console.js", &[]).await;
    for dangerous in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
        "setAttribute",
        "createContextualFragment",
        "Function(",
    ] {
        assert!(!script.text().contains(dangerous), "{dangerous}");
    }
    // Links are made of http(s) IRIs only, never of `javascript:`.
    assert!(script.text().contains("if (!/^https?:/i.test(iri))"));
}

/// With the console's `Accept`, an answer has a type that the console shows, and a wrong query gets
/// an error with its place.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_gets_the_place_of_an_error() {
    let server = TestServer::start().await;
    let script = get(server.address, "/console.js", &[]).await;
    let script = script.text();
    let (_, accept) = script.split_once("const ACCEPT = \"").unwrap();
    let (accept, _) = accept.split_once('"').unwrap();
    let accept = format!("Accept: {accept}");
    for (query, content_type) in [
        ("ASK {}", "application/sparql-results+json"),
        ("DESCRIBE <http://e/s>", "text/turtle; charset=utf-8"),
        (
            "CONSTRUCT { GRAPH ?s { ?s ?p ?o } } { ?s ?p ?o }",
            "application/trig",
        ),
        ("ASK { ?s ?p }", "application/problem+json"),
    ] {
        let answer = ask(server.address, query, &[&accept]).await;
        let found = answer.header("Content-Type").unwrap();
        assert!(found.starts_with(content_type), "{query}: {found}");
    }
}

/// The console shortens IRIs with them.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_gets_the_prefixes_of_the_database() {
    let server = TestServer::start().await;
    let script = get(server.address, "/console.js", &[]).await;
    assert!(script.text().contains("fetch(\"/prefixes\""));
    let path = "/prefixes?name=e&iri=http%3A%2F%2Fexample.com%2F";
    assert_eq!(post(server.address, path, &[], b"").await.status, 200);
    let answer = get(server.address, "/prefixes", &["Accept: application/json"]).await;
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let all = answer["prefixes"].as_array().unwrap();
    let has = |name: &str, iri: &str| all.iter().any(|it| it["name"] == name && it["iri"] == iri);
    assert!(has("e", "http://example.com/"), "{answer}");
    assert!(has("foaf", "http://xmlns.com/foaf/0.1/"), "{answer}");
}

/// The console asks it after an empty answer, and then says where the data are.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_finds_out_that_all_data_are_in_named_graphs() {
    let iri = |name: &str| Term::iri(format!("http://example.com/{name}"));
    let quad = |graph: Option<&str>| (iri("s"), iri("p"), iri("o"), graph.map(iri));
    for (quads, union, expected) in [
        (vec![quad(Some("g"))], false, "true"),
        (vec![quad(Some("g"))], true, "false"),
        (vec![quad(Some("g")), quad(None)], false, "false"),
        (vec![], false, "false"),
    ] {
        let server = TestServer::start_with(|options| {
            build_small(&options.db, &quads).unwrap();
            options.service.union_default_graph = union;
        })
        .await;
        let script = get(server.address, "/console.js", &[]).await;
        let script = script.text();
        let (_, query) = script.split_once("ONLY_NAMED_GRAPHS = \"").unwrap();
        let (query, _) = query.split_once('"').unwrap();
        let answer = ask(server.address, query, &["Accept: text/csv"]).await;
        assert_eq!(answer.text().trim(), expected, "{quads:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_never_a_page() {
    let server = TestServer::start().await;
    let query = "SELECT ('<script>alert(1)</script>' AS ?x) {}";
    let answer = ask(server.address, query, &["Accept: text/csv"]).await;
    assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(
        answer.header("Content-Security-Policy"),
        Some("default-src 'none'; sandbox")
    );
    let error = ask(server.address, "<script>", &["Accept: text/html"]).await;
    assert_eq!(error.status, 400);
    assert_eq!(
        error.header("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_origins_may_read_only_if_the_server_says_so() {
    let preflight = |address| async move {
        let headers = [
            "Origin: http://a.example",
            "Access-Control-Request-Method: POST",
        ];
        exchange(address, &request("OPTIONS", "/sparql", &headers)).await
    };
    let closed = TestServer::start().await;
    let answer = ask(closed.address, "ASK {}", &["Origin: http://a.example"]).await;
    assert_eq!(answer.header("Access-Control-Allow-Origin"), None);
    let refused = preflight(closed.address).await;
    assert_eq!(refused.status, 204);
    for name in ["Origin", "Methods", "Headers"] {
        let name = format!("Access-Control-Allow-{name}");
        assert_eq!(refused.header(&name), None, "{name}");
    }

    let open = TestServer::start_with(|options| options.http.allow_any_origin = true).await;
    let answer = ask(open.address, "ASK {}", &["Origin: http://a.example"]).await;
    assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"));
    let exposed = answer.header("Access-Control-Expose-Headers").unwrap();
    for name in ["ETag", "Retry-After", "Server-Timing", "Location"] {
        assert!(exposed.contains(name), "{exposed}");
    }
    let answer = preflight(open.address).await;
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.header("Access-Control-Allow-Methods"),
        Some("GET, POST")
    );
    let headers = answer.header("Access-Control-Allow-Headers").unwrap();
    for name in ["Authorization", "If-None-Match"] {
        assert!(headers.contains(name), "{headers}");
    }
}
