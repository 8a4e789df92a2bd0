//! A server that answers every request with the same bytes, whatever harm they do.

use std::io::Write as _;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every request with these bytes; gives its address.
pub(super) async fn answering(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 64 << 10];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(&answer).await;
                // The rest of the client's bytes is read, so that the connection is not reset
                // before the client has read the answer.
                let _ = socket.shutdown().await;
                while matches!(socket.read(&mut request).await, Ok(1..)) {}
            });
        }
    });
    address
}

/// An answer of this type and coding.
pub(super) fn found(content_type: &str, coding: Option<&str>, body: &[u8]) -> Vec<u8> {
    let coding = coding.map_or_else(String::new, |it| format!("Content-Encoding: {it}\r\n"));
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{coding}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn moved(to: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 307 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .into_bytes()
}

/// Gzip of so many MiB of one byte between two texts.
pub(super) fn gzip_bomb(before: &str, byte: u8, mebibytes: usize, after: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(before.as_bytes()).unwrap();
    for _ in 0..mebibytes {
        gzip.write_all(&[byte; 1 << 20]).unwrap();
    }
    gzip.write_all(after.as_bytes()).unwrap();
    gzip.finish().unwrap()
}
