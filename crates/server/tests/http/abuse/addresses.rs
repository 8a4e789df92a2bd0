//! SERVICE and LOAD as a way to internal addresses: this machine and its network, in every notation
//! of an address.

use super::endpoint::{answering, found, moved};
use super::{CSV, assert_unharmed, beginning, update};
use crate::client::{Answer, ask};
use crate::fixture::TestServer;
use orrery_http_client::AllowList;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

async fn allowing(entries: &[&str]) -> TestServer {
    TestServer::start_with(|options| {
        let list = AllowList::parse(entries).unwrap();
        options.endpoints.allow = list.clone();
        options.endpoints.timeout = Duration::from_secs(20);
        options.load_allow = list;
    })
    .await
}

async fn service(server: &TestServer, address: &str) -> Answer {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ SERVICE <{address}> {{ ?s ?p ?o }} }}");
    ask(server.address, &query, &[CSV]).await
}

/// Somebody on this machine who notes that he was asked.
async fn inside() -> (u16, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, asked)
}

const FORBIDDEN_HOSTS: [&str; 33] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "%31%32%37.0.0.1",
    "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "0.0.0.0",
    "0",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "169.254.169.254",
    "2852039166",
    "10.0.0.1",
    "192.168.0.1",
    "localhost",
    "localhost.",
    "a.localhost",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_an_inner_address_is_asked() {
    let (port, asked) = inside().await;
    // Everything public may be asked, and one host by its name.
    for entries in [&["*"][..], &["example.org"]] {
        let server = allowing(entries).await;
        for host in FORBIDDEN_HOSTS {
            let address = format!("http://{host}:{port}/x");
            let answer = service(&server, &address).await;
            assert!(
                [400, 502].contains(&answer.status),
                "{host}: {}",
                beginning(&answer)
            );
            let silent = format!("SELECT * {{ SERVICE SILENT <{address}> {{ ?s ?p ?o }} }}");
            let silent = ask(server.address, &silent, &[CSV]).await;
            assert!(
                silent.status == 400 || silent.text() == "s,p,o\r\n,,\r\n",
                "{host}"
            );
            let loaded = update(server.address, &format!("LOAD <{address}>")).await;
            assert!(loaded.status >= 400, "{host}: {}", beginning(&loaded));
        }
        assert_unharmed(&server).await;
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_schemes_and_hosts_in_disguise_are_not_asked() {
    let (port, asked) = inside().await;
    let server = allowing(&["*", "example.org"]).await;
    for address in [
        "file:///etc/passwd".to_owned(),
        "file://localhost/etc/passwd".to_owned(),
        format!("gopher://127.0.0.1:{port}/_GET"),
        format!("ftp://127.0.0.1:{port}/"),
        format!("dict://127.0.0.1:{port}/"),
        format!("ws://127.0.0.1:{port}/"),
        "data:text/turtle,%3Ca:s%3E".to_owned(),
        "jar:http://example.org!/".to_owned(),
        format!("http://example.org@127.0.0.1:{port}/"),
        format!("http://example.org:80@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}#@example.org/"),
        format!("http://127.0.0.1:{port}?@example.org/"),
        format!("http:127.0.0.1:{port}/"),
        format!("http:///127.0.0.1:{port}/"),
        format!("HTTP://127.0.0.1:{port}/"),
        "http://".to_owned(),
        "urn:x".to_owned(),
    ] {
        let answer = service(&server, &address).await;
        assert!(answer.status >= 400, "{address}: {}", beginning(&answer));
        let loaded = update(server.address, &format!("LOAD <{address}>")).await;
        assert!(loaded.status >= 400, "{address}: {}", beginning(&loaded));
        for answer in [answer, loaded] {
            assert!(!answer.text().contains("root:"), "{}", beginning(&answer));
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_does_not_lead_inside() {
    let (port, asked) = inside().await;
    let server = allowing(&["127.0.0.1"]).await;
    for to in [
        format!("http://localhost:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://127.0.0.2:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("//127.0.0.2:{port}/"),
        format!("\\\\127.0.0.2:{port}\\"),
        format!("http://user@127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
    ] {
        let other = answering(moved(&to)).await;
        let answer = service(&server, &format!("http://{other}/")).await;
        assert_eq!(answer.status, 502, "{to}: {}", beginning(&answer));
        assert!(!answer.text().contains("root:"), "{}", beginning(&answer));
        let loaded = update(server.address, &format!("LOAD <http://{other}/>")).await;
        assert!(loaded.status >= 400, "{to}: {}", beginning(&loaded));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // A prefix is one for the address that is led to, too.
    let turtle = found("text/turtle", None, b"<a:s> <a:p> <a:o> .");
    let there = answering(turtle).await;
    let here = answering(moved(&format!("http://{there}/secret"))).await;
    let prefixed = allowing(&[&format!("http://{here}/"), &format!("http://{there}/open/")]).await;
    let loaded = update(prefixed.address, &format!("LOAD <http://{here}/>")).await;
    assert!(
        loaded.text().contains("not allowed"),
        "{}",
        beginning(&loaded)
    );
    let loaded = update(
        prefixed.address,
        &format!("LOAD <http://{there}/open/%2e%2e/secret>"),
    )
    .await;
    assert!(
        loaded.text().contains("not allowed"),
        "{}",
        beginning(&loaded)
    );
    assert_unharmed(&prefixed).await;
}

/// Another endpoint's failure reaches the client as one line of text of limited length.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_endpoint_says_is_text_and_short() {
    let server = allowing(&["127.0.0.1"]).await;
    let page = format!(
        "<script>alert(1)</script>\r\n\r\n\u{1b}[2J{}",
        "x".repeat(100_000)
    );
    let mut bytes = found("text/html", None, page.as_bytes());
    bytes.splice(9..15, *b"500 No");
    let other = answering(bytes).await;
    let answer = service(&server, &format!("http://{other}/")).await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().len() < 2_000, "{}", answer.text().len());
    assert!(!answer.text().contains('\u{1b}'));
    assert_eq!(
        answer.header("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
}
