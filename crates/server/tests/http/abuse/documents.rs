//! Small documents and answers that expand (XML entities, compression), and documents that try to
//! read files.

use super::endpoint::{answering, found, gzip_bomb};
use super::{CSV, assert_unharmed, beginning, update};
use crate::client::{ask, send};
use crate::fixture::TestServer;
use orrery_http_client::AllowList;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const RDF_XML: &str = "Content-Type: application/rdf+xml";
const RESULTS_XML: &str = "application/sparql-results+xml";
const GZIP: &str = "Content-Encoding: gzip";

async fn start(memory_bytes: u64) -> TestServer {
    TestServer::start_with(|options| {
        let loopback = AllowList::parse(["127.0.0.1"]).unwrap();
        options.memory_bytes = memory_bytes;
        options.load_allow = loopback.clone();
        options.load_dir = options.db.parent().map(Into::into);
        options.endpoints.allow = loopback;
        options.endpoints.timeout = Duration::from_secs(60);
    })
    .await
}

/// One statement, whose object is this text.
fn document(doctype: &str, text: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n{doctype}\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\">\n\
         <rdf:Description rdf:about=\"http://e/bomb\"><e:p>{text}</e:p></rdf:Description>\n</rdf:RDF>\n"
    )
}

/// Each entity is ten times the one before.
fn billion_laughs() -> String {
    let mut doctype = "<!DOCTYPE rdf:RDF [<!ENTITY a0 \"ha\">\n".to_owned();
    for line in 1..30 {
        let before = format!("&a{};", line - 1).repeat(10);
        doctype.push_str(&format!("<!ENTITY a{line} \"{before}\">\n"));
    }
    document(&format!("{doctype}]>"), "&a29;")
}

/// One long entity, very often.
fn quadratic_blow_up() -> String {
    let doctype = format!("<!DOCTYPE rdf:RDF [<!ENTITY a \"{}\">]>", "x".repeat(4_000));
    document(&doctype, &"&a;".repeat(1 << 20))
}

