//! What comes before a request is sent on, or waits for a state: who asks, and from where.

use crate::client::{exchange, get, post, request, send};
use crate::data::form_loads::{FORM, LARGE_BYTES, Part, chunked, commit, form};
use crate::fixture::TestServer;
use crate::users::access::{PASSWORD, add_user, basic, some_users, start};
use orrery_access::Command;
use orrery_object_store::{CacheOptions, ObjectOptions};
use orrery_server::ServerOptions;
use orrery_storage::{Database, WriterOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const TURTLE: &str = "Content-Type: text/turtle";
const GRAPH: &str = "/graphs?graph=http://e/g";
const TRIPLE: &[u8] = b"<http://e/s> <http://e/p> <http://e/o> .";

/// What stands where the server is that writes: keeps the heads of what comes.
struct Writer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Writer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&head[..length]).to_lowercase();
                kept.lock().unwrap().push(head);
                let answer =
                    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone";
                let _ = stream.write_all(answer).await;
            }
        });
        Self { address, heads }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }
}

/// One of two servers over a directory as a bucket; the first one writes, and advertises this
/// address.
async fn over(home: &Path, name: &str, writer: SocketAddr, has_users: bool) -> TestServer {
    over_with(home, name, writer, has_users, |_| {}).await
}

async fn over_with(
    home: &Path,
    name: &str,
    writer: SocketAddr,
    has_users: bool,
    change: impl FnOnce(&mut ServerOptions),
) -> TestServer {
    let cache = CacheOptions {
        directory: home.join(name),
        bytes: 64 << 20,
    };
    std::fs::create_dir_all(home.join("bucket")).unwrap();
    let place = format!("file://{}", home.join("bucket").display());
    let is_first = name == "first";
    let opening = move || {
        let (files, root) = orrery_object_store::open(&place, &ObjectOptions { cache }).unwrap();
        let database = Database::create_or_open_with(files.clone(), &root).unwrap();
        if is_first && has_users {
            let database = Arc::new(database);
            let writer = database.open_writer(WriterOptions::default()).unwrap();
            for user in [add_user("root", true), add_user("ann", false)] {
                let command: Command = serde_json::from_value(user).unwrap();
                orrery_access::change(&writer, "test", |catalog| command.apply(catalog, 0))
                    .unwrap();
            }
        }
        (files, root)
    };
    let (files, root) = tokio::task::spawn_blocking(opening).await.unwrap();
    let audit = home.join(format!("{name}.audit"));
    TestServer::start_with(|options| {
        options.db = root;
        options.objects = Some(files);
        options.stands_by = true;
        options.advertise = Some(match is_first {
            true => format!("http://{writer}"),
            false => "http://127.0.0.1:1".to_owned(),
        });
        options.service.audit_log = Some(audit);
        options.client_times.body_max = Duration::from_millis(300);
        change(options);
    })
    .await
}

