//! Line ends in what goes into headers: none makes a header of its own.

use super::assert_unharmed;
use crate::client::{Answer, exchange, get, post, query_path, request, send};
use crate::fixture::TestServer;

const BREAKS: [&str; 8] = [
    "%0d%0aX-Injected:%201",
    "%0aX-Injected:%201",
    "%0dX-Injected:%201",
    "%0d%0a%0d%0a<html>",
    "%E5%98%8A%E5%98%8DX-Injected:%201",
    "%00%0d%0aX-Injected:%201",
    "%C2%85X-Injected:%201",
    "\u{fe}\u{ff}",
];

fn assert_clean(answer: &Answer, what: &str) {
    assert_eq!(answer.header("X-Injected"), None, "{what}");
    assert!(answer.is_complete, "{what}");
    for name in [
        "Location",
        "ETag",
        "Content-Type",
        "Allow",
        "WWW-Authenticate",
        "Orrery-Tag",
        "Orrery-Warning",
    ] {
        let value = answer.header(name).unwrap_or_default();
        assert!(
            !value.contains("Injected") && !value.contains("<html>"),
            "{what} {name}: {value}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_ends_in_parameters_and_names_make_no_headers() {
    let server = TestServer::start().await;
    let address = server.address;
    let turtle = "Content-Type: text/turtle";
    let triple = b"<http://e/s> <http://e/p> 1 .";
    for part in BREAKS {
        for path in [
            format!("{}&format={part}", query_path("ASK {}")),
            format!("{}&format=json{part}", query_path("ASK {}")),
            format!("{}&timeout=1{part}", query_path("ASK {}")),
            format!("{}&at=1{part}", query_path("ASK {}")),
            format!("{}&default-graph-uri=http://e/{part}", query_path("ASK {}")),
            format!("{}&{part}=1", query_path("ASK {}")),
            format!("/graphs?graph=http://e/{part}"),
            format!("/graphs/{part}"),
            format!("/{part}"),
            format!("/changes?since=0{part}"),
        ] {
            let answer = get(address, &path, &[]).await;
            assert!((200..500).contains(&answer.status), "{path}");
            assert_clean(&answer, &path);
        }
        for path in [
            format!("/graphs?graph=http://e/{part}"),
            format!("/graphs/new{part}"),
            format!("/prefixes?name=e&iri=http://e/{part}"),
        ] {
            for method in ["PUT", "POST", "DELETE"] {
                let answer = send(address, method, &path, &[turtle], triple).await;
                assert_clean(&answer, &path);
            }
        }
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_headers_does_not_come_back_in_others() {
    let server = TestServer::start_with(|options| options.http.allow_any_origin = true).await;
    let address = server.address;
    let query = query_path("SELECT * { ?s ?p ?o } LIMIT 1");
    for header in [
        "Accept: text/html;q=\"\u{1}X-Injected: 1\"",
        "Accept: application/sparql-results+json; a=\"b\tX-Injected: 1\"",
        "Origin: http://a.example\tX-Injected: 1",
        "If-None-Match: \"a\", X-Injected: 1",
        "Accept-Encoding: gzip, X-Injected: 1",
        "Access-Control-Request-Method: X-Injected: 1",
        "X-Forwarded-Host: evil.example",
        "Forwarded: host=evil.example",
    ] {
        for method in ["GET", "OPTIONS"] {
            let answer = exchange(address, &request(method, &query, &[header])).await;
            assert_clean(&answer, header);
        }
    }
    // A new graph's name is made of the host that was written.
    let triple = b"<http://e/s> <http://e/p> 1 .";
    let turtle = "Content-Type: text/turtle";
    let made = post(
        address,
        "/graphs",
        &[turtle, "X-Forwarded-Host: evil.example"],
        triple,
    )
    .await;
    let location = made.header("Location").unwrap();
    assert!(
        location.starts_with("http://localhost/graphs/"),
        "{location}"
    );
    for host in [
        "localhost\tX-Injected: 1",
        "localhost/<html>",
        "localhost\"",
        "local%0d%0ahost",
        "[::1",
        "a,b",
    ] {
        let bytes = format!(
            "POST /graphs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{turtle}\r\nContent-Length: {}\r\n\r\n{}",
            triple.len(),
            std::str::from_utf8(triple).unwrap()
        );
        let answer = exchange(address, bytes.as_bytes()).await;
        assert!(answer.status >= 400, "{host}: {}", answer.status);
        assert_clean(&answer, host);
    }
    // A folded header line is accepted by some programs and refused by others (RFC 9112, 5.2).
    let folded =
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n X-Folded: 1\r\nConnection: close\r\n\r\n";
    assert_eq!(exchange(address, folded).await.status, 400);
    assert_unharmed(&server).await;
}
