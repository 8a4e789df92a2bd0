//! The smallest HTTP client that notices everything: raw requests, and answers that
//! know whether they came to their end.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer as it came over the wire.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// False if the transfer ended before the answer did.
    pub is_complete: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.headers.iter();
        headers.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

pub fn query_path(query: &str) -> String {
    format!("/sparql?query={}", encode(query))
}

/// A request without a body.
pub fn request(method: &str, path: &str, headers: &[&str]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

pub async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    exchange(address, &request("GET", path, headers)).await
}

pub async fn ask(address: SocketAddr, query: &str, headers: &[&str]) -> Answer {
    get(address, &query_path(query), headers).await
}

pub async fn post(address: SocketAddr, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    send(address, "POST", path, headers, body).await
}

/// A request with a body by any method.
pub async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    let headers: Vec<&str> = headers.iter().copied().chain([length.as_str()]).collect();
    let mut bytes = request(method, path, &headers);
    bytes.extend_from_slice(body);
    exchange(address, &bytes).await
}

/// Sends a request and reads until the server closes.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    let is_clean = stream.read_to_end(&mut bytes).await.is_ok();
    parse(&bytes, is_clean)
}

pub fn parse(bytes: &[u8], is_clean: bool) -> Answer {
    let end = position(bytes, b"\r\n\r\n").expect("an answer with a head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut answer = Answer {
        status: status.parse().unwrap(),
        headers,
        body: Vec::new(),
        is_complete: is_clean,
    };
    let body = &bytes[end + 4..];
    if answer.header("Transfer-Encoding") == Some("chunked") {
        let (body, is_complete) = unchunk(body);
        answer.body = body;
        answer.is_complete &= is_complete;
    } else {
        answer.body = body.to_vec();
        let length = answer.header("Content-Length");
        let length: Option<usize> = length.map(|length| length.parse().unwrap());
        answer.is_complete &= length.is_none_or(|length| length == body.len());
    }
    answer
}

/// The data of a chunked body, and whether its last chunk was there.
fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = position(rest, b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let from = end + 2;
        if rest.len() < from + size + 2 {
            body.extend_from_slice(&rest[from.min(rest.len())..]);
            return (body, false);
        }
        body.extend_from_slice(&rest[from..from + size]);
        rest = &rest[from + size + 2..];
    }
    (body, false)
}

fn position(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}
