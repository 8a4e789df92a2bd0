//! Data that try to be markup, script, formulas or new lines: what every format and every message
//! makes of them.

use super::{assert_unharmed, beginning, update};
use crate::client::{Answer, ask, encode, get, post, query_path};
use crate::fixture::TestServer;
use oxrdf::Literal;
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};

const HOSTILE: [&str; 12] = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'; alert(1); '",
    "]]><x/>",
    "<!--",
    "a\r\nX-Injected: 1\r\n\r\nb",
    "tab\tand \"quotes\" and \\ and \\u0041",
    "line\u{2028}and\u{2029}and\u{85}",
    "&lt;&amp;&#x41;",
    "{{7*7}} ${7*7}",
    "\u{202e}txt.exe\u{feff}",
];

async fn with_hostile_data() -> TestServer {
    let server = TestServer::start().await;
    let mut text = String::from("INSERT DATA {\n");
    for (number, literal) in HOSTILE.iter().enumerate() {
        let literal = Literal::new_simple_literal(*literal).to_string();
        let literal = literal.replace('\r', "\\r").replace('\n', "\\n");
        text.push_str(&format!(
            "<http://e/h{number}> <http://e/says> {literal} .\n"
        ));
    }
    // What an IRI may have of it.
    text.push_str("<http://e/'onload=alert(1)//&amp;> <http://e/says> <javascript:alert(1)> .\n}");
    let answer = update(server.address, &text).await;
    assert_eq!(answer.status, 200, "{}", beginning(&answer));
    server
}

fn assert_no_page(answer: &Answer, what: &str) {
    assert_eq!(
        answer.header("X-Content-Type-Options"),
        Some("nosniff"),
        "{what}"
    );
    assert_eq!(
        answer.header("Content-Security-Policy"),
        Some("default-src 'none'; sandbox"),
        "{what}"
    );
    let content_type = answer.header("Content-Type").unwrap_or_default();
    assert!(!content_type.contains("html"), "{what} {content_type}");
    assert_eq!(answer.header("X-Injected"), None, "{what}");
}

/// The literals of the solutions.
fn literals(format: QueryResultsFormat, answer: &Answer) -> Vec<String> {
    let parser = QueryResultsParser::from_format(format);
    let ReaderQueryResultsParserOutput::Solutions(solutions) =
        parser.for_reader(answer.body.as_slice()).unwrap()
    else {
        panic!("no solutions");
    };
    let mut found = Vec::new();
    for solution in solutions {
        if let Some(oxrdf::Term::Literal(literal)) = solution.unwrap().get("o") {
            found.push(literal.value().to_owned());
        }
    }
    found.sort();
    found
}

