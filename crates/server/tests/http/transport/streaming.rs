//! Answers on their way: chunks, back-pressure, compression, clients that leave.

use crate::client::{Answer, ask, get, parse, post, query_path, request};
use crate::fixture::{ENDLESS_ROWS, ENDLESS_WORK, SUBJECTS, TestServer};
use crate::usage::metering::{ann, server as limited};
use flate2::read::GzDecoder;
use serde_json::json;
use std::io::Read;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ALL: &str = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }";

async fn begin(server: &TestServer, query: &str, headers: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = request("GET", &query_path(query), headers);
    stream.write_all(&bytes).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_chunked_and_complete() {
    let server = TestServer::start().await;
    let answer = ask(server.address, ALL, &["Accept: text/csv"]).await;
    assert_eq!(answer.header("Transfer-Encoding"), Some("chunked"));
    assert!(answer.is_complete);
    assert_eq!(answer.text().lines().count(), 1 + 3 * SUBJECTS);
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gzip_for_those_who_take_it_and_not_for_small_answers() {
    let server = TestServer::start().await;
    let plain = ask(server.address, ALL, &["Accept: text/csv"]).await;
    assert_eq!(plain.header("Content-Encoding"), None);
    let packed = ask(
        server.address,
        ALL,
        &["Accept: text/csv", "Accept-Encoding: gzip"],
    )
    .await;
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.is_complete && packed.body.len() * 4 < plain.body.len());
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<String> = std::str::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&unpacked), sorted(&plain.body));
    let small = ask(server.address, "ASK {}", &["Accept-Encoding: gzip"]).await;
    assert_eq!(small.header("Content-Encoding"), None);
}

/// The text of an answer in whatever coding it came.
fn decoded(answer: &Answer) -> Vec<u8> {
    let (body, mut text) = (&*answer.body, Vec::new());
    let read = match answer.header("Content-Encoding") {
        None => return body.to_vec(),
        Some("gzip") => GzDecoder::new(body).read_to_end(&mut text),
        Some("br") => brotli::Decompressor::new(body, 4096).read_to_end(&mut text),
        Some("zstd") => return zstd::decode_all(body).unwrap(),
        Some(other) => panic!("{other}"),
    };
    read.unwrap();
    text
}

