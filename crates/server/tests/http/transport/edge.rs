//! The edge of HTTP: hosts, methods, codings, addresses, and requests that are refused before a
//! handler.

use crate::client::{encode, exchange, get, post, query_path, request};
use crate::fixture::{ENDLESS_WORK, TestServer};
use crate::users::access::{add_user, start_with};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

fn addressed_to(host_lines: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\n{host_lines}Connection: close\r\n\r\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_are_not_for_names_that_were_rebound() {
    let server = TestServer::start_with(|options| {
        options.http.allow_hosts = vec!["db.internal".to_owned()];
    })
    .await;
    let query = query_path("SELECT * { ?s ?p ?o } LIMIT 1");
    let paths = [
        "/",
        "/console.js",
        "/health",
        "/changes?since=0",
        "/graphs?default",
        "/explain?query=ASK%7B%7D",
        "/nowhere",
        &query,
    ];
    for path in paths {
        for host in ["evil.example", "localhost.evil.example:7878", "10.0.0.1"] {
            let answer = exchange(
                server.address,
                &addressed_to(&format!("Host: {host}\r\n"), path),
            )
            .await;
            assert_eq!(answer.status, 403, "{host} {path}");
            assert!(!answer.text().contains("example.com"), "{}", answer.text());
        }
        let absolute = addressed_to("Host: localhost\r\n", &format!("http://evil.example{path}"));
        assert_eq!(
            exchange(server.address, &absolute).await.status,
            403,
            "{path}"
        );
    }
    for host in ["localhost:7878", "127.0.0.1", "[::1]:80", "DB.internal:80"] {
        let asked = addressed_to(&format!("Host: {host}\r\n"), &query);
        assert_eq!(exchange(server.address, &asked).await.status, 200, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_host() {
    let server = TestServer::start().await;
    for hosts in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: a b\r\n",
    ] {
        let answer = exchange(server.address, &addressed_to(hosts, "/health")).await;
        assert_eq!(answer.status, 400, "{hosts:?}");
        assert!(answer.text().contains("Host"), "{}", answer.text());
    }
    let old = exchange(server.address, b"GET /health HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_tells_the_methods_of_each_path() {
    let server = TestServer::start().await;
    for (path, methods) in [
        ("/", "GET, HEAD, OPTIONS"),
        ("/health", "GET, HEAD, OPTIONS"),
        ("/health/ready", "GET, HEAD, OPTIONS"),
        ("/changes", "GET, HEAD, OPTIONS"),
        ("/sparql", "GET, HEAD, POST, OPTIONS"),
        ("/sparql/", "GET, HEAD, POST, OPTIONS"),
        ("/explain", "GET, HEAD, POST, OPTIONS"),
        ("/compact", "POST, OPTIONS"),
        (
            "/graphs?default",
            "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS",
        ),
        (
            "/graphs/some/graph",
            "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS",
        ),
        ("*", "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS"),
    ] {
        let answer = exchange(server.address, &request("OPTIONS", path, &[])).await;
        assert_eq!(
            (answer.status, answer.header("Allow")),
            (204, Some(methods)),
            "{path}"
        );
        let wrong = if methods.contains("PATCH") {
            "PROPFIND"
        } else {
            "PATCH"
        };
        if path != "*" {
            let refused = exchange(server.address, &request(wrong, path, &[])).await;
            assert_eq!(
                (refused.status, refused.header("Allow")),
                (405, Some(methods)),
                "{path}"
            );
            assert!(refused.text().contains(methods), "{}", refused.text());
        }
    }
    let graphs = exchange(server.address, &request("OPTIONS", "/graphs", &[])).await;
    assert_eq!(
        graphs.header("Accept-Patch"),
        Some("application/sparql-update")
    );
    let nowhere = exchange(server.address, &request("OPTIONS", "/nowhere", &[])).await;
    assert_eq!(nowhere.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_may_be_written_with_a_slash() {
    let server = TestServer::start().await;
    let answer = get(
        server.address,
        &query_path("ASK {}").replace("/sparql", "/sparql/"),
        &[],
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let update = "Content-Type: application/sparql-update";
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    assert_eq!(
        post(server.address, "/sparql/", &[update], insert)
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_is_refused_with_a_sentence() {
    let server = TestServer::start().await;
    let long_header = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let many_headers = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(1000)
    );
    let long_address = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(100_000)
    );
    for (bytes, status, part) in [
        (
            "NONSENSE\r\n\r\n".to_owned(),
            400,
            "cannot be read as HTTP/1.1",
        ),
        (
            "GET / HTTP/1.1\r\nHost localhost\r\n\r\n".to_owned(),
            400,
            "cannot be read as HTTP/1.1",
        ),
        (long_header, 431, "larger, or has more headers"),
        (many_headers, 431, "larger, or has more headers"),
        (long_address, 414, "send a long query by POST"),
    ] {
        let answer = exchange(server.address, bytes.as_bytes()).await;
        assert_eq!(answer.status, status);
        assert!(answer.text().contains(part), "{status} {}", answer.text());
        let length = answer.body.len().to_string();
        assert_eq!(answer.header("content-length"), Some(length.as_str()));
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameters_are_refused_by_their_names() {
    let server = TestServer::start().await;
    let ask = encode("ASK {}");
    let update = |rest: &str| {
        format!(
            "update={}&{rest}",
            encode("INSERT DATA { <http://e/s> <http://e/p> 1 }")
        )
    };
    for (body, name) in [
        (
            update("default-graph-uri=http://e/"),
            "`default-graph-uri` is for queries",
        ),
        (
            update("named-graph-uri=http://e/"),
            "`named-graph-uri` is for queries",
        ),
        (update("at=1"), "`at` is for queries"),
        (
            update("using-graph-uri=nonsense"),
            "`using-graph-uri`: `nonsense` is no absolute IRI",
        ),
        (
            format!("query={ask}&using-graph-uri=http://e/"),
            "`using-graph-uri` is for updates",
        ),
        (
            format!("query={ask}&default-graph-uri=nonsense"),
            "`default-graph-uri`: `nonsense`",
        ),
        (
            format!("query={ask}&defualt-graph-uri=http://e/"),
            "`defualt-graph-uri` is unknown",
        ),
        (
            format!("query={ask}%2"),
            "`query` has broken percent-encoding",
        ),
        (format!("query={ask}&timeout=1w"), "`timeout` is `1w`"),
    ] {
        let answer = post(server.address, "/sparql", &[FORM], body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.text().contains(name), "{body}: {}", answer.text());
    }
    for (path, name) in [
        ("/graphs?default&garph=http://e/", "`garph` is unknown"),
        ("/graphs?graph=nonsense", "`graph`: `nonsense`"),
        (
            "/graphs?default&durability=relaxed",
            "`durability` is for changes",
        ),
        ("/changes?since=0&folow=true", "`folow` is unknown"),
    ] {
        let answer = get(server.address, path, &[]).await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().contains(name), "{path}: {}", answer.text());
    }
    let compact = post(server.address, "/compact?now=true", &[], b"").await;
    assert_eq!(compact.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_time_than_the_server_allows_is_refused_not_cut() {
    let server = TestServer::start().await;
    let path = format!("{}&timeout=99999", query_path(ENDLESS_WORK));
    let answer = get(server.address, &path, &[]).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(
        answer.text().contains("99999 s") && answer.text().contains("600 s at most"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_do_not_tell_of_the_servers_directories() {
    let server = TestServer::start().await;
    let directory = server.directory().to_str().unwrap().to_owned();
    let nowhere = get(
        server.address,
        &format!("{}&at=99999", query_path("ASK {}")),
        &[],
    )
    .await;
    assert_eq!(nowhere.status, 404);
    let broken = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff];
    let turtle = "Content-Type: text/turtle";
    let chunked = [
        b"POST /graphs?default HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/turtle\r\n\
          Transfer-Encoding: chunked\r\n\r\nd\r\n"
            .as_slice(),
        &broken,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    for answer in [
        nowhere,
        post(server.address, "/graphs?default", &[turtle], &broken).await,
        exchange(server.address, &chunked).await,
    ] {
        assert!(
            (400..500).contains(&answer.status),
            "{} {}",
            answer.status,
            answer.text()
        );
        assert!(!answer.text().contains(&directory), "{}", answer.text());
        assert!(
            !answer.text().contains("/tmp/") && !answer.text().contains("os error"),
            "{}",
            answer.text()
        );
    }
}

/// The response head for a request whose body follows its head a moment later, and whether another
/// request on the same connection is answered.
async fn head_then_body(address: SocketAddr, head: &str, body: &[u8]) -> (String, bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let _ = stream.write_all(body).await;
    let mut said = Vec::new();
    let ends = |said: &[u8]| said.windows(4).any(|bytes| bytes == b"\r\n\r\n");
    while !ends(&said) {
        if stream.read_buf(&mut said).await.unwrap() == 0 {
            break;
        }
    }
    let head = String::from_utf8_lossy(&said).into_owned();
    let next = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(next).await;
    let _ = stream.read_to_end(&mut said).await;
    let answers = String::from_utf8_lossy(&said).matches("HTTP/1.1 ").count();
    (head, answers > 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_behind_a_body_that_nobody_read_only_where_that_is_said() {
    let server = start_with(&[add_user("root", true)], |_| {}).await;
    let address = server.address;
    let head = |method: &str, path: &str, more: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n\r\n")
    };
    let triple = b"<http://e/s> <http://e/p> 1 .";
    let length = format!("Content-Length: {}", triple.len());
    let chunks = b"1d\r\n<http://e/s> <http://e/p> 1 .\r\n0\r\n\r\n";
    for (method, path) in [
        ("POST", "/graphs?default"),
        ("PATCH", "/graphs?default"),
        ("POST", "/sparql"),
        ("POST", "/nowhere"),
        ("GET", "/graphs"),
    ] {
        for (more, body) in [
            (&*length, &triple[..]),
            ("Transfer-Encoding: chunked", &chunks[..]),
        ] {
            // A small rest is passed over.
            let (said, is_answered) =
                head_then_body(address, &head(method, path, more), body).await;
            assert!(said.starts_with("HTTP/1.1 4"), "{said}");
            assert!(!said.contains("connection: close"), "{said}");
            assert!(is_answered, "{method} {path} {more}: {said}");
        }
        // A large one is not waited for, nor one that does not come.
        for more in [
            "Content-Length: 100000000",
            "Content-Length: 1000",
            "Content-Length: 10\r\nExpect: 100-continue",
        ] {
            let (said, is_answered) = head_then_body(address, &head(method, path, more), b"").await;
            assert!(said.starts_with("HTTP/1.1 4"), "{said}");
            assert!(said.contains("connection: close"), "{more}: {said}");
            assert!(!is_answered, "{method} {path} {more}");
        }
    }
}
