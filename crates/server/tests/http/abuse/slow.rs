//! Slow clients, that send little or never read their answer: each is cut off after a stated time,
//! and others are answered meanwhile.

use super::assert_unharmed;
use crate::client::{get, parse, query_path, request};
use crate::fixture::{ENDLESS_ROWS, TestServer};
use crate::transport::tls;
use orrery_server::{ClientTimes, ServerOptions};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Far from the times that the server allows here, and from what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn start() -> TestServer {
    TestServer::start_with(hurry).await
}

fn hurry(options: &mut ServerOptions) {
    options.client_times = ClientTimes {
        head_max: Duration::from_millis(500),
        body_max: Duration::from_millis(500),
        stall_max: Duration::from_millis(500),
        upload_bytes_per_s: 1_000,
        upload_window: Duration::from_secs(1),
    };
}

/// What the server says until it closes the connection.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    assert!(read.is_ok(), "the connection stays open");
    bytes
}

/// Sends a byte at a time until the server closes; gives what it said.
async fn trickle(server: &TestServer, text: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let text = text.to_vec();
    let sent = tokio::spawn(async move {
        for byte in text.iter().cycle() {
            if writing.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, reading.read_to_end(&mut bytes)).await;
    assert!(read.is_ok(), "the connection stays open");
    sent.abort();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_comes_byte_by_byte_is_given_up() {
    let server = start().await;
    let slow = trickle(&server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    let meanwhile = async {
        for _ in 0..20 {
            assert_eq!(get(server.address, "/health", &[]).await.status, 200);
        }
    };
    let (said, ()) = tokio::join!(slow, meanwhile);
    assert!(
        !said.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&said)
    );
    // Nothing at all, and nothing more behind an answer.
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert!(!until_closed(&mut silent).await.starts_with(b"HTTP/1.1 200"));
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    assert!(until_closed(&mut idle).await.starts_with(b"HTTP/1.1 200"));
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stalls_gets_408() {
    let server = start().await;
    for (path, content_type) in [
        ("/sparql", "application/sparql-query"),
        ("/sparql", "application/sparql-update"),
        ("/sparql", "application/x-www-form-urlencoded"),
        ("/graphs?default", "text/turtle"),
        ("/sql", "application/sql"),
    ] {
        for length in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n5\r\nASK {{\r\n"
            );
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let answer = parse(&until_closed(&mut stream).await, true);
            assert_eq!(answer.status, 408, "{path} {content_type} {length}");
            assert!(answer.text().contains("0.5 s"), "{}", answer.text());
        }
    }
    // Byte by byte is no better where all of it has to stand in memory.
    let head = "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\nContent-Length: 1000\r\n\r\n";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let sending = async {
        while writing.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, reading.read_to_end(&mut bytes));
    tokio::select! {
        () = sending => {}
        read = reading => assert!(read.is_ok(), "the connection stays open"),
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_no_answer_is_given_up() {
    let server = start().await;
    let mut deaf = Vec::new();
    for bytes in unread_ones() {
        let stream = TcpStream::connect(server.address).await.unwrap();
        deaf.push(until_given_up(stream, &bytes).await);
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_no_answer_within_tls_is_given_up() {
    let ours = tls::authority();
    let served = tls::certified(&ours, &["localhost"], &[]);
    let mut server = TestServer::start_with(|options| {
        hurry(options);
        let directory = options.db.parent().unwrap().to_owned();
        options.tls = Some(tls::put(&directory, &served));
    })
    .await;
    let mut deaf = Vec::new();
    for bytes in unread_ones() {
        let stream = tls::connect(server.address, &ours, None).await.unwrap();
        deaf.push(until_given_up(stream, &bytes).await);
    }
    // None of them is open: the end would wait for them.
    server.ask_to_stop();
    let stopped = tokio::time::timeout(PATIENCE, server.stopped()).await;
    stopped.expect("nothing is left to wait for");
}

/// A request with a long answer; and many with short ones, behind each other on one connection.
fn unread_ones() -> [Vec<u8>; 2] {
    [
        request("GET", &query_path(ENDLESS_ROWS), &[]),
        b"GET /console.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20_000),
    ]
}

/// Sends, and reads nothing, until the server closes the connection; what is left of that.
async fn until_given_up<S: AsyncWrite + Unpin>(mut stream: S, bytes: &[u8]) -> S {
    let sending = async {
        let _ = stream.write_all(bytes).await;
        // Its end comes as an error, for what it sends is not read any more.
        while stream.write_all(b"GET / HTTP/1.1\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, sending).await;
    assert!(ended.is_ok(), "the connection stays open");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_that_dawdles_gets_408_and_one_that_does_not_is_taken() {
    let server = start().await;
    let head = "POST /graphs?default HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/n-triples\r\nTransfer-Encoding: chunked\r\n\r\n";
    let line = |n: usize| format!("<x:s{n}> <x:p> \"{}\" .\n", "x".repeat(200));
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    // Always in time for the next piece, and never enough.
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    writing.write_all(head.as_bytes()).await.unwrap();
    let piece = chunk(" ");
    let sending = tokio::spawn(async move {
        while writing.write_all(&piece).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, reading.read_to_end(&mut bytes)).await;
    assert!(read.is_ok(), "the connection stays open");
    sending.abort();
    let answer = parse(&bytes, true);
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert!(
        answer.text().contains("1000 bytes a second"),
        "{}",
        answer.text()
    );

    // Slowly, and enough: for longer than the window.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for n in 0..30 {
        stream.write_all(&chunk(&line(n))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let answer = parse(&until_closed(&mut stream).await, true);
    assert_eq!(answer.status, 200, "{}", answer.text());
}
