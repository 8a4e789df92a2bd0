//! Hidden quads do not show through indexes of texts, trigrams and places, nor through changes that
//! name them. Two servers differ in hidden quads alone, and give an asker who does not see these
//! the same answers, costs and statuses.

use crate::client::{encode, post, query_path, send};
use crate::fixture::TestServer;
use crate::users::access::{PASSWORD, basic};
use crate::users::hidden::{SQL, UPDATE, server_with, told};

const VISIBLE: [&str; 2] = [
    "INSERT { ?s <x:label> ?label . ?s <http://www.opengis.net/ont/geosparql#asWKT> ?place } WHERE { ?s <http://example.com/number> ?n
        BIND(CONCAT(\"bottle number \", STR(?n), \" of red wine\") AS ?label)
        BIND(STRDT(CONCAT(\"POINT(\", STR(?n / 100.0), \" 50)\"), <http://www.opengis.net/ont/geosparql#wktLiteral>) AS ?place) }",
    "INSERT DATA { <x:a> <x:note> \"zyxomma, a dragonfly\", \"shared by a note and a hidden label\" }",
];
/// Unrelated to all that is asked for.
const FEW: [&str; 2] = [
    "INSERT DATA { GRAPH <http://example.com/other> { <http://example.com/a> <http://example.com/b> 1 } }",
    "INSERT DATA { GRAPH <http://example.com/other> { <http://example.com/a> <http://example.com/b> 2 } }",
];
const MANY: [&str; 2] = [
    "INSERT { GRAPH <http://example.com/hidden> { ?s <x:label> ?label, \"a patient with zyxosis\", \"shared by a note and a hidden label\" ; <x:note> ?note ; <http://www.opengis.net/ont/geosparql#asWKT> ?place } }
      WHERE { ?s <http://example.com/number> ?n BIND(CONCAT(\"red wine, hidden bottle \", STR(?n)) AS ?label) BIND(CONCAT(\"a note on number \", STR(?n), \" of red\") AS ?note)
        BIND(STRDT(CONCAT(\"POINT(\", STR(?n / 100.0), \" 50.001)\"), <http://www.opengis.net/ont/geosparql#wktLiteral>) AS ?place) }",
    "INSERT { GRAPH <http://example.com/later> { ?s <x:label> ?label, \"zyxosis again\" } } WHERE { ?s <http://example.com/number> ?n BIND(CONCAT(\"later wine \", STR(?n)) AS ?label) }",
];

fn search(words: &str, rest: &str) -> String {
    format!(
        "SELECT * {{ SERVICE text:search {{ [] text:query \"{words}\" ; text:entity ?e ; text:literal ?l ; text:score ?score {rest} }} }} ORDER BY ?e ?l"
    )
}

fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for words in [
        "zyxosis",
        "zyx*",
        "zyxosi~1",
        "nowhere",
        "red wine",
        "wine NOT red",
        "shared",
        "later",
    ] {
        queries.push(search(words, ""));
        queries.push(search(words, "; text:limit 5"));
        queries.push(search(words, "; text:property <x:note>"));
        queries.push(format!(
            "SELECT * {{ ?s ?p ?l . ?l <bif:contains> \"'{}'\" }} ORDER BY ?s ?l",
            words.trim_end_matches(['*', '~', '1'])
        ));
    }
    for test in [
        "CONTAINS(?l, \"zyxosis\")",
        "CONTAINS(?l, \"number 99\")",
        "CONTAINS(?l, \"hidden\")",
        "REGEX(?l, \"bottle.*7 of\")",
        "STRSTARTS(?l, \"later\")",
        "CONTAINS(STR(?l), \"number 98\")",
    ] {
        queries.push(format!(
            "SELECT * {{ ?s <x:label> ?l FILTER({test}) }} ORDER BY ?s"
        ));
        queries.push(format!(
            "SELECT * {{ ?s ?p ?l FILTER({test}) }} ORDER BY ?s"
        ));
    }
    let near = |metres| {
        format!(
            "SELECT * {{ ?s geo:asWKT ?w FILTER(geof:distance(?w, \"POINT(5 50)\"^^geo:wktLiteral, uom:metre) < {metres}) }} ORDER BY ?s"
        )
    };
    queries.extend([near(10), near(2_000), near(20_000)]);
    queries.push("SELECT * { ?s geo:asWKT ?w } ORDER BY geof:distance(?w, \"POINT(5 50)\"^^geo:wktLiteral, uom:metre) ?s LIMIT 5".to_owned());
    queries
}

/// Each twice: what is in memory by then must make no difference.
fn requests() -> Vec<(&'static str, String, &'static str, String)> {
    let mut requests = Vec::new();
    for query in queries().into_iter().chain(queries()) {
        requests.push(("GET", query_path(&query), "", String::new()));
        let path = format!("/explain?query={}", encode(&query));
        requests.push(("GET", path, "", String::new()));
    }
    for words in ["zyxosis", "zyx*", "red wine"] {
        let inner = search(words, "").replace("SELECT *", "SELECT ?e ?l");
        let texts = [
            format!("SELECT * FROM sparql('{inner}')"),
            format!("SELECT entity, literal, score FROM text_search('{words}', 10)"),
        ];
        for text in texts {
            requests.push(("POST", "/sql".to_owned(), SQL, text));
        }
    }
    requests
}

async fn as_root(server: &TestServer, path: &str, body: &str) {
    let root = basic("root", PASSWORD);
    let answer = post(server.address, path, &[&root, UPDATE], body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{path} {}", answer.text());
}

/// With an index by these rules, made when one half of the hidden quads is there.
async fn server(hidden: [&str; 2], rules: &str) -> TestServer {
    let server = server_with(VISIBLE).await;
    as_root(&server, "/sparql", hidden[0]).await;
    as_root(&server, &format!("/text?grams=true{rules}"), "").await;
    as_root(&server, "/sparql", hidden[1]).await;
    server
}

async fn assert_told_the_same(rules: &str) {
    let (few, many) = (server(FEW, rules).await, server(MANY, rules).await);
    let ann = basic("ann", PASSWORD);
    let mut ended_well = 0;
    for (method, path, kind, body) in requests() {
        let headers = [ann.as_str(), kind];
        let headers = &headers[..if kind.is_empty() { 1 } else { 2 }];
        let [one, other] = [&few, &many].map(|server| server.address);
        let one = send(one, method, &path, headers, body.as_bytes()).await;
        let other = send(other, method, &path, headers, body.as_bytes()).await;
        assert_eq!(told(&one), told(&other), "{method} {path} {body}");
        ended_well += usize::from(one.status == 200);
    }
    assert!(ended_well > 150, "{ended_well}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_searches_cost_says_nothing_of_hidden_texts_and_places() {
    assert_told_the_same("").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_searches_cost_says_nothing_of_hidden_quads_of_a_text_that_is_seen() {
    assert_told_the_same("&property=x%3Alabel").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_change_a_graph_is_asked_before_a_term_is_looked_up() {
    let few = server_with(FEW).await;
    let many = server_with([
        "INSERT DATA { GRAPH <http://example.com/hidden> { <x:secret> <x:p> \"a secret that is long\" } }",
        "INSERT DATA { GRAPH <http://example.com/hidden> { <x:secret> <x:p> 5 } }",
    ])
    .await;
    let ann = basic("ann", PASSWORD);
    let mut statuses = Vec::new();
    for (graph, term) in [
        ("http://example.com/hidden", "<x:known>"),
        ("http://example.com/hidden", "<x:secret>"),
        ("http://example.com/nowhere", "<x:secret>"),
        ("http://example.com/secret", "\"a secret that is long\""),
        ("http://example.com/g1", "<x:secret>"),
        ("http://example.com/g2", "<x:secret>"),
    ] {
        for template in [
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s {term} }} }} WHERE {{ VALUES (?g ?s) {{ (<{graph}> <x:p>) }} }}"
            ),
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s ?t }} }} WHERE {{ BIND(IRI(\"{graph}\") AS ?g) BIND(IRI(\"x:p\") AS ?s) BIND({term} AS ?t) }}"
            ),
            format!(
                "DELETE {{ GRAPH ?g {{ ?s ?s ?t }} }} INSERT {{ GRAPH <http://example.com/g2> {{ ?s ?s 1 }} }} WHERE {{ VALUES (?g ?s ?t) {{ (<{graph}> <x:p> {term}) }} }}"
            ),
            format!(
                "DELETE {{ GRAPH <{graph}> {{ ?s ?s {term} }} }} WHERE {{ VALUES ?s {{ <x:p> }} }}"
            ),
            format!("DELETE DATA {{ GRAPH <{graph}> {{ <x:p> <x:p> {term} }} }}"),
        ] {
            let [one, other] = [&few, &many].map(|server| server.address);
            let one = post(one, "/sparql", &[&ann, UPDATE], template.as_bytes()).await;
            let other = post(other, "/sparql", &[&ann, UPDATE], template.as_bytes()).await;
            assert_eq!(told(&one), told(&other), "{template}");
            statuses.push(one.status);
        }
    }
    assert_eq!(statuses[..15], [403; 15]);
    assert_eq!(statuses[25..], [200; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_tag_is_written_is_not_decided_by_what_is_hidden_nor_by_others() {
    let hidden = |tag: &str| {
        let text = format!(
            "INSERT DATA {{ GRAPH <http://example.com/hidden> {{ <x:a> <x:b> \"x\"@{tag} }} }}"
        );
        [text.clone(), text.replace("x:a", "x:c")]
    };
    let (one, other) = (hidden("de-at"), hidden("de-AT"));
    let lower = server_with([&one[0], &one[1]]).await;
    let upper = server_with([&other[0], &other[1]]).await;
    let ann = basic("ann", PASSWORD);
    let written = "INSERT DATA { GRAPH <http://example.com/g2> { <x:a> <x:b> \"Erdapfel\"@de-at, \"x\"@EN } }";
    let read = "SELECT ?o (LANG(?o) AS ?l) { GRAPH <http://example.com/g2> { <x:a> <x:b> ?o } } ORDER BY ?o";
    let mut requests = vec![("POST", "/sparql".to_owned(), vec![UPDATE], written)];
    for accept in [
        "Accept: text/csv",
        "Accept: text/tab-separated-values",
        "Accept: application/sparql-results+json",
    ] {
        requests.push(("GET", query_path(read), vec![accept], ""));
    }
    let construct = "CONSTRUCT WHERE { GRAPH <http://example.com/g2> { <x:a> ?p ?o } }";
    requests.push((
        "GET",
        query_path(construct),
        vec!["Accept: application/n-triples"],
        "",
    ));
    requests.push((
        "GET",
        "/graphs?graph=http%3A%2F%2Fexample.com%2Fg2".to_owned(),
        vec!["Accept: text/turtle"],
        "",
    ));
    requests.push((
        "GET",
        "/changes?since=1&format=patch".to_owned(),
        vec![],
        "",
    ));
    requests.push((
        "POST",
        "/sql".to_owned(),
        vec![SQL],
        "SELECT * FROM quads WHERE graph = 'http://example.com/g2'",
    ));
    for (method, path, headers, body) in requests {
        let headers: Vec<&str> = headers.into_iter().chain([ann.as_str()]).collect();
        let [one, other] = [&lower, &upper].map(|server| server.address);
        let one = send(one, method, &path, &headers, body.as_bytes()).await;
        let other = send(other, method, &path, &headers, body.as_bytes()).await;
        assert_eq!(told(&one), told(&other), "{method} {path} {body}");
        assert!(!one.text().contains("de-AT"), "{}", one.text());
    }
    // An asker who sees all graphs gets a tag as it was written first; comparisons of tags are the
    // same for everybody.
    let root = basic("root", PASSWORD);
    for who in [&ann, &root] {
        let english = "SELECT ?o { GRAPH ?g { ?s ?p ?o } FILTER(LANG(?o) = \"en\") }";
        let answer = send(
            upper.address,
            "GET",
            &query_path(english),
            &[who, "Accept: text/csv"],
            b"",
        )
        .await;
        assert_eq!(answer.text().lines().count(), 2, "{}", answer.text());
    }
}
