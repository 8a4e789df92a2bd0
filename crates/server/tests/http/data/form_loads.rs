//! Several files in one request (`multipart/form-data`): one commit of any size, with the rights,
//! limits and costs of one document.

use crate::client::{Answer, ask, exchange, get, post, request, send};
use crate::fixture::TestServer;
use crate::usage::metering::limit;
use crate::users::access::{PASSWORD, add_user, basic, grant, some_users, start_with};
use orrery_server::{Server, ServerOptions};
use serde_json::json;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub const FORM: &str = "Content-Type: multipart/form-data; boundary=xyz";
/// Bodies beyond are large, and so are statements that take more memory.
pub const LARGE_BYTES: usize = 256;
const TURTLE: &str = "text/turtle";

/// A part of a form.
#[derive(Clone)]
pub enum Part<'p> {
    Field(&'p str, &'p str),
    /// A file: its name, its media type, what is in it.
    File(&'p str, &'p str, &'p [u8]),
}

pub fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        let (head, content) = match part {
            Part::Field(name, value) => (format!("name=\"{name}\""), value.as_bytes()),
            Part::File(name, "", content) => {
                (format!("name=\"file\"; filename=\"{name}\""), *content)
            }
            Part::File(name, media_type, content) => (
                format!("name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media_type}"),
                *content,
            ),
        };
        let head = format!("--xyz\r\nContent-Disposition: form-data; {head}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--xyz--\r\n");
    body
}

/// A form that does not say how long it is, and comes in small chunks.
pub async fn chunked(address: SocketAddr, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    let headers: Vec<&str> = headers
        .iter()
        .copied()
        .chain(["Transfer-Encoding: chunked"])
        .collect();
    let mut bytes = request("POST", path, &headers);
    for chunk in body.chunks(97) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    exchange(address, &bytes).await
}

