//! Bodies: how they are compressed, how long they may be, what they may take.

use crate::client::{Answer, ask, encode, get, post, query_path, send};
use crate::data::form_loads::chunked;
use crate::fixture::TestServer;
use std::io::Write;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const QUERY: &str = "Content-Type: application/sparql-query";
const UPDATE: &str = "Content-Type: application/sparql-update";
const NTRIPLES: &str = "Content-Type: application/n-triples";
const SQL: &str = "Content-Type: application/sql";
const GZIP: &str = "Content-Encoding: gzip";
const BROTLI: &str = "Content-Encoding: br";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder.write_all(text).unwrap();
    encoder.into_inner()
}

async fn memory_held(server: &TestServer) -> u64 {
    let health = get(server.address, "/health", &[]).await;
    let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
    health["query_memory_bytes"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_codings_get_415_and_what_is_taken() {
    let server = TestServer::start().await;
    for coding in ["deflate", "gzip, gzip", "br, gzip", "rot13"] {
        let coding = format!("Content-Encoding: {coding}");
        for (path, content_type) in [
            ("/sparql", QUERY),
            ("/sparql", UPDATE),
            ("/graphs?default", NTRIPLES),
        ] {
            let answer = post(server.address, path, &[content_type, &coding], b"ASK {}").await;
            assert_eq!(answer.status, 415, "{path} {coding}");
            assert_eq!(
                answer.header("Accept-Encoding"),
                Some("gzip, zstd, br, identity")
            );
            assert!(
                answer.text().contains("send one of gzip, zstd, br"),
                "{}",
                answer.text()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_updates_and_graphs_may_come_compressed() {
    let server = TestServer::start().await;
    let address = server.address;
    let is_true = |answer: Answer| {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("true"), "{}", answer.text());
    };
    let query = "ASK { ?s <http://example.com/number> 7 }";
    let form = format!("query={}", encode(query));
    is_true(post(address, "/sparql", &[FORM, GZIP], &gzip(form.as_bytes())).await);
    is_true(post(address, "/sparql", &[QUERY, GZIP], &gzip(query.as_bytes())).await);
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    let updated = post(address, "/sparql", &[UPDATE, GZIP], &gzip(insert)).await;
    assert_eq!(updated.status, 200, "{}", updated.text());
    let triple = b"<http://e/s> <http://e/p> <http://e/o> .\n";
    let posted = post(address, "/graphs?default", &[NTRIPLES, GZIP], &gzip(triple)).await;
    assert_eq!(posted.status, 200, "{}", posted.text());
    is_true(
        ask(
            address,
            "ASK { <http://e/s> <http://e/p> 1, <http://e/o> }",
            &[],
        )
        .await,
    );
    // What says that it is compressed must be.
    for (path, content_type) in [("/sparql", QUERY), ("/graphs?default", NTRIPLES)] {
        let plain = post(address, path, &[content_type, GZIP], query.as_bytes()).await;
        assert_eq!(plain.status, 400, "{}", plain.text());
        assert!(plain.text().contains("no gzip data"), "{}", plain.text());
        let mut cut = gzip(&[query.as_bytes(), &[b' '; 1000]].concat());
        cut.truncate(cut.len() - 5);
        let cut = post(address, path, &[content_type, GZIP], &cut).await;
        assert_eq!(cut.status, 400, "{}", cut.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_bodies_may_come_in_brotli_which_is_not_told_by_its_first_bytes() {
    // In memory, and by way of the disk.
    for limit_bytes in [64 << 20, 64] {
        let server =
            TestServer::start_with(|options| options.http.update_bytes_max = limit_bytes).await;
        let address = server.address;
        let lines: String = (0..2000)
            .map(|n| format!("<http://e/s{n}> <http://e/p> \"{n}\" .\n"))
            .collect();
        let path = "/graphs?default";
        let posted = post(
            address,
            path,
            &[NTRIPLES, BROTLI],
            &brotli(lines.as_bytes()),
        )
        .await;
        assert_eq!(posted.status, 200, "{}", posted.text());
        let is_there = "ASK { <http://e/s1999> <http://e/p> \"1999\" }";
        assert!(ask(address, is_there, &[]).await.text().contains("true"));
        // In whatever format.
        let turtle = [BROTLI, "Content-Type: text/turtle"];
        let few = brotli(b"<http://e/t> <http://e/p> 1 .");
        let posted = post(address, path, &turtle, &few).await;
        assert_eq!(posted.status, 200, "{}", posted.text());
        for wrong in [&few[..few.len() - 3], b"<http://e/t> <http://e/p> 2 .", b""] {
            let refused = post(address, path, &turtle, wrong).await;
            assert_eq!(refused.status, 400, "{}", refused.text());
        }
        // They are one stream, whoever reads it.
        let json = r#"{"@id": "http://e/u", "http://e/p": 3}"#;
        let xml = r#"<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><r:Description r:about="http://e/u" e:p="3"/></r:RDF>"#;
        for (media_type, text) in [
            ("application/n-triples", "<http://e/u> <http://e/p> \"3\" ."),
            ("text/turtle", "<http://e/u> <http://e/p> 3 ."),
            ("application/trig", "<http://e/u> <http://e/p> 3 ."),
            ("application/ld+json", json),
            ("application/rdf+xml", xml),
        ] {
            let headers = [BROTLI, &*format!("Content-Type: {media_type}")];
            let one = brotli(text.as_bytes());
            for behind in [&one[..], b"\n", &[0; 200_000]] {
                let two = [&one[..], behind].concat();
                for answer in [
                    post(address, path, &headers, &two).await,
                    chunked(address, path, &headers, &two).await,
                ] {
                    assert_eq!(answer.status, 400, "{media_type} {}", answer.text());
                    let says = answer.text();
                    assert!(says.contains("stands behind its end"), "{says}");
                }
            }
        }
        let is_there = ask(address, "ASK { <http://e/u> ?p ?o }", &[]).await;
        assert!(is_there.text().contains("false"), "{}", is_there.text());
    }
    let server = TestServer::start().await;
    let address = server.address;
    let query = "ASK { ?s <http://example.com/number> 7 }";
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    let form = format!("query={}", encode(query));
    for (path, content_type, text) in [
        ("/sparql", QUERY, query.as_bytes()),
        ("/sparql", FORM, form.as_bytes()),
        ("/sparql", UPDATE, insert),
        ("/sql", SQL, b"select 1 as true"),
    ] {
        let answer = post(address, path, &[content_type, BROTLI], &brotli(text)).await;
        assert_eq!(answer.status, 200, "{path} {}", answer.text());
        let is_right = answer.text().contains("true") || answer.text().contains("added");
        assert!(is_right, "{path} {}", answer.text());
        let plain = post(address, path, &[content_type, BROTLI], text).await;
        assert_eq!(plain.status, 400, "{path} {}", plain.text());
        let two = [brotli(text), brotli(text)].concat();
        for answer in [
            post(address, path, &[content_type, BROTLI], &two).await,
            chunked(address, path, &[content_type, BROTLI], &two).await,
        ] {
            assert_eq!(answer.status, 400, "{path} {}", answer.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_not_longer_for_being_compressed() {
    let server = TestServer::start().await;
    let bomb = gzip(&vec![b' '; 70 << 20]);
    assert!(bomb.len() < 1 << 20);
    for content_type in [QUERY, FORM, UPDATE] {
        let answer = post(server.address, "/sparql", &[content_type, GZIP], &bomb).await;
        assert_eq!(answer.status, 413, "{content_type} {}", answer.text());
    }
    let bomb = brotli(&vec![b' '; 70 << 20]);
    assert!(bomb.len() < 1 << 20);
    for content_type in [QUERY, FORM, UPDATE] {
        let answer = post(server.address, "/sparql", &[content_type, BROTLI], &bomb).await;
        assert_eq!(answer.status, 413, "{content_type} {}", answer.text());
    }
    assert_eq!(memory_held(&server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_counted_against_the_memory() {
    let server = TestServer::start_with(|options| options.memory_bytes = 16 << 20).await;
    let address = server.address;
    // Each of the same quads has its place.
    let lines = "<http://e/s> <http://e/p> <http://e/o> .\n".repeat(400_000);
    // What must stand in memory is refused, with the figure.
    let graph = "/graphs?graph=http://e/g";
    let put = send(
        address,
        "PUT",
        graph,
        &[NTRIPLES, GZIP],
        &gzip(lines.as_bytes()),
    )
    .await;
    assert_eq!(put.status, 507, "{}", put.text());
    let update = format!("INSERT DATA {{ {lines} }}");
    let update = post(
        address,
        "/sparql",
        &[UPDATE, GZIP],
        &gzip(update.as_bytes()),
    )
    .await;
    assert_eq!(update.status, 507, "{}", update.text());
    assert!(
        update.text().contains("budget of 16 MiB"),
        "{}",
        update.text()
    );
    assert_eq!(memory_held(&server).await, 0);
    assert_eq!(
        ask(address, "ASK { GRAPH ?g { ?s <http://e/p> ?o } }", &[])
            .await
            .text(),
        r#"{"head":{},"boolean":false}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_into_memory_is_loaded_in_bulk() {
    // Room for a load, none for a document of this kind.
    let server = TestServer::start_with(|options| options.memory_bytes = 256 << 20).await;
    let address = server.address;
    let long = format!(
        "<http://e/s> <http://e/long> \"{}\" .\n",
        "x".repeat(20 << 20)
    );
    let body = gzip(long.as_bytes());
    let refused = send(address, "PUT", "/graphs?default", &[NTRIPLES, GZIP], &body).await;
    assert_eq!(refused.status, 507, "{}", refused.text());
    let condition = "If-Match: *";
    let refused = post(
        address,
        "/graphs?default",
        &[NTRIPLES, GZIP, condition],
        &body,
    )
    .await;
    assert_eq!(refused.status, 507, "{}", refused.text());
    let loaded = post(address, "/graphs?default", &[NTRIPLES, GZIP], &body).await;
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    let length = "SELECT (STRLEN(?o) AS ?n) { <http://e/s> <http://e/long> ?o }";
    let length = ask(address, length, &["Accept: text/csv"]).await;
    assert_eq!(length.text(), format!("n\r\n{}\r\n", 20 << 20));
    assert_eq!(memory_held(&server).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn longer_queries_are_read_where_the_server_allows_them() {
    let query = format!("ASK {{ VALUES ?x {{ {} }} }}", "1 ".repeat(700_000));
    let ask_long = |server: &TestServer| {
        let address = server.address;
        let query = query.clone();
        async move { post(address, "/sparql", &[QUERY], query.as_bytes()).await }
    };
    let usual = TestServer::start().await;
    let refused = ask_long(&usual).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("--query-bytes-max"),
        "{}",
        refused.text()
    );
    let generous = TestServer::start_with(|options| options.query_bytes_max = 2 << 20).await;
    let answer = ask_long(&generous).await;
    assert_eq!(
        answer.status,
        200,
        "{}",
        answer.text().chars().take(300).collect::<String>()
    );
    assert_eq!(
        get(generous.address, &query_path("ASK {}"), &[])
            .await
            .status,
        200
    );
}
