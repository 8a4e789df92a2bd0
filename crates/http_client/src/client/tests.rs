//! The client against a small HTTP server on loopback that answers what the path asks for.

use std::io::{Read as _, Write as _};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Answers by path; gives the address.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                    match socket.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(length) => request.extend_from_slice(&buffer[..length]),
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let _ = socket.write_all(&answer(&request, address)).await;
                if request.contains("/stall") {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    address
}

fn answer(request: &str, address: SocketAddr) -> Vec<u8> {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let redirect = |status: u16, to: &str| {
        format!("HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .into_bytes()
    };
    let plain = |body: &[u8], more: &str| {
        let length = body.len();
        let mut bytes = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        bytes
    };
    match path {
        "/text" => plain(b"hello", "Content-Type: text/turtle; charset=utf-8\r\n"),
        "/echo" => plain(request.as_bytes(), ""),
        "/gzip" => plain(&gzip(b"hello hello hello"), "Content-Encoding: gzip\r\n"),
        "/cut" => plain(
            &gzip(b"hello hello hello")[..12],
            "Content-Encoding: gzip\r\n",
        ),
        "/bomb" => plain(&gzip(&vec![0; 4 << 20]), "Content-Encoding: gzip\r\n"),
        "/br" => plain(b"hello", "Content-Encoding: br\r\n"),
        "/large" => plain(&[b'x'; 5000], ""),
        "/endless" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
            bytes.extend_from_slice(&[b'x'; 5000]);
            bytes
        }
        "/stall" => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec(),
        "/moved" => redirect(301, "/text"),
        "/see-other" => redirect(303, "/echo"),
        "/again" => redirect(307, "/echo"),
        "/loop" => redirect(302, "/loop"),
        "/nowhere" => redirect(302, "http://"),
        "/to-localhost" => redirect(302, &format!("http://localhost:{}/text", address.port())),
        "/to-user" => redirect(
            302,
            &format!("http://user@127.0.0.1:{}/text", address.port()),
        ),
        "/to-file" => redirect(302, "file:///etc/passwd"),
        _ => b"HTTP/1.1 404 No\r\nContent-Length: 12\r\nConnection: close\r\n\r\nno\r\nsuch\x07one"
            .to_vec(),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn options(allow: &[&str]) -> ClientOptions {
    ClientOptions {
        allow: AllowList::parse(allow).unwrap(),
        timeout: Duration::from_secs(20),
        ..ClientOptions::default()
    }
}

async fn get(client: &Client, address: SocketAddr, path: &str) -> Result<Response, Error> {
    let url = format!("http://{address}{path}");
    client.send(Request::get(url, "*/*")).await
}

async fn text(response: Response) -> Result<Vec<u8>, Error> {
    let mut body = response.body;
    let mut text = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        assert!(!chunk.is_empty());
        text.extend_from_slice(&chunk);
    }
    assert!(body.chunk().await?.is_none());
    Ok(text)
}

#[tokio::test]
async fn an_allowed_document_is_read_with_its_type_and_final_place() {
    let address = server().await;
    let client = Client::new(options(&["127.0.0.1"])).unwrap();
    let response = get(&client, address, "/moved#part").await.unwrap();
    assert_eq!(response.url.as_str(), format!("http://{address}/text"));
    assert_eq!(
        response.content_type.as_deref(),
        Some("text/turtle; charset=utf-8")
    );
    assert_eq!(text(response).await.unwrap(), b"hello");
    let response = get(&client, address, "/gzip").await.unwrap();
    assert_eq!(text(response).await.unwrap(), b"hello hello hello");
}

#[tokio::test]
async fn what_is_not_listed_is_not_asked() {
    let address = server().await;
    for list in [
        &[][..],
        &["example.org"],
        &["*"],
        &["127.0.0.1:1"],
        &["127.0.0.2"],
    ] {
        let client = Client::new(options(list)).unwrap();
        let error = get(&client, address, "/text").await.unwrap_err();
        assert!(matches!(error, Error::NotAllowed { .. }), "{error}");
    }
    let client = Client::new(options(&["*"])).unwrap();
    let error = client
        .send(Request::get("no url", "*/*"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Url { .. }), "{error}");
}

#[tokio::test]
async fn every_redirect_is_checked_again() {
    let address = server().await;
    let client = Client::new(options(&["127.0.0.1"])).unwrap();
    for path in ["/to-localhost", "/to-user", "/to-file"] {
        let error = get(&client, address, path).await.unwrap_err();
        assert!(matches!(error, Error::NotAllowed { .. }), "{path}: {error}");
    }
    for path in ["/loop", "/nowhere"] {
        let error = get(&client, address, path).await.unwrap_err();
        assert!(matches!(error, Error::Redirect { .. }), "{path}: {error}");
    }
    let client = Client::new(options(&["127.0.0.1", "localhost"])).unwrap();
    let response = get(&client, address, "/to-localhost").await.unwrap();
    assert_eq!(text(response).await.unwrap(), b"hello");
}

/// A zone whose owner lets its name lead to this machine.
struct Rebound(Vec<IpAddr>);

impl Lookup for Rebound {
    fn lookup(&self, _: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(addresses) })
    }
}