async fn assert_nothing_came(server: &TestServer) {
    let bomb = "ASK { { <http://e/bomb> ?p ?o } UNION { GRAPH ?g { <http://e/bomb> ?p ?o } } }";
    let answer = ask(server.address, bomb, &[CSV]).await;
    assert_eq!(answer.text().trim(), "false");
    assert_unharmed(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_unfold_are_refused_in_uploads_and_in_what_is_loaded() {
    let server = start(256 << 20).await;
    for bomb in [billion_laughs(), quadratic_blow_up()] {
        for (method, path) in [
            ("PUT", "/graphs?graph=http://e/g"),
            ("POST", "/graphs?default"),
        ] {
            let answer = send(server.address, method, path, &[RDF_XML], bomb.as_bytes()).await;
            assert_eq!(answer.status, 400, "{}", beginning(&answer));
            assert!(answer.text().contains("entit"), "{}", beginning(&answer));
        }
        // As a load in bulk, which a body of unknown length is.
        let mut chunked = format!(
            "POST /graphs?default HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{RDF_XML}\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            bomb.len()
        );
        chunked.push_str(&bomb);
        chunked.push_str("\r\n0\r\n\r\n");
        let answer = crate::client::exchange(server.address, chunked.as_bytes()).await;
        assert_eq!(answer.status, 400, "{}", beginning(&answer));
        assert!(answer.text().contains("entit"), "{}", beginning(&answer));

        let endpoint = answering(found("application/rdf+xml", None, bomb.as_bytes())).await;
        let file = server.directory().join("bomb.rdf");
        std::fs::write(&file, &bomb).unwrap();
        for address in [
            format!("http://{endpoint}/"),
            format!("file://{}", file.display()),
        ] {
            let answer = update(server.address, &format!("LOAD <{address}>")).await;
            assert!(answer.status >= 400, "{}", beginning(&answer));
            assert!(answer.text().contains("entit"), "{}", beginning(&answer));
        }
    }
    assert_nothing_came(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_entities_are_not_read() {
    let server = start(256 << 20).await;
    let secret = server.directory().join("secret.txt");
    std::fs::write(&secret, "the secret").unwrap();
    let (asked, mut was_asked) = tokio::sync::mpsc::channel::<()>(1);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            let _ = asked.send(()).await;
        }
    });
    let file = format!("file://{}", secret.display());
    for (doctype, text) in [
        (
            format!("<!DOCTYPE r [<!ENTITY x SYSTEM \"{file}\">]>"),
            "&x;",
        ),
        (
            format!("<!DOCTYPE r [<!ENTITY x PUBLIC \"-\" \"{file}\">]>"),
            "&x;",
        ),
        (
            format!("<!DOCTYPE r [<!ENTITY % x SYSTEM \"http://{elsewhere}/a.dtd\"> %x;]>"),
            "text",
        ),
        (
            format!("<!DOCTYPE r SYSTEM \"http://{elsewhere}/a.dtd\" [<!ENTITY x \"&y;\">]>"),
            "&x;",
        ),
        (
            String::new(),
            &format!(
                "<x:include xmlns:x=\"http://www.w3.org/2001/XInclude\" href=\"{file}\" parse=\"text\"/>"
            ),
        ),
    ] {
        let body = document(&doctype, text);
        let put = send(
            server.address,
            "PUT",
            "/graphs?default",
            &[RDF_XML],
            body.as_bytes(),
        )
        .await;
        assert!((200..500).contains(&put.status), "{}", beginning(&put));
        let all = "SELECT * { ?s ?p ?o }";
        let answer = ask(server.address, all, &[CSV]).await;
        assert!(!answer.text().contains("the secret"), "{doctype}");
        assert!(!put.text().contains("the secret"), "{}", put.text());
    }
    assert!(was_asked.try_recv().is_err(), "somebody was asked");
}

/// What a SELECT over SERVICE gets for these bytes.
async fn service(server: &TestServer, answer: Vec<u8>) -> crate::client::Answer {
    let endpoint = answering(answer).await;
    let query = format!(
        "SELECT (COUNT(?x) AS ?n) (MAX(STRLEN(STR(?x))) AS ?length) {{ SERVICE <http://{endpoint}/> {{ ?s ?p ?x }} }}"
    );
    ask(server.address, &query, &[CSV]).await
}

fn results(doctype: &str, term: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>{doctype}<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">\
         <head><variable name=\"s\"/><variable name=\"p\"/><variable name=\"x\"/></head><results><result>\
         <binding name=\"s\"><uri>a:s</uri></binding><binding name=\"p\"><uri>a:p</uri></binding>\
         <binding name=\"x\">{term}</binding></result></results></sparql>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_other_endpoints_have_no_entities() {
    let server = start(256 << 20).await;
    let plain = results("", "<literal>12345</literal>");
    let answer = service(&server, found(RESULTS_XML, None, plain.as_bytes())).await;
    assert_eq!(answer.text(), "n,length\r\n1,5\r\n");
    for doctype in [
        "<!DOCTYPE r [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
        "<!DOCTYPE r [<!ENTITY y \"ha\"><!ENTITY x \"&y;&y;&y;\">]>",
    ] {
        let text = results(doctype, "<literal>&x;</literal>");
        let answer = service(&server, found(RESULTS_XML, None, text.as_bytes())).await;
        assert_eq!(answer.status, 502, "{}", beginning(&answer));
        assert!(!answer.text().contains("root:"), "{}", beginning(&answer));
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_nested_very_deep_end_their_query_alone() {
    const DEPTH: usize = 100_000;
    let server = start(256 << 20).await;
    let json = {
        let open = "{\"type\":\"triple\",\"value\":{\"subject\":{\"type\":\"uri\",\"value\":\"a:s\"},\
                    \"predicate\":{\"type\":\"uri\",\"value\":\"a:p\"},\"object\":";
        let inside = "{\"type\":\"uri\",\"value\":\"a:o\"}";
        format!(
            "{{\"head\":{{\"vars\":[\"s\",\"p\",\"x\"]}},\"results\":{{\"bindings\":[{{\"s\":{inside},\"p\":{inside},\"x\":{}{inside}{}}}]}}}}",
            open.repeat(DEPTH),
            "}}".repeat(DEPTH)
        )
    };
    let xml = {
        let open = "<triple><subject><uri>a:s</uri></subject><predicate><uri>a:p</uri></predicate><object>";
        let term = format!(
            "{}<uri>a:o</uri>{}",
            open.repeat(DEPTH),
            "</object></triple>".repeat(DEPTH)
        );
        results("", &term)
    };
    let tsv = format!(
        "?s\t?p\t?x\n<a:s>\t<a:p>\t{}<a:o>{}\n",
        "<<( <a:s> <a:p> ".repeat(DEPTH),
        " )>>".repeat(DEPTH)
    );
    for (content_type, text) in [
        ("application/sparql-results+json", json),
        (RESULTS_XML, xml),
        ("text/tab-separated-values", tsv.replace(" )>>", "")),
        ("text/tab-separated-values", tsv),
    ] {
        let answer = service(&server, found(content_type, None, text.as_bytes())).await;
        assert_eq!(answer.status, 502, "{content_type} {}", beginning(&answer));
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_nested_very_deep_are_refused() {
    const DEPTH: usize = 100_000;
    let server = start(1 << 30).await;
    let turtle = |open: &str, close: &str| {
        let (open, close) = (open.repeat(DEPTH), close.repeat(DEPTH));
        format!("<a:s> <a:p> {open}<a:o>{close} .")
    };
    let xml = {
        let open = "<rdf:Description><e:p>".repeat(DEPTH);
        let close = "</e:p></rdf:Description>".repeat(DEPTH);
        document("", &format!("{open}{close}"))
    };
    let json = |open: &str, close: &str| format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
    for (content_type, text) in [
        ("text/turtle", turtle("<<( <a:s> <a:p> ", " )>>")),
        ("text/turtle", turtle("<< <a:s> <a:p> ", " >>")),
        ("text/turtle", turtle("( ", " )")),
        ("text/turtle", turtle("[ <a:p> ", " ]")),
        ("application/trig", turtle("<<( <a:s> <a:p> ", " )>>")),
        ("application/n-triples", turtle("<<( <a:s> <a:p> ", " )>>")),
        ("application/n-quads", turtle("<<( <a:s> <a:p> ", " )>>")),
        ("application/rdf+xml", xml),
        ("application/ld+json", json("[", "]")),
        ("application/ld+json", json("{\"a:p\":", "}")),
        ("application/ld+json", json("{\"@list\":[", "]}")),
        ("application/ld+json", json("{\"@graph\":[", "]}")),
        ("application/ld+json", json("{\"@context\":", "}")),
    ] {
        let content_type = format!("Content-Type: {content_type}");
        let put = "/graphs?graph=http://e/g";
        let answer = send(
            server.address,
            "PUT",
            put,
            &[&content_type],
            text.as_bytes(),
        )
        .await;
        let shown: String = text.chars().take(60).collect();
        // Lists and blank nodes may nest: they are statements one after the other.
        assert!(
            answer.status < 500 || answer.status == 507,
            "{shown} {} {}",
            answer.status,
            beginning(&answer)
        );
    }
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_and_documents_meet_their_limits() {
    let server = TestServer::start_with(|options| {
        let loopback = AllowList::parse(["127.0.0.1"]).unwrap();
        options.memory_bytes = 64 << 20;
        options.load_allow = loopback.clone();
        options.endpoints.allow = loopback;
        options.endpoints.answer_bytes_max = 8 << 20;
    })
    .await;
    let blank = gzip_bomb("", b' ', 100, "{}");
    for content_type in ["application/sparql-results+json", RESULTS_XML] {
        let answer = service(&server, found(content_type, Some("gzip"), &blank)).await;
        assert_eq!(answer.status, 502, "{}", beginning(&answer));
        assert!(
            answer.text().contains("larger than the limit"),
            "{}",
            beginning(&answer)
        );
    }
    let long = gzip_bomb("<http://e/bomb> <http://e/p> \"", b'x', 200, "\" .");
    for content_type in ["application/n-triples", "text/turtle"] {
        let endpoint = answering(found(content_type, Some("gzip"), &long)).await;
        let answer = update(server.address, &format!("LOAD <http://{endpoint}/>")).await;
        assert!(answer.status >= 400, "{}", beginning(&answer));
        assert!(answer.text().contains("memory"), "{}", beginning(&answer));
        // A file that is compressed itself.
        let endpoint = answering(found(content_type, None, &long)).await;
        let answer = update(server.address, &format!("LOAD <http://{endpoint}/>")).await;
        assert!(answer.status >= 400, "{}", beginning(&answer));
    }
    let xml = gzip_bomb("<?xml version=\"1.0\"?><!-- ", b'x', 200, " --><r/>");
    let put = "/graphs?default";
    let answer = send(server.address, "PUT", put, &[RDF_XML, GZIP], &xml).await;
    assert_eq!(answer.status, 507, "{}", beginning(&answer));
    let zeros = vec![b'x'; 100 << 20];
    let twice = zstd_of(&zeros);
    let zstd = "Content-Encoding: zstd";
    let answer = send(
        server.address,
        "PUT",
        put,
        &["Content-Type: text/turtle", zstd],
        &twice,
    )
    .await;
    assert_eq!(answer.status, 507, "{}", beginning(&answer));
    assert_nothing_came(&server).await;
}

/// A zstd frame that repeats one byte, written by hand: blocks of run length (RFC 8878, 3.1.1.2).
fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 128 << 10;
    // The magic number; a window of 128 KiB, and no length of the content.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let mut blocks = bytes.chunks(BLOCK_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        let head = (u32::try_from(block.len()).unwrap() << 3) | (1 << 1) | is_last;
        frame.extend_from_slice(&head.to_le_bytes()[..3]);
        frame.push(block[0]);
    }
    frame
}

/// A server that sends these bytes and then stalls; it reports when it was asked, and when the
/// client has gone.
async fn stalling(answer: Vec<u8>) -> (SocketAddr, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel(2);
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4 << 10];
        assert!(socket.read(&mut request).await.unwrap() > 0);
        socket.write_all(&answer).await.unwrap();
        tell.send("asked").await.unwrap();
        while matches!(socket.read(&mut request).await, Ok(1..)) {}
        tell.send("gone").await.unwrap();
    });
    (address, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_not_waited_for_when_its_client_has_gone() {
    let server = start(256 << 20).await;
    let half = "HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\nContent-Length: 1000\r\n\r\n<a> <b> <c> .\n";
    for answer in ["", half] {
        let (endpoint, mut told) = stalling(answer.into()).await;
        let text = format!("LOAD SILENT <http://{endpoint}/>");
        let request = format!(
            "POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-update\r\n\
             Content-Length: {}\r\n\r\n{text}",
            text.len()
        );
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(told.recv().await, Some("asked"));
        drop(client);
        // Far below the time that it may take.
        let gone = tokio::time::timeout(Duration::from_secs(20), told.recv()).await;
        assert_eq!(
            gone.expect("it is still waited for"),
            Some("gone"),
            "{answer}"
        );
    }
    assert_unharmed(&server).await;
}
