//! Patterns that make backtracking engines run for ever: ours are automata, linear in the text, and
//! patterns of large automata are refused.

use super::{CSV, assert_unharmed, beginning};
use crate::client::{Answer, post};
use crate::fixture::TestServer;

const EVIL: [&str; 8] = [
    "^(a+)+$",
    "^(a*)*$",
    "^(a|aa)+$",
    "^(a|a?)+$",
    "(.*)*(.*)*(.*)*b",
    "(a|b|ab)*c",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y",
];

async fn sparql(server: &TestServer, query: &str) -> Answer {
    let headers = ["Content-Type: application/sparql-query", CSV];
    let path = "/sparql?timeout=20";
    post(server.address, path, &headers, query.as_bytes()).await
}

async fn sql(server: &TestServer, text: &str) -> Answer {
    let headers = ["Content-Type: application/sql", CSV];
    post(server.address, "/sql?timeout=20", &headers, text.as_bytes()).await
}

/// A backtracking engine takes 2^100,000 steps; the limit of 20 seconds here is for busy machines.
#[tokio::test(flavor = "multi_thread")]
async fn regex_and_replace_of_sparql_take_linear_time() {
    let server = TestServer::start().await;
    let text = format!("{}!", "a".repeat(100_000));
    for pattern in EVIL {
        for query in [
            format!("SELECT (REGEX(\"{text}\", \"{pattern}\") AS ?x) {{}}"),
            format!("SELECT (REGEX(\"{text}\", \"{pattern}\", \"i\") AS ?x) {{}}"),
            // A pattern that may match nothing is refused (XPath functions, FORX0003).
            format!("SELECT (STRLEN(REPLACE(\"{text}\", \"{pattern}|z\", \"b\")) AS ?x) {{}}"),
            format!("SELECT ?p {{ VALUES ?p {{ \"{pattern}\" }} FILTER(REGEX(\"{text}\", ?p)) }}"),
        ] {
            let answer = sparql(&server, &query).await;
            assert_eq!(answer.status, 200, "{pattern}: {}", beginning(&answer));
        }
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeat_counts_that_are_huge_are_refused() {
    let server = TestServer::start().await;
    for pattern in [
        "a{1000000000}",
        "(a{1000}){1000}",
        "(((a{50}){50}){50}){50}",
        "(.{1,1000}){1,1000}",
        "[\\\\p{L}]{100000}",
    ] {
        for query in [
            format!("SELECT (REGEX(\"aaa\", \"{pattern}\") AS ?x) {{}}"),
            format!("SELECT (REPLACE(\"aaa\", \"{pattern}\", \"b\") AS ?x) {{}}"),
        ] {
            let answer = sparql(&server, &query).await;
            assert!(
                [400, 501].contains(&answer.status),
                "{pattern}: {} {}",
                answer.status,
                beginning(&answer)
            );
        }
        let pattern = pattern.replace("\\\\", "\\");
        for text in [
            format!("select 'aaa' ~ '{pattern}'"),
            format!("select regexp_replace('aaa', '{pattern}', 'b')"),
            format!("select 'aaa' similar to '{pattern}'"),
        ] {
            let answer = sql(&server, &text).await;
            assert!(
                (400..502).contains(&answer.status),
                "{text}: {} {}",
                answer.status,
                beginning(&answer)
            );
        }
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn like_similar_to_and_regexp_of_sql_take_linear_time() {
    let server = TestServer::start().await;
    let long = format!("{}!", "a".repeat(100_000));
    let column = format!("(select '{long}' as t union all select 'b') as texts");
    let percents = "%a".repeat(500);
    let mut texts = vec![
        format!("select count(*) from {column} where t like '{percents}b'"),
        format!("select count(*) from {column} where t ilike '{percents}b'"),
        format!(
            "select count(*) from {column} where t like '{}b'",
            "_%".repeat(500)
        ),
        format!("select count(*) from {column} where t not like '{percents}b'"),
    ];
    for pattern in EVIL {
        texts.extend([
            format!("select count(*) from {column} where t ~ '{pattern}'"),
            format!("select count(*) from {column} where t ~* '{pattern}'"),
            format!("select count(*) from {column} where t similar to '{pattern}'"),
            format!("select count(*) from {column} where regexp_like(t, '{pattern}')"),
            format!("select max(length(regexp_replace(t, '{pattern}', 'b'))) from {column}"),
        ]);
        // Each match may look at the rest of the text, so that such a text may be too long for one
        // row.
        let all =
            format!("select max(length(regexp_replace(t, '{pattern}', 'b', 'g'))) from {column}");
        let answer = sql(&server, &all).await;
        let is_refused = answer.status == 400 && answer.text().contains("SQL error 54000");
        assert!(answer.status == 200 || is_refused, "{}", beginning(&answer));
    }
    for text in &texts {
        let answer = sql(&server, text).await;
        let end = &text[text.len().saturating_sub(60)..];
        assert_eq!(answer.status, 200, "{end}: {}", beginning(&answer));
    }
    assert_unharmed(&server).await;
}