#[tokio::test]
async fn an_allowed_name_that_leads_to_this_machine_is_refused_when_connecting() {
    let address = server().await;
    let url = format!("http://example.org:{}/text", address.port());
    let ask = |allow: &[&str]| {
        let lookup = Arc::new(Rebound(vec![address.ip()]));
        let client = Client::with_lookup(options(allow), lookup).unwrap();
        let request = Request::get(url.clone(), "*/*");
        async move { client.send(request).await }
    };
    for allow in [&["example.org"][..], &["*"]] {
        let error = ask(allow).await.unwrap_err();
        assert!(matches!(error, Error::NotAllowed { .. }), "{error}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
    let response = ask(&["example.org", "127.0.0.0/8"]).await.unwrap();
    assert_eq!(text(response).await.unwrap(), b"hello");
}

#[tokio::test]
async fn answers_have_limits_of_size_and_time() {
    let address = server().await;
    let limited = ClientOptions {
        received_bytes_max: 4500,
        decoded_bytes_max: 1 << 20,
        ..options(&["127.0.0.1"])
    };
    let client = Client::new(limited).unwrap();
    for (path, decompressed) in [("/large", false), ("/endless", false), ("/bomb", true)] {
        let error = match get(&client, address, path).await {
            Ok(response) => text(response).await.unwrap_err(),
            Err(error) => error,
        };
        let expected = matches!(error, Error::TooLarge { is_decompressed, .. } if is_decompressed == decompressed);
        assert!(expected, "{path}: {error}");
    }
    let hasty = ClientOptions {
        timeout: Duration::from_millis(300),
        ..options(&["127.0.0.1"])
    };
    let client = Client::new(hasty).unwrap();
    let error = match get(&client, address, "/stall").await {
        Ok(response) => text(response).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn failures_and_damaged_answers_are_told() {
    let address = server().await;
    let client = Client::new(options(&["127.0.0.1"])).unwrap();
    let error = get(&client, address, "/none").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("<http://{address}/none> answered with status 404: no suchone")
    );
    for path in ["/cut", "/br"] {
        let error = match get(&client, address, path).await {
            Ok(response) => text(response).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, Error::Content { .. }), "{path}: {error}");
    }
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = get(&client, closed, "/").await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_post_keeps_its_body_over_redirects_but_see_other_reads() {
    let address = server().await;
    let client = Client::new(options(&["127.0.0.1"])).unwrap();
    let post = |path: &str| {
        let url = format!("http://{address}{path}");
        let request = Request::post(url, "a/b", "application/sparql-query", "ASK{}");
        let client = client.clone();
        async move {
            String::from_utf8(text(client.send(request).await?).await?).map_err(|_| unreachable!())
        }
    };
    let again: Result<String, Error> = post("/again").await;
    let again = again.unwrap().to_ascii_lowercase();
    assert!(again.starts_with("post /echo"), "{again}");
    assert!(
        again.contains("content-length: 5") && again.contains("accept: a/b"),
        "{again}"
    );
    let read: Result<String, Error> = post("/see-other").await;
    assert!(read.unwrap().starts_with("GET /echo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_reader_gets_the_bytes_or_the_error() {
    let address = server().await;
    let limited = ClientOptions {
        decoded_bytes_max: 100,
        ..options(&["127.0.0.1"])
    };
    let client = Client::new(limited).unwrap();
    let runtime = tokio::runtime::Handle::current();
    for (path, expected) in [("/gzip", Some("hello hello hello")), ("/bomb", None)] {
        let response = get(&client, address, path).await.unwrap();
        let mut reader = response.body.into_reader(&runtime, std::future::pending());
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        let read = read.await.unwrap();
        assert_eq!(read.as_deref().ok(), expected);
        if let Err(error) = read {
            let inner = error
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<Error>());
            assert!(matches!(inner, Some(Error::TooLarge { .. })), "{error}");
        }
    }
}