fn expected() -> Vec<String> {
    let mut expected: Vec<String> = HOSTILE.iter().map(|&text| text.to_owned()).collect();
    expected.sort();
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_of_solutions_gives_back_the_text_and_is_no_page() {
    let server = with_hostile_data().await;
    let query = "SELECT ?s ?o { ?s <http://e/says> ?o }";
    for (accept, format) in [
        (
            "application/sparql-results+json",
            Some(QueryResultsFormat::Json),
        ),
        (
            "application/sparql-results+xml",
            Some(QueryResultsFormat::Xml),
        ),
        ("text/tab-separated-values", Some(QueryResultsFormat::Tsv)),
        ("text/csv", None),
        ("text/html", None),
        ("text/plain", None),
        ("application/xhtml+xml", None),
    ] {
        let answer = ask(server.address, query, &[&format!("Accept: {accept}")]).await;
        assert_no_page(&answer, accept);
        if let Some(format) = format {
            assert_eq!(literals(format, &answer), expected(), "{accept}");
        }
        if accept.ends_with("xml") {
            assert!(!answer.text().contains("<script"), "{accept}");
            assert!(!answer.text().contains("<img"), "{accept}");
        }
        // In a page's script it would still be data.
        if accept.ends_with("json") && answer.status == 200 {
            serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap();
        }
    }
    for format in ["json", "xml", "csv", "tsv", "table", "arrow", "parquet"] {
        let path = format!("{}&format={format}", query_path(query));
        let answer = get(server.address, &path, &[]).await;
        assert_eq!(answer.status, 200, "{format}");
        assert_no_page(&answer, format);
        if format == "table" {
            // One line for each row, whatever is in it.
            let controls = answer
                .text()
                .chars()
                .filter(|c| c.is_control() && *c != '\n');
            assert_eq!(controls.count(), 0, "{}", answer.text());
        }
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_of_graphs_gives_back_the_text_and_is_no_page() {
    let server = with_hostile_data().await;
    let query = "CONSTRUCT { ?s <http://e/says> ?o } WHERE { ?s <http://e/says> ?o }";
    for (accept, format) in [
        ("text/turtle", RdfFormat::Turtle),
        ("application/n-triples", RdfFormat::NTriples),
        ("application/n-quads", RdfFormat::NQuads),
        ("application/trig", RdfFormat::TriG),
        ("application/rdf+xml", RdfFormat::RdfXml),
        (
            "application/ld+json",
            RdfFormat::JsonLd {
                profile: oxrdfio::JsonLdProfileSet::empty(),
            },
        ),
    ] {
        let answer = ask(server.address, query, &[&format!("Accept: {accept}")]).await;
        assert_eq!(answer.status, 200, "{accept} {}", beginning(&answer));
        assert_no_page(&answer, accept);
        let mut found = Vec::new();
        for quad in RdfParser::from_format(format).for_reader(answer.body.as_slice()) {
            if let oxrdf::Term::Literal(literal) = quad.unwrap().object {
                found.push(literal.value().to_owned());
            }
        }
        found.sort();
        assert_eq!(found, expected(), "{accept}");
    }
    assert_unharmed(&server).await;
}

/// Messages repeat what was sent, in one line of text, also for clients that accept HTML only.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_lines_of_text() {
    let server = with_hostile_data().await;
    for hostile in HOSTILE {
        let encoded = encode(hostile);
        let pages = ["Accept: text/html,application/xhtml+xml"];
        let mut answers = vec![
            get(server.address, &format!("/sparql?query={encoded}"), &pages).await,
            get(server.address, &format!("/sparql?{encoded}=1"), &pages).await,
            get(
                server.address,
                &format!("{}&format={encoded}", query_path("ASK {}")),
                &pages,
            )
            .await,
            get(
                server.address,
                &format!("{}&at={encoded}", query_path("ASK {}")),
                &pages,
            )
            .await,
            get(
                server.address,
                &format!("{}&timeout={encoded}", query_path("ASK {}")),
                &pages,
            )
            .await,
            get(server.address, &format!("/graphs?graph={encoded}"), &pages).await,
            get(server.address, &format!("/graphs?{encoded}"), &pages).await,
            get(server.address, &format!("/{encoded}"), &pages).await,
            get(server.address, &format!("/explain?query={encoded}"), &pages).await,
            get(server.address, &format!("/changes?since={encoded}"), &pages).await,
            get(server.address, &format!("/prefixes?name={encoded}"), &pages).await,
            post(
                server.address,
                "/sparql",
                &[super::UPDATE],
                hostile.as_bytes(),
            )
            .await,
            post(
                server.address,
                "/sql",
                &["Content-Type: application/sql"],
                hostile.as_bytes(),
            )
            .await,
            post(
                server.address,
                "/graphs?default",
                &["Content-Type: text/turtle"],
                hostile.as_bytes(),
            )
            .await,
            post(
                server.address,
                "/graphs?default",
                &["Content-Type: application/rdf+xml"],
                hostile.as_bytes(),
            )
            .await,
        ];
        let problem = ["Accept: application/problem+json"];
        answers.push(
            get(
                server.address,
                &format!("/sparql?query={encoded}"),
                &problem,
            )
            .await,
        );
        for (number, answer) in answers.iter().enumerate() {
            let what = format!("{hostile:?}, {number}: {}", beginning(answer));
            // An empty update, or a list of prefixes, is none.
            if answer.status < 400 {
                continue;
            }
            assert_no_page(answer, &what);
            let content_type = answer.header("Content-Type").unwrap();
            assert!(
                ["text/plain; charset=utf-8", "application/problem+json"].contains(&content_type),
                "{what} {content_type}"
            );
            if content_type.starts_with("text/plain") {
                assert_eq!(answer.text().lines().count(), 1, "{what}");
            }
        }
    }
    assert_unharmed(&server).await;
}