pub fn commit(answer: &Answer) -> u64 {
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    json["commit"].as_u64().unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn lines(count: usize) -> String {
    let line = |number| format!("<http://e/s{number}> <http://e/in> <http://e/lines> .\n");
    (0..count).map(line).collect()
}

/// All quads, sorted, but those that the database began with; blank nodes without their names.
async fn quads(address: SocketAddr, headers: &[&str]) -> Vec<String> {
    let headers: Vec<&str> = headers
        .iter()
        .copied()
        .chain(["Accept: application/n-quads"])
        .collect();
    let all = get(address, "/graphs", &headers).await;
    assert_eq!(all.status, 200, "{}", all.text());
    let plain = |line: &str| {
        let words = line.split(' ');
        let words = words.map(|word| if word.starts_with("_:") { "_:b" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    let all = all.text().lines().filter(|line| line.contains("//e/"));
    let mut all: Vec<String> = all.map(plain).collect();
    all.sort();
    all
}

async fn small_memory() -> TestServer {
    TestServer::start_with(|options| options.http.update_bytes_max = LARGE_BYTES).await
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_one_commit_and_the_same_however_they_come() {
    let many = gzip(&lines(300));
    let body = form(&[
        Part::File(
            "a.nq",
            "application/n-quads",
            b"<http://e/q> <http://e/p> _:b <http://e/g> .\n_:b <http://e/p> \"1\" .\n",
        ),
        Part::Field("default", ""),
        Part::File("b.ttl", TURTLE, b"<rel> <http://e/p> _:b ."),
        Part::File("lines.nt.gz", "application/octet-stream", &many),
        Part::Field("graph", "http://e/other"),
        Part::File("c.ttl", "", b"_:b <http://e/p> <> , _:b ."),
        Part::File("d.nt", "", b""),
    ]);
    let mut found = Vec::new();
    for is_small in [false, true] {
        for is_chunked in [false, true] {
            let server = match is_small {
                true => small_memory().await,
                false => TestServer::start().await,
            };
            let address = server.address;
            let before = b"<http://e/before> <http://e/p> 1 .";
            let turtle = [&*format!("Content-Type: {TURTLE}")];
            let before = commit(&post(address, "/graphs?default", &turtle, before).await);
            let answer = match is_chunked {
                true => chunked(address, "/graphs", &[FORM], &body).await,
                false => post(address, "/graphs", &[FORM], &body).await,
            };
            assert_eq!(commit(&answer), before + 1, "{is_small} {is_chunked}");
            // Whether it was a load in bulk, which the change feed does not tell.
            let changes = get(address, &format!("/changes?since={before}"), &[]).await;
            let is_told = changes.status == 200 && changes.text().contains("//e/other");
            assert_eq!(is_told, !is_small, "{}", changes.text());
            found.push(quads(address, &[]).await);
        }
    }
    for other in &found[1..] {
        assert_eq!(&found[0], other);
    }
    let all = &found[0];
    assert_eq!(all.len(), 306, "{all:?}");
    for expected in [
        "<http://e/q> <http://e/p> _:b <http://e/g> .",
        "<http://e/s299> <http://e/in> <http://e/lines> .",
        "_:b <http://e/p> <http://e/other> <http://e/other> .",
        "_:b <http://e/p> _:b <http://e/other> .",
    ] {
        assert!(all.iter().any(|line| line == expected), "{expected}");
    }
    let relative = all.iter().find(|line| line.contains("rel>")).unwrap();
    assert_eq!(
        relative, "<http://localhost/rel> <http://e/p> _:b .",
        "its base is the request's"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn blank_nodes_are_of_their_files() {
    for is_small in [false, true] {
        let server = match is_small {
            true => small_memory().await,
            false => TestServer::start().await,
        };
        let same: &[u8] =
            b"_:b <http://e/p> \"a text that takes some memory with many others of its kind\" .";
        let files: Vec<String> = (0..5).map(|number| format!("{number}.ttl")).collect();
        let parts: Vec<Part<'_>> = files
            .iter()
            .map(|name| Part::File(name, "", same))
            .collect();
        let body = form(&parts);
        commit(&post(server.address, "/graphs?default", &[FORM], &body).await);
        let count = "SELECT (COUNT(DISTINCT ?b) AS ?n) { ?b <http://e/p> ?o }";
        let count = ask(server.address, count, &["Accept: text/csv"]).await;
        assert_eq!(count.text(), "n\r\n5\r\n", "{is_small}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_in_one_file_leaves_nothing_and_names_the_file() {
    let good = lines(100);
    let wrong = [
        Part::File("in/wrong.ttl", "", b"<http://e/s> <http://e/p>\n ."),
        Part::File(
            "in/wrong.nt",
            "",
            b"<http://e/s> <http://e/p> <http://e/o> .\n<http://e/s> .\n",
        ),
        Part::File("in/page.ttl", "", b"<!DOCTYPE html><html></html>"),
        Part::File("in/cut.nt.gz", "", &[0x1f, 0x8b, 8, 0]),
    ];
    for is_small in [false, true] {
        let server = match is_small {
            true => small_memory().await,
            false => TestServer::start().await,
        };
        for wrong in &wrong {
            let body = form(&[
                Part::File("good.nt", "", good.as_bytes()),
                wrong.clone(),
                Part::File("better.nt", "", good.as_bytes()),
            ]);
            let Part::File(name, ..) = wrong else {
                continue;
            };
            for is_chunked in [false, true] {
                let refused = match is_chunked {
                    true => chunked(server.address, "/graphs?default", &[FORM], &body).await,
                    false => post(server.address, "/graphs?default", &[FORM], &body).await,
                };
                assert_eq!(refused.status, 400, "{name}: {}", refused.text());
                assert!(refused.text().contains(name), "{}", refused.text());
                assert!(!refused.text().contains("load-body"), "{}", refused.text());
            }
        }
        // What a form may not be.
        for (parts, status, says) in [
            (&[][..], 400, "has no file"),
            (&[Part::Field("graph", "http://e/g")], 400, "has no file"),
            (
                &[Part::Field("graph", "no IRI"), Part::File("a.nt", "", b"")],
                400,
                "no absolute IRI",
            ),
            (
                &[Part::File("a.xyz", "", b"")],
                415,
                "the name of `a.xyz` tells",
            ),
            (
                &[Part::Field("other", "")],
                415,
                "the name of `other` tells",
            ),
        ] {
            let refused = post(server.address, "/graphs?default", &[FORM], &form(parts)).await;
            assert_eq!(refused.status, status, "{}", refused.text());
            assert!(refused.text().contains(says), "{}", refused.text());
        }
        let cut = form(&[Part::File("good.nt", "", good.as_bytes())]);
        let cut = post(
            server.address,
            "/graphs?default",
            &[FORM],
            &cut[..cut.len() - 10],
        )
        .await;
        assert_eq!(cut.status, 400, "{}", cut.text());
        assert!(
            cut.text().contains("multipart body is broken"),
            "{}",
            cut.text()
        );
        let packed = gzip("--xyz--");
        let coded = [FORM, "Content-Encoding: gzip"];
        let packed = post(server.address, "/graphs?default", &coded, &packed).await;
        assert_eq!(packed.status, 400, "{}", packed.text());
        assert_eq!(quads(server.address, &[]).await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn triples_without_a_graph_make_one_where_they_are_few() {
    let server = small_memory().await;
    let triple = format!("<http://e/s> <http://e/p> 1 . #{}", "-".repeat(LARGE_BYTES));
    let few = form(&[
        Part::File("a.ttl", "", triple.as_bytes()),
        Part::File(
            "b.nq",
            "",
            b"<http://e/s> <http://e/p> \"2\" <http://e/g> .",
        ),
    ]);
    let made = post(server.address, "/graphs", &[FORM], &few).await;
    let limits = TestServer::start().await;
    let made_in_memory = post(limits.address, "/graphs", &[FORM], &few).await;
    assert_eq!(made_in_memory.status, 201, "{}", made_in_memory.text());
    let location = made_in_memory.header("Location").unwrap();
    let all = quads(limits.address, &[]).await;
    assert_eq!(all.len(), 2);
    assert!(all[0].contains(location), "{all:?}");
    assert!(all[1].ends_with("<http://e/g> ."), "{all:?}");
    // Where much is sent, it has to say where it goes.
    assert_eq!(made.status, 400, "{}", made.text());
    assert!(
        made.text().contains("a.ttl is of triples"),
        "{}",
        made.text()
    );
    let put = [
        Part::Field("graph", "http://e/h"),
        Part::File("a.ttl", "", b"<http://e/s> <http://e/p> 1 ."),
    ];
    let put = send(
        limits.address,
        "PUT",
        "/graphs?default",
        &[FORM],
        &form(&put),
    )
    .await;
    assert_eq!(put.status, 400, "{}", put.text());
    assert!(
        put.text().contains("PUT replaces the one graph"),
        "{}",
        put.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_asked_before_the_files_are_read() {
    let server = start_with(&some_users(), |options| {
        options.http.update_bytes_max = LARGE_BYTES;
    })
    .await;
    let address = server.address;
    let (ann, bob) = (basic("ann", PASSWORD), basic("bob", PASSWORD));
    // Nothing of the body is sent.
    let length = ["Content-Length: 1000000", "Transfer-Encoding: chunked"];
    for length in length {
        for path in [
            "/graphs",
            "/graphs?default",
            "/graphs?graph=http://example.com/g2",
        ] {
            let refused = exchange(address, &request("POST", path, &[FORM, &ann, length])).await;
            assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        }
    }
    // Of a form that goes elsewhere only the head of the first file is read.
    for first in [
        form(&[Part::Field("default", ""), Part::File("a.nt", "", b"")]),
        form(&[
            Part::Field("graph", "http://example.com/g1"),
            Part::File("a.nt", "", b""),
        ]),
        form(&[Part::File("a.nq", "", b"")]),
    ] {
        let begun = first.len() - "\r\n--xyz--\r\n".len();
        let path = "/graphs?graph=http://example.com/g2";
        let mut bytes = request("POST", path, &[FORM, &bob, length[0]]);
        bytes.extend_from_slice(&first[..begun]);
        let refused = exchange(address, &bytes).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    // Small ones, too.
    let others = [Part::Field("default", ""), Part::File("a.nt", "", b"")];
    let others = post(address, "/graphs", &[FORM, &bob], &form(&others)).await;
    assert_eq!(others.status, 403, "{}", others.text());
    let quads_of_g1 = b"<http://e/s> <http://e/p> \"1\" <http://example.com/g1> .";
    let others = form(&[Part::File("a.nq", "", quads_of_g1)]);
    let others = post(address, "/graphs", &[FORM, &bob], &others).await;
    assert_eq!(others.status, 403, "{}", others.text());
    // What bob may change, he may change so.
    let lines = lines(100);
    let own = [
        Part::Field("graph", "http://example.com/g2"),
        Part::File("a.nt", "", lines.as_bytes()),
    ];
    commit(&post(address, "/graphs", &[FORM, &bob], &form(&own)).await);
    commit(&chunked(address, "/graphs", &[FORM, &bob], &form(&own)).await);
    let root = basic("root", PASSWORD);
    assert_eq!(quads(address, &[&root]).await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_load_nothing_into_mapped_graphs() {
    let server = small_memory().await;
    let address = server.address;
    let mapped =
        "create table item (id int primary key, name text); insert into item values (1, 'lamp');
        create graph 'http://e/mapped' from tables base 'http://e/'";
    let sql = "Content-Type: application/sql";
    let made = post(address, "/sql", &[sql], mapped.as_bytes()).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let lines = lines(100);
    let in_quads = lines.replace(" .\n", " <http://e/mapped> .\n");
    for file in [
        Part::File("a.nt", "", b"<http://e/s> <http://e/p> \"1\" ."),
        Part::File("a.nt", "", lines.as_bytes()),
        Part::File("a.nq", "", in_quads.as_bytes()),
    ] {
        let body = form(&[
            Part::File("first.nq", "", b""),
            Part::Field("graph", "http://e/mapped"),
            file,
        ]);
        for answer in [
            post(address, "/graphs", &[FORM], &body).await,
            chunked(address, "/graphs", &[FORM], &body).await,
        ] {
            assert_eq!(answer.status, 400, "{}", answer.text());
            assert!(
                answer.text().contains("is mapped from tables"),
                "{}",
                answer.text()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_is_a_load_that_keeps_history_takes_no_conditions_and_costs() {
    let server = small_memory().await;
    let address = server.address;
    let load = |number: usize| {
        let text = lines(100).replace("lines", &number.to_string());
        form(&[
            Part::File("a.nt", "", text.as_bytes()),
            Part::File(
                "b.ttl",
                "",
                b"@prefix mine: <http://e/mine/> . mine:s mine:p mine:o .",
            ),
        ])
    };
    let path = "/graphs?default";
    commit(&post(address, path, &[FORM], &load(0)).await);
    let prefixes = get(address, "/prefixes", &[]).await;
    assert!(
        prefixes.text().contains("http://e/mine/"),
        "{}",
        prefixes.text()
    );
    let condition = post(address, path, &[FORM, "If-Match: *"], &load(1)).await;
    assert_eq!(condition.status, 400, "{}", condition.text());
    assert!(
        condition.text().contains("conditions"),
        "{}",
        condition.text()
    );
    commit(&chunked(address, path, &[FORM], &load(1)).await);
    let refused = post(address, path, &[FORM], &load(2)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(
        refused.text().contains("forget-history=true"),
        "{}",
        refused.text()
    );
    commit(
        &post(
            address,
            "/graphs?default&forget-history=true",
            &[FORM],
            &load(2),
        )
        .await,
    );

    // Three thousand quads are there to be written anew, and a hundred come.
    let ann = basic("ann", PASSWORD);
    for (touches, expected) in [(2_000, 429), (3_080, 429), (10_000, 200)] {
        let commands = [
            add_user("root", true),
            add_user("ann", false),
            grant(json!({"user": "ann"}), "write", json!("default_graph")),
            grant(json!({"user": "ann"}), "read", json!("default_graph")),
            limit(
                json!({"user": "ann"}),
                json!({"cost": {"touches": touches, "seconds": 86_400}}),
            ),
        ];
        let server = start_with(&commands, |options| {
            options.http.update_bytes_max = LARGE_BYTES;
        })
        .await;
        let loaded = post(server.address, path, &[FORM, &ann], &load(0)).await;
        assert_eq!(loaded.status, expected, "{touches}: {}", loaded.text());
        if expected == 200 {
            let cost: u64 = loaded.header("Orrery-Cost").unwrap().parse().unwrap();
            assert!((3_100..4_100).contains(&cost), "{cost}");
        }
        let root = basic("root", PASSWORD);
        let came = quads(server.address, &[&root]).await.len();
        assert_eq!(came, if expected == 200 { 101 } else { 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_of_few_statements_is_a_change_like_any_other() {
    let server = TestServer::start_with(|options| options.http.update_bytes_max = 8 << 20).await;
    let address = server.address;
    let comments = "# nothing is said here\n".repeat(400 << 10);
    let body = form(&[
        Part::File("a.nt", "", comments.as_bytes()),
        Part::File("b.nt", "", b"<http://e/s> <http://e/p> \"1\" .\n"),
    ]);
    let number = commit(&post(address, "/graphs?default", &[FORM], &body).await);
    let changes = get(address, &format!("/changes?since={}", number - 1), &[]).await;
    assert_eq!(changes.status, 200, "{}", changes.text());
    assert_eq!(changes.text().matches("\nA ").count(), 1);
    // Nothing of it is left on the disk.
    let left = server.temporary_files();
    let is_body = |name: &String| name.contains("load-body");
    assert!(!left.iter().any(is_body), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_on_its_way_is_in_the_servers_own_directory_which_goes_with_it() {
    let mut server = TestServer::start().await;
    let left = server.directory().join("orrery-temporary-left");
    let head = request(
        "POST",
        "/graphs?default",
        &[
            "Content-Type: application/n-triples",
            "Transfer-Encoding: chunked",
        ],
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&head).await.unwrap();
    let is_there = |name: &String| name.starts_with("load-body-");
    let comes = async {
        while !server.temporary_files().iter().any(is_there) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), comes)
        .await
        .unwrap();
    drop(stream);
    server.ask_to_stop();
    // As one that was killed has left it, which the next one at the place removes.
    let directory = server.stopped_but_for_its_directory().await;
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["db"]);
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("LOCK"), "").unwrap();
    std::fs::write(left.join("load-body-1"), "text").unwrap();
    let mut options = ServerOptions::new(directory.path().join("db"));
    options.listen.set_port(0);
    options.temp_dir = directory.path().to_owned();
    let next = Server::bind(options).await.unwrap();
    assert!(!left.exists());
    drop(next);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_files_are_a_change_like_any_other() {
    // What reading one of them takes fits many times, but not as many times as there are files.
    let server = TestServer::start_with(|options| options.memory_bytes = 64 << 20).await;
    let address = server.address;
    for is_chunked in [false, true] {
        let names: Vec<_> = (0..300).map(|n| format!("{is_chunked}{n}.nt")).collect();
        let text = |name| format!("<http://e/{name}> <http://e/p> \"1\" .\n");
        let texts: Vec<String> = names.iter().map(text).collect();
        let files = names.iter().zip(&texts);
        let files: Vec<_> = files
            .map(|(name, text)| Part::File(name, "", text.as_bytes()))
            .collect();
        let body = form(&files);
        let answer = match is_chunked {
            true => chunked(address, "/graphs?default", &[FORM], &body).await,
            false => post(address, "/graphs?default", &[FORM], &body).await,
        };
        let number = commit(&answer);
        // Of a load in bulk it would not be told what came.
        let changes = get(address, &format!("/changes?since={}", number - 1), &[]).await;
        assert_eq!(changes.status, 200, "{}", changes.text());
        assert_eq!(changes.text().matches("\nA ").count(), names.len());
    }
    let health = get(address, "/health", &[]).await;
    let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
    assert_eq!(health["query_memory_bytes"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_memory_does_not_hold_is_loaded_in_bulk() {
    // Room for a load, none for statements of this kind.
    let server = TestServer::start_with(|options| options.memory_bytes = 256 << 20).await;
    let address = server.address;
    let long = format!("<http://e/s> <http://e/p> \"{}\" .\n", "x".repeat(20 << 20));
    let (one, two) = (gzip(&long), gzip(&long.replace("/s>", "/t>")));
    let body = form(&[
        Part::File("one.nt.gz", "", &one),
        Part::File("two.nt.gz", "", &two),
    ]);
    let refused = send(address, "PUT", "/graphs?default", &[FORM], &body).await;
    assert_eq!(refused.status, 507, "{}", refused.text());
    let loaded = post(address, "/graphs?default", &[FORM], &body).await;
    commit(&loaded);
    let sum = "SELECT (SUM(STRLEN(?o)) AS ?n) { ?s <http://e/p> ?o }";
    let sum = ask(address, sum, &["Accept: text/csv"]).await;
    assert_eq!(sum.text(), format!("n\r\n{}\r\n", 40 << 20));
    let health = get(address, "/health", &[]).await;
    let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
    assert_eq!(health["query_memory_bytes"], 0);
}