/// A change at a follower, again until it is sent on.
async fn sent_on(writer: &Writer, follower: &TestServer, headers: &[&str]) -> String {
    let sent = async {
        loop {
            let _ = send(follower.address, "PUT", GRAPH, headers, TRIPLE).await;
            if let Some(head) = writer.take().pop() {
                return head;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(30), sent).await;
    sent.expect("nothing was sent on")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_is_told_who_asks_by_the_follower_and_not_by_the_client() {
    let (home, writer) = (tempfile::tempdir().unwrap(), Writer::start().await);
    let _writing = over(home.path(), "first", writer.address, false).await;
    let follower = over(home.path(), "second", writer.address, false).await;
    let forged = [
        "X-Forwarded-For: 198.51.100.7",
        "Forwarded: for=198.51.100.7",
    ];
    let head = sent_on(&writer, &follower, &[TURTLE, forged[0], forged[1]]).await;
    assert!(!head.contains("198.51.100.7"), "{head}");
    assert!(head.contains("x-forwarded-for: 127.0.0.1\r\n"), "{head}");

    // What is not for this server is not sent on, either.
    let text = String::from_utf8(request("PUT", GRAPH, &[TURTLE, "Content-Length: 0"])).unwrap();
    let evil = text.replace("Host: localhost", "Host: evil.example");
    let answer = exchange(follower.address, evil.as_bytes()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    // A page of a stranger, in the browser of somebody on this machine.
    let page = [TURTLE, "Origin: http://evil.example"];
    let answer = send(follower.address, "PUT", GRAPH, &page, TRIPLE).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    // A form of which nothing comes.
    let form = [
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 50",
    ];
    let answer = exchange(follower.address, &request("POST", "/sparql", &form)).await;
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert_eq!(writer.take(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_somebody_unknown_is_sent_on() {
    let (home, writer) = (tempfile::tempdir().unwrap(), Writer::start().await);
    let _writing = over(home.path(), "first", writer.address, true).await;
    let follower = over(home.path(), "second", writer.address, true).await;
    let root = basic("root", PASSWORD);
    let head = sent_on(&writer, &follower, &[TURTLE, &root]).await;
    assert!(head.contains("authorization: basic"), "{head}");
    let update = "Content-Type: application/sparql-update";
    let sql = "Content-Type: application/sql";
    for answer in [
        send(follower.address, "PUT", GRAPH, &[TURTLE], TRIPLE).await,
        post(follower.address, "/sparql", &[update], b"CLEAR ALL").await,
        post(follower.address, "/sql", &[sql], b"drop table t").await,
        post(follower.address, "/compact", &[], b"").await,
    ] {
        assert_eq!(answer.status, 401, "{}", answer.text());
    }
    assert_eq!(writer.take(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_unknown_waits_for_a_commit_or_hears_which_is_here() {
    let server = start(&some_users()).await;
    let wait = ["Orrery-Min-Commit: 999999"];
    let asked = async {
        let wrong = basic("ann", "wrong");
        let address = server.address;
        for path in [
            "/sparql?query=ASK%7B%7D",
            "/graphs?default",
            "/none",
            "/prefixes?min-commit=999999",
        ] {
            for headers in [&wait[..], &[wait[0], wrong.as_str()]] {
                let answer = get(address, path, headers).await;
                // Wrong passwords make the name wait, too.
                assert!(
                    [401, 429].contains(&answer.status),
                    "{path} {}",
                    answer.text()
                );
                assert!(!answer.text().contains("commit"), "{}", answer.text());
            }
        }
        for path in ["/health", "/health/ready", "/health?min-commit=999999"] {
            let answer = get(address, path, &wait).await;
            assert!(
                [200, 400].contains(&answer.status),
                "{path} {}",
                answer.text()
            );
            assert!(!answer.text().contains("commit"), "{}", answer.text());
        }
    };
    // Twelve requests that wait take a minute.
    let done = tokio::time::timeout(Duration::from_secs(30), asked).await;
    done.expect("none of them waits");
    // Who is known does, and is told.
    let known = get(
        server.address,
        "/sparql?query=ASK%7B%7D",
        &[wait[0], &basic("bob", PASSWORD)],
    )
    .await;
    assert_eq!(known.status, 503, "{}", known.text());
    assert!(known.text().contains("999999"), "{}", known.text());
}

/// Two servers over a directory as a bucket, of which the first writes, and is where it says.
async fn writer_and_follower(home: &Path) -> (TestServer, TestServer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let writing = over_with(home, "first", address, false, |options| {
        options.listen = address;
        options.http.update_bytes_max = LARGE_BYTES;
    })
    .await;
    let follower = over(home, "second", address, false).await;
    (writing, follower)
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_files_and_of_updates_are_sent_on_as_they_come() {
    let home = tempfile::tempdir().unwrap();
    let (writing, follower) = writer_and_follower(home.path()).await;
    let update = |number: usize| {
        let text = format!("INSERT DATA {{ <http://e/u> <http://e/p> {number} }}");
        form(&[Part::Field("update", &text)])
    };
    // Until it is known who writes.
    let sent = async {
        loop {
            let answer = post(follower.address, "/sparql", &[FORM], &update(1)).await;
            if answer.status != 503 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(30), sent).await;
    let first = commit(&sent.expect("nothing was sent on"));
    let lines: String = (0..100)
        .map(|n| format!("<http://e/s{n}> <http://e/p> \"{n}\" .\n"))
        .collect();
    let files = form(&[
        Part::File(
            "a.nq",
            "",
            b"<http://e/q> <http://e/p> \"1\" <http://e/g> .",
        ),
        Part::Field("default", ""),
        Part::File("b.nt", "", lines.as_bytes()),
        Part::File("c.ttl", "", b"<http://e/c> <http://e/p> 1 ."),
    ]);
    let loaded = commit(&post(follower.address, "/graphs", &[FORM], &files).await);
    assert_eq!(loaded, first + 1);
    let more = form(&[
        Part::File("d.nt", "", b"<http://e/d> <http://e/p> \"1\" ."),
        Part::File("e.ttl", "", b"<http://e/e> <http://e/p> 1 ."),
    ]);
    let added = commit(&chunked(follower.address, "/graphs?default", &[FORM], &more).await);
    assert_eq!(added, first + 2);
    let updated = commit(&post(follower.address, "/sparql", &[FORM], &update(2)).await);
    assert_eq!(updated, first + 3);
    let count = "/sparql?query=SELECT%20(COUNT(*)%20AS%20?n)%20%7B%20%7B%20?s%20%3Chttp://e/p%3E%20?o%20%7D%20UNION%20%7B%20GRAPH%20?g%20%7B%20?s%20%3Chttp://e/p%3E%20?o%20%7D%20%7D%20%7D";
    let seen = format!("Orrery-Min-Commit: {updated}");
    for server in [&writing, &follower] {
        let counted = get(server.address, count, &["Accept: text/csv", &seen]).await;
        assert_eq!(counted.text(), "n\r\n106\r\n");
    }
    // What a page of a stranger sends is not sent on.
    let page = [FORM, "Origin: http://evil.example"];
    let refused = post(follower.address, "/sparql", &page, &update(3)).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

/// The commit that a change names which was sent on, again until it is known who writes.
async fn commit_of(follower: &TestServer, path: &str, headers: &[&str], change: &str) -> u64 {
    let sent = async {
        loop {
            let answer = post(follower.address, path, headers, change.as_bytes()).await;
            if answer.status == 503 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            let number = commit(&answer);
            let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(told["commit"], number, "{change}");
            return number;
        }
    };
    let sent = tokio::time::timeout(Duration::from_secs(30), sent).await;
    sent.expect("nothing was sent on")
}

/// Others commit all the time beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_was_sent_on_names_its_own_commit() {
    let home = tempfile::tempdir().unwrap();
    let (writing, follower) = writer_and_follower(home.path()).await;
    let update = ["Content-Type: application/sparql-update"];
    let sql = ["Content-Type: application/sql"];
    commit_of(
        &follower,
        "/sql",
        &sql,
        "create table t (a int primary key)",
    )
    .await;
    let (writer, done) = (writing.address, Arc::new(Mutex::new(false)));
    let is_done = Arc::clone(&done);
    let others = tokio::spawn(async move {
        let mut number = 0;
        while !*is_done.lock().unwrap() {
            number += 1;
            let text = format!("INSERT DATA {{ <http://e/other> <http://e/p> {number} }}");
            let answer = post(writer, "/sparql", &update, text.as_bytes()).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    for number in 0..10 {
        let quad = format!("<http://e/own{number}> <http://e/p> 1");
        let by_update = format!("INSERT DATA {{ {quad} }}");
        let updated = commit_of(&follower, "/sparql", &update, &by_update).await;
        let by_sql = format!("insert into t values ({number})");
        let inserted = commit_of(&follower, "/sql", &sql, &by_sql).await;
        // In the feed just that commit has the change, and it is here already.
        let row = format!("\"row\":{{\"a\":{number}}}");
        for (commit, change) in [(updated, format!("own{number}")), (inserted, row)] {
            let path = format!("/changes?since={}&format=json", commit - 1);
            let feed = get(follower.address, &path, &[]).await;
            let lines = feed.text().lines().map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                (line["commit"].as_u64(), line.to_string())
            });
            let of_commit: Vec<_> = lines.filter(|(of, _)| *of == Some(commit)).collect();
            assert!(
                of_commit.iter().any(|(_, line)| line.contains(&change)),
                "{change} is not in commit {commit}: {of_commit:?}"
            );
        }
    }
    *done.lock().unwrap() = true;
    others.await.unwrap();
}
