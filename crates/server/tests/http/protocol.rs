//! The SPARQL 1.1 protocol: ways to ask, formats, datasets, refusals.

use super::client::{Answer, ask, encode, exchange, get, post, query_path, request};
use super::fixture::{SUBJECTS, TestServer};

const COUNT: &str = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
const NAME: &str = "SELECT ?name WHERE { <http://example.com/s7> <http://example.com/name> ?name }";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const DIRECT: &str = "Content-Type: application/sparql-query";

fn value(answer: &Answer, variable: &str) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let value = &json["results"]["bindings"][0][variable]["value"];
    value.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_can_be_sent_in_three_ways() {
    let server = TestServer::start().await;
    let expected = (3 * SUBJECTS).to_string();
    let by_get = ask(server.address, COUNT, &[]).await;
    assert_eq!(value(&by_get, "n"), expected);
    assert_eq!(
        by_get.header("Content-Type"),
        Some("application/sparql-results+json")
    );
    assert_eq!(
        by_get.header("Content-Length"),
        Some(by_get.body.len().to_string().as_str())
    );
    let form = format!("query={}", encode(COUNT));
    let by_form = post(server.address, "/sparql", &[FORM], form.as_bytes()).await;
    assert_eq!(value(&by_form, "n"), expected);
    let direct = post(server.address, "/sparql", &[DIRECT], COUNT.as_bytes()).await;
    assert_eq!(value(&direct, "n"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_in_the_format_that_was_asked_for() {
    let server = TestServer::start().await;
    let name = "the thing whose number is 7";
    for (accept, content_type, contains) in [
        (
            "*/*",
            "application/sparql-results+json",
            "\"xml:lang\":\"en\"",
        ),
        (
            "application/json",
            "application/json",
            "\"xml:lang\":\"en\"",
        ),
        (
            "application/sparql-results+xml",
            "application/sparql-results+xml",
            "<literal xml:lang=\"en\">",
        ),
        ("text/csv", "text/csv; charset=utf-8", "name\r\nthe thing"),
        (
            "text/tab-separated-values",
            "text/tab-separated-values; charset=utf-8",
            "?name\n\"the thing",
        ),
        (
            "text/csv;q=0.1, application/xml;q=0.5",
            "application/xml",
            "<literal",
        ),
    ] {
        let answer = ask(server.address, NAME, &[&format!("Accept: {accept}")]).await;
        assert_eq!(
            (answer.status, answer.header("Content-Type")),
            (200, Some(content_type))
        );
        assert!(
            answer.text().contains(contains) && answer.text().contains(name),
            "{}",
            answer.text()
        );
        assert!(
            answer
                .header("Vary")
                .unwrap()
                .to_lowercase()
                .contains("accept")
        );
    }
    let table = get(
        server.address,
        &format!("{}&format=table", query_path(NAME)),
        &[],
    )
    .await;
    assert!(table.text().ends_with("@en\n1 row\n"), "{}", table.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_come_in_all_graph_formats() {
    let server = TestServer::start().await;
    let construct = "CONSTRUCT { ?s <http://example.com/is> ?n } \
                     WHERE { ?s <http://example.com/number> ?n FILTER(?n = 7) }";
    for (accept, content_type, contains) in [
        (
            "*/*",
            "text/turtle; charset=utf-8",
            "<http://example.com/s7> <http://example.com/is> 7 .",
        ),
        (
            "application/n-triples",
            "application/n-triples",
            "<http://example.com/is> \"7\"^^<",
        ),
        (
            "application/n-quads",
            "application/n-quads",
            "<http://example.com/is> \"7\"^^<",
        ),
        (
            "application/trig",
            "application/trig",
            "<http://example.com/is> 7",
        ),
        ("application/rdf+xml", "application/rdf+xml", ">7</p:is>"),
        (
            "application/ld+json",
            "application/ld+json",
            "\"http://example.com/is\"",
        ),
    ] {
        let answer = ask(server.address, construct, &[&format!("Accept: {accept}")]).await;
        assert_eq!(
            (answer.status, answer.header("Content-Type")),
            (200, Some(content_type))
        );
        assert!(answer.text().contains(contains), "{}", answer.text());
    }
    let described = ask(server.address, "DESCRIBE <http://example.com/s7>", &[]).await;
    assert!(
        described.text().contains("whose number is 7"),
        "{}",
        described.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn quads_come_in_formats_that_hold_graphs() {
    let server = TestServer::start().await;
    let construct = "CONSTRUCT { GRAPH <http://example.com/g> { ?s <http://example.com/is> ?n } } \
                     WHERE { ?s <http://example.com/number> ?n FILTER(?n = 7) }";
    for (accept, content_type, contains) in [
        ("*/*", "application/trig", "<http://example.com/g>"),
        (
            "text/turtle, application/n-quads;q=0.5",
            "application/n-quads",
            "<http://example.com/g> .",
        ),
        ("application/ld+json", "application/ld+json", "\"@graph\""),
    ] {
        let answer = ask(server.address, construct, &[&format!("Accept: {accept}")]).await;
        assert_eq!(
            (answer.status, answer.header("Content-Type")),
            (200, Some(content_type))
        );
        assert!(answer.text().contains(contains), "{}", answer.text());
    }
    // Turtle would lose the graph.
    let refused = ask(server.address, construct, &["Accept: text/turtle"]).await;
    assert_eq!(refused.status, 406);
    assert!(
        refused.text().contains("application/trig"),
        "{}",
        refused.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_is_refused_with_what_can() {
    let server = TestServer::start().await;
    let image = ask(server.address, NAME, &["Accept: image/png"]).await;
    assert_eq!(image.status, 406);
    assert!(
        image
            .text()
            .contains("application/sparql-results+json, application/json")
    );
    let turtle = ask(server.address, NAME, &["Accept: text/turtle"]).await;
    assert_eq!(turtle.status, 406);
    let unknown = get(
        server.address,
        &format!("{}&format=yaml", query_path(NAME)),
        &[],
    )
    .await;
    assert_eq!(unknown.status, 400);
    assert_eq!(
        unknown.text(),
        "format `yaml` does not fit this query; known are json, xml, csv, tsv, arrow, parquet, table\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_gets_a_boolean() {
    let server = TestServer::start().await;
    let yes = ask(
        server.address,
        "ASK { ?s <http://example.com/number> 7 }",
        &[],
    )
    .await;
    assert_eq!(yes.text(), r#"{"head":{},"boolean":true}"#);
    let no = ask(
        server.address,
        "ASK { ?s <http://example.com/number> -7 }",
        &["Accept: application/sparql-results+xml"],
    )
    .await;
    assert!(no.text().contains("<boolean>false</boolean>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn dataset_parameters_win_over_the_query() {
    let server = TestServer::start().await;
    let query = "SELECT ?o FROM <http://example.com/g2> WHERE { ?s <http://example.com/in> ?o }";
    assert_eq!(value(&ask(server.address, query, &[]).await, "o"), "g2");
    let parameter = format!("default-graph-uri={}", encode("http://example.com/g1"));
    let path = format!("{}&{parameter}", query_path(query));
    assert_eq!(value(&get(server.address, &path, &[]).await, "o"), "g1");
    let path = format!("/sparql?{parameter}");
    let direct = post(server.address, &path, &[DIRECT], query.as_bytes()).await;
    assert_eq!(value(&direct, "o"), "g1");
    let named = "SELECT ?g WHERE { GRAPH ?g { ?s <http://example.com/in> ?o } }";
    let path = format!(
        "{}&named-graph-uri={}",
        query_path(named),
        encode("http://example.com/g2")
    );
    assert_eq!(
        value(&get(server.address, &path, &[]).await, "g"),
        "http://example.com/g2"
    );
    let both = format!(
        "{parameter}&default-graph-uri={}",
        encode("http://example.com/g2")
    );
    let merged = format!("/sparql?query={}&{both}", encode(COUNT));
    assert_eq!(value(&get(server.address, &merged, &[]).await, "n"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn syntax_errors_have_line_and_column() {
    let server = TestServer::start().await;
    let broken = "SELECT *\nWHERE { ?s ?p }";
    let answer = ask(server.address, broken, &[]).await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.header("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    let line = answer.text();
    assert!(
        line.starts_with("query syntax error at line 2, column "),
        "{line}"
    );
    assert_eq!(line.matches('\n').count(), 1);
    let answer = ask(server.address, broken, &["Accept: application/json"]).await;
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/problem+json")
    );
    let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&problem["status"], &problem["line"]),
        (&400.into(), &2.into())
    );
    assert!(problem["column"].is_u64());
}

#[tokio::test(flavor = "multi_thread")]
async fn syntax_errors_have_their_place_and_mend_for_programs() {
    let server = TestServer::start().await;
    let problem_of = async |kind: &str, text: &str| -> serde_json::Value {
        let headers = [kind, "Accept: application/problem+json"];
        let answer = post(server.address, "/sparql", &headers, text.as_bytes()).await;
        assert_eq!(answer.status, 400, "{text}");
        serde_json::from_slice(&answer.body).unwrap()
    };
    let query = "Content-Type: application/sparql-query";
    let text = "SELECT *\nWHERE { ?grüße ub:name ?o FILTER(?o == 5) }";
    let text = format!("PREFIX ub: <http://example.com/>\n{text}");
    let problem = problem_of(query, &text).await;
    let offset = text.find("==").unwrap();
    assert_eq!(problem["line"], 3);
    assert_eq!(problem["column"], 37);
    assert_eq!(problem["offset"], offset);
    assert_eq!(problem["length"], 2);
    assert_eq!(problem["found"], "==");
    assert_eq!(problem["hint"], "write `=`");
    let suggestion = serde_json::json!({ "offset": offset, "length": 2, "text": "=" });
    assert_eq!(problem["suggestion"], suggestion);
    assert_eq!(problem["message"], "`==` is not SPARQL; write `=`");

    let problem = problem_of(query, "SELECT * { ?s ?p ?o } LIMIT many").await;
    assert_eq!(problem["expected"], serde_json::json!(["a whole number"]));
    assert_eq!(problem["suggestion"], serde_json::Value::Null);

    // An update, at its end.
    let update = "Content-Type: application/sparql-update";
    let text = "INSERT DATA { <http://e/s> <http://e/p> 1";
    let problem = problem_of(update, text).await;
    assert_eq!(problem["offset"], text.len());
    assert_eq!(problem["length"], 0);
    assert_eq!(problem["found"], "");
    assert_eq!(problem["suggestion"]["text"], " }");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_patterns_are_warned_of_beside_the_answer() {
    let server = TestServer::start().await;
    let wrong = "SELECT * { ?s ?p ?o FILTER regex(str(?o), 'a', 'ig') }";
    for (query, is_told) in [
        (wrong, true),
        ("SELECT * { ?s ?p ?o FILTER regex(?o, 'a', 'i') }", false),
    ] {
        // The second time the query's shape is known.
        for _ in 0..2 {
            let answer = ask(server.address, query, &[]).await;
            assert_eq!(answer.status, 200);
            let warning = answer.header("Orrery-Warning");
            assert_eq!(warning.is_some(), is_told, "{query}: {warning:?}");
            if let Some(warning) = warning {
                assert!(
                    warning.starts_with("line 1, column 48: REGEX has no flag `g`"),
                    "{warning}"
                );
            }
        }
    }
    let update = "INSERT { ?s <http://e/p> 1 } WHERE { ?s ?p ?o FILTER regex(str(?o), '(') }";
    let headers = ["Content-Type: application/sparql-update"];
    let answer = post(server.address, "/sparql", &headers, update.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let report: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("line 1, column 69: "), "{warning}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_outside_the_protocol_are_refused() {
    let server = TestServer::start().await;
    let address = server.address;
    let form = |body: &'static str| post(address, "/sparql", &[FORM], body.as_bytes());
    assert_eq!(form("").await.status, 400);
    assert_eq!(form("query=ASK%7B%7D&query=ASK%7B%7D").await.status, 400);
    assert_eq!(form("query=ASK%7B%7D&update=CLEAR+ALL").await.status, 400);
    assert_eq!(
        get(address, "/sparql?query=ASK%7B%7D&query=ASK%7B%7D", &[])
            .await
            .status,
        400
    );
    assert_eq!(
        get(address, "/sparql?default-graph-uri=http://e/", &[])
            .await
            .status,
        400
    );
    assert_eq!(get(address, "/sparql?query=%FF", &[]).await.status, 400);
    assert_eq!(
        get(address, "/sparql?query=ASK%7B%7D&timeout=soon", &[])
            .await
            .status,
        400
    );
    let text = post(address, "/sparql", &["Content-Type: text/plain"], b"ASK {}").await;
    assert_eq!(text.status, 415);
    let latin = post(
        address,
        "/sparql",
        &["Content-Type: application/sparql-query; charset=iso-8859-1"],
        b"ASK {}",
    )
    .await;
    assert_eq!(latin.status, 415);
    assert_eq!(
        get(address, "/sparql?update=CLEAR+ALL", &[]).await.status,
        400
    );
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = exchange(address, &request(method, "/sparql", &[])).await;
        assert_eq!(
            (answer.status, answer.header("Allow")),
            (405, Some("GET, HEAD, POST, OPTIONS"))
        );
    }
    let posted = post(address, "/health", &[], b"").await;
    assert_eq!(
        (posted.status, posted.header("Allow")),
        (405, Some("GET, HEAD, OPTIONS"))
    );
    assert_eq!(get(address, "/nowhere", &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_has_the_headers_and_no_body() {
    let server = TestServer::start().await;
    let answer = exchange(server.address, &request("HEAD", &query_path(NAME), &[])).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/sparql-results+json")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_description_tells_what_this_server_can_do() {
    const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
    let accept = ["Accept: application/n-triples"];
    let plain = TestServer::start().await;
    let plain = get(plain.address, "/sparql", &accept).await;
    for name in [
        "SPARQL11Query",
        "SPARQL11Update",
        "defaultDataset",
        "defaultGraph",
        "Dataset",
        "resultFormat",
    ] {
        assert!(plain.text().contains(&format!("<{SD}{name}>")), "{name}");
    }
    for name in ["UnionDefaultGraph", "BasicFederatedQuery"] {
        assert!(!plain.text().contains(name), "{name}");
    }
    let able = TestServer::start_with(|options| {
        options.service.union_default_graph = true;
        options.endpoints.allow = orrery_http_client::AllowList::parse(["example.org"]).unwrap();
    })
    .await;
    let able = get(able.address, "/sparql", &accept).await;
    for name in ["UnionDefaultGraph", "BasicFederatedQuery"] {
        let feature = format!("<{SD}feature> <{SD}{name}> .");
        assert!(able.text().contains(&feature), "{}", able.text());
    }
    let reading = TestServer::start_with(|options| options.is_read_only = true).await;
    let reading = get(reading.address, "/sparql", &accept).await;
    assert!(reading.text().contains("SPARQL11Query"));
    assert!(!reading.text().contains("SPARQL11Update"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_get_gets_the_service_description() {
    let server = TestServer::start().await;
    let turtle = get(server.address, "/sparql", &[]).await;
    assert_eq!(
        turtle.header("Content-Type"),
        Some("text/turtle; charset=utf-8")
    );
    assert!(
        turtle.text().contains("<http://localhost/sparql>"),
        "{}",
        turtle.text()
    );
    let triples = get(
        server.address,
        "/sparql",
        &["Accept: application/n-triples"],
    )
    .await;
    assert!(
        triples.text().contains("#SPARQL11Query> .\n"),
        "{}",
        triples.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_plan() {
    let server = TestServer::start().await;
    let path = format!("/explain?query={}", encode(NAME));
    let plan = get(server.address, &path, &[]).await;
    assert_eq!(
        (plan.status, plan.header("Content-Type")),
        (200, Some("text/plain; charset=utf-8"))
    );
    assert!(!plan.text().is_empty());
    assert_eq!(get(server.address, "/explain", &[]).await.status, 400);
    assert_eq!(
        get(server.address, "/explain?query=SELECT", &[])
            .await
            .status,
        400
    );
}