/// The compressor asks a body again after its end.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_streamed_may_be_compressed() {
    let server = TestServer::start().await;
    let change = b"INSERT DATA { <http://e/s> <http://e/p> 'new' }";
    let update = "Content-Type: application/sparql-update";
    let done = post(server.address, "/sparql", &[update], change).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let paths = [
        "/changes?since=1",
        "/changes?since=1&format=json",
        "/graphs?default",
        &query_path(ALL),
        &query_path("SELECT ?s WHERE { ?s ?p ?o } LIMIT 3"),
        &query_path("CONSTRUCT WHERE { ?s ?p ?o }"),
    ];
    for path in paths {
        let plain = get(server.address, path, &[]).await;
        assert_eq!(plain.status, 200, "{path}: {}", plain.text());
        let mut codings = Vec::new();
        for coding in ["gzip", "zstd", "br", "deflate", "identity"] {
            let asked = format!("Accept-Encoding: {coding}");
            let answer = get(server.address, path, &[&asked]).await;
            assert_eq!(answer.status, 200, "{path} in {coding}");
            assert!(answer.is_complete, "{path} in {coding} breaks off");
            // Rows of queries have no order.
            let [mut found, mut expected] = [decoded(&answer), plain.body.clone()];
            found.sort_unstable();
            expected.sort_unstable();
            assert!(found == expected, "{path} in {coding}");
            codings.extend(answer.header("Content-Encoding").map(str::to_owned));
        }
        assert!(
            codings == ["gzip", "zstd", "br"] || plain.body.len() < 1_000,
            "{path}: {codings:?}"
        );
    }
    let metrics = get(server.address, "/metrics", &[]).await;
    assert!(metrics.text().contains("orrery_panics_total 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rows_of_an_endless_answer_arrive_also_compressed() {
    let server = TestServer::start().await;
    for headers in [
        &["Accept: text/csv"][..],
        &["Accept: text/csv", "Accept-Encoding: gzip"],
    ] {
        let mut stream = begin(&server, ENDLESS_ROWS, headers).await;
        let mut bytes = vec![0; 20_000];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut bytes));
        read.await.expect("rows within 20 s").unwrap();
        let answer = parse(&bytes, true);
        assert_eq!((answer.status, answer.is_complete), (200, false));
    }
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_stops_its_query() {
    let server = TestServer::start().await;
    let mut stream = begin(&server, ENDLESS_ROWS, &[]).await;
    let mut bytes = vec![0; 100_000];
    stream.read_exact(&mut bytes).await.unwrap();
    server.wait_until_running(1).await;
    drop(stream);
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_stops_its_query() {
    let server = TestServer::start().await;
    let stream = begin(&server, ENDLESS_WORK, &[]).await;
    server.wait_until_running(1).await;
    drop(stream);
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_in_the_middle_of_a_stream_is_seen_as_a_truncated_transfer() {
    let server = TestServer::start().await;
    let path = format!("{}&timeout=500ms", query_path(ENDLESS_ROWS));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(&request("GET", &path, &["Accept: text/csv"]))
        .await
        .unwrap();
    // Everything is read as fast as it comes and thrown away, but for the end.
    let mut head = Vec::new();
    let mut tail = Vec::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        let count = stream.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            break;
        }
        if head.len() < 1000 {
            head.extend_from_slice(&chunk[..count]);
        }
        tail.extend_from_slice(&chunk[..count]);
        tail.drain(..tail.len().saturating_sub(7));
    }
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
    // With the line end before it: a row may end in 0, no row is a 0 alone.
    assert_ne!(
        tail, b"\r\n0\r\n\r\n",
        "a broken-off answer ended like a whole one"
    );
    server.wait_until_running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_holds_the_query_back() {
    let server = TestServer::start().await;
    let mut stream = begin(&server, ENDLESS_ROWS, &["Accept: text/csv"]).await;
    let mut first = [0; 1000];
    stream.read_exact(&mut first).await.unwrap();
    // More than the limit of time passes while nothing is read; waiting does not count.
    server.wait_until_running(1).await;
    let mut more = vec![0; 4 << 20];
    stream.read_exact(&mut more).await.unwrap();
    server.wait_until_running(1).await;
}

const SOLUTIONS: [&str; 6] = [
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/csv",
    "text/tab-separated-values",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
];
const GRAPHS: [&str; 6] = [
    "text/turtle",
    "application/n-triples",
    "application/n-quads",
    "application/trig",
    "application/rdf+xml",
    "application/ld+json",
];

/// Checks an answer that a limit ends: refused as a whole, or begun and broken off; never without a
/// head, or like a whole one.
fn assert_ended_by_a_limit(answer: &Answer, what: &str) {
    match answer.status {
        429 => {
            assert!(answer.is_complete, "{what}");
            assert!(answer.text().contains("you may have"), "{what}");
            assert_eq!(answer.header("Content-Encoding"), None, "{what}");
        }
        status => assert_eq!((status, answer.is_complete), (200, false), "{what}"),
    }
}

/// Rows before the limit fill chunks, of which a compressor gives nothing out for long.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_a_limit_is_refused_or_broken_off_in_every_format_and_coding() {
    let construct = "CONSTRUCT WHERE { ?s ?p ?o }";
    let sql = "select * from quads";
    for limits in [json!({"rows": 2_900}), json!({"bytes": 140_000})] {
        let server = limited(limits.clone()).await;
        let mut begun = 0;
        for coding in ["identity", "gzip", "zstd", "br"] {
            let coding = format!("Accept-Encoding: {coding}");
            let formats = SOLUTIONS.map(|format| (ALL, format));
            let graphs = GRAPHS.map(|format| (construct, format));
            for (query, format) in formats.into_iter().chain(graphs) {
                let accept = format!("Accept: {format}");
                let answer = ask(server.address, query, &[&ann(), &accept, &coding]).await;
                let what = format!("{limits}, {accept}, {coding}");
                let bytes_max = limits["bytes"].as_u64().unwrap_or(0);
                if format.ends_with("parquet") && (answer.body.len() as u64) < bytes_max {
                    // Its columns are compressed, so that all of it is less.
                    continue;
                }
                assert_ended_by_a_limit(&answer, &what);
                begun += usize::from(answer.status == 200);
            }
            for format in SOLUTIONS {
                let headers = [
                    &ann(),
                    &format!("Accept: {format}"),
                    &coding,
                    "Content-Type: application/sql",
                ];
                let answer = post(server.address, "/sql", &headers, sql.as_bytes()).await;
                let bytes_max = limits["bytes"].as_u64().unwrap_or(0);
                if format.ends_with("parquet") && (answer.body.len() as u64) < bytes_max {
                    continue;
                }
                assert_ended_by_a_limit(&answer, &format!("{limits}, {headers:?}"));
            }
        }
        assert!(begun > 0, "no answer was longer than a chunk");
    }
}
