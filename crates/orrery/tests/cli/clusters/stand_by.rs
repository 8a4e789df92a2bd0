//! Standby servers of one database: one writes, changes at the others are forwarded to it, and
//! another takes over.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{succeed, text};
use crate::serve::{Server, wait_until};
use crate::stores::s3_server::{Place, S3};

/// An answer, and its head.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: String,
}

fn send(server: &Server, method: &str, target: &str, content_type: &str, body: &str) -> Answer {
    try_send(&server.address, method, target, content_type, body).unwrap()
}

/// The same where the server may be gone, also in the middle of its answer.
pub(crate) fn try_send(
    address: &str,
    method: &str,
    target: &str,
    content_type: &str,
    body: &str,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {content_type}\r\nAccept: text/csv\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    Ok(Answer {
        status: status.unwrap_or(0),
        body: body.to_owned(),
    })
}

pub(crate) fn insert(server: &Server, number: usize) -> Answer {
    try_insert(&server.address, number).unwrap()
}

pub(crate) fn try_insert(address: &str, number: usize) -> io::Result<Answer> {
    let update = format!("INSERT DATA {{ <http://e/s> <http://e/p> {number} }}");
    let content_type = "application/sparql-update";
    try_send(address, "POST", "/sparql", content_type, &update)
}

const FORM: &str = "application/x-www-form-urlencoded";

pub(crate) fn count(server: &Server) -> usize {
    try_count(&server.address).unwrap()
}

/// How many there are, or why that is not answered.
pub(crate) fn try_count(address: &str) -> Result<usize, String> {
    let query = "query=SELECT%20(COUNT(*)%20AS%20%3Fn)%20%7B%3Chttp%3A%2F%2Fe%2Fs%3E%20%3Chttp%3A%2F%2Fe%2Fp%3E%20%3Fo%7D";
    let answer = try_send(address, "POST", "/sparql", FORM, query);
    let answer = answer.map_err(|error| error.to_string())?;
    let number = |line: &str| line.trim().parse().ok();
    match answer.status {
        200 => answer.body.lines().find_map(number),
        _ => None,
    }
    .ok_or_else(|| format!("{}: {}", answer.status, answer.body))
}

/// Tries to change something at one of the servers until it is done.
fn insert_somehow(servers: &[Server], number: usize) -> Duration {
    let begun = Instant::now();
    loop {
        for server in servers {
            if insert(server, number).status == 200 {
                return begun.elapsed();
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody writes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn another_takes_the_place_of_who_writes(place: &Place) {
    let database = place.database("stand-by");
    place.succeed(&[
        "update",
        "--db",
        &database,
        "INSERT DATA { <http://e/s> <http://e/p> 0 }",
    ]);
    let mut servers = vec![place.serve(&database, &["--stand-by"])];
    wait_until("the first writes", || insert(&servers[0], 1).status == 200);
    // Each has a cache of its own.
    let others = [place.seen_elsewhere(), place.seen_elsewhere()];
    for other in &others {
        servers.push(other.serve(&database, &["--stand-by"]));
    }
    wait_until("changes are forwarded", || {
        servers[1..]
            .iter()
            .all(|server| insert(server, 2).status == 200)
    });
    // What was written through a server is seen there at once.
    let mut known = 3;
    for server in servers.iter().cycle().take(9) {
        assert_eq!(insert(server, known).status, 200);
        known += 1;
        assert_eq!(count(server), known);
    }
    // In all the ways that changes come.
    let follower = &servers[2];
    let form = format!(
        "update=INSERT%20DATA%20%7B%3Chttp%3A%2F%2Fe%2Fs%3E%20%3Chttp%3A%2F%2Fe%2Fp%3E%20{known}%7D"
    );
    assert_eq!(send(follower, "POST", "/sparql", FORM, &form).status, 200);
    known += 1;
    let sql = "create table t (id int primary key); insert into t values (1), (2)";
    let made = send(follower, "POST", "/sql", "application/sql", sql);
    assert_eq!(made.status, 200, "{}", made.body);
    let read = send(
        follower,
        "POST",
        "/sql",
        "application/sql",
        "select count(*) as n from t",
    );
    assert!(read.body.contains('2'), "{}", read.body);
    let turtle = "<http://e/a> <http://e/b> <http://e/c> .";
    let put = send(follower, "PUT", "/graphs/x", "text/turtle", turtle);
    assert!(
        (200..300).contains(&put.status),
        "{} {}",
        put.status,
        put.body
    );
    assert_eq!(
        send(follower, "POST", "/checkpoint", "text/plain", "").status,
        200
    );
    assert_eq!(count(follower), known);

    // Killed.
    let mut killed = servers.remove(0);
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let waited = insert_somehow(&servers, known);
    known += 1;
    println!("a change after the writer was killed: {waited:?}");
    wait_until("both know who writes", || {
        servers.iter().all(|server| insert(server, 0).status == 200)
    });
    for server in &servers {
        assert_eq!(count(server), known);
    }
    // Stopped in good order: the one that writes, whichever it is, last.
    let mut stopped = servers.remove(0);
    let id = stopped.process.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    assert!(stopped.process.wait().unwrap().success());
    insert_somehow(&servers, known);
    known += 1;
    assert_eq!(count(&servers[0]), known);
    drop(servers);
    place.succeed(&["verify", "--db", &database]);
}

#[test]
fn a_standby_takes_over_from_the_writer_in_a_shared_directory() {
    another_takes_the_place_of_who_writes(&Place::in_directory());
}

#[test]
fn a_standby_takes_over_from_the_writer_in_s3() {
    if let Some(server) = S3::get() {
        another_takes_the_place_of_who_writes(&Place::in_s3(server));
    }
}

#[test]
fn a_second_server_at_a_directory_takes_over_when_the_first_has_ended() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let data = home.path().join("data.nt");
    std::fs::write(&data, "<http://e/s> <http://e/p> <http://e/0> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let first = Server::start_with(text(&database), &[]);
    let second = Server::start_with(text(&database), &[]);
    let reader = Server::start_with(text(&database), &["--read-only"]);
    assert_eq!(insert(&first, 1).status, 200);
    let refused = insert(&second, 2);
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("another writer"), "{}", refused.body);
    drop(first);
    wait_until("the second writes", || insert(&second, 2).status == 200);
    assert_eq!(count(&second), 3);
    let refused = insert(&reader, 3);
    assert_ne!(refused.status, 200);
    assert!(refused.body.contains("--read-only"), "{}", refused.body);
}

#[test]
fn a_standby_at_a_directory_reports_its_role_and_takes_over() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("db");
    let data = home.path().join("data.nt");
    std::fs::write(&data, "<http://e/s> <http://e/p> <http://e/0> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let first = Server::start_with(text(&database), &[]);
    let second = Server::start_with(text(&database), &["--stand-by"]);
    assert_eq!(insert(&first, 1).status, 200);
    // It may not have looked yet who writes.
    wait_until("it says that it stands by", || {
        let refused = insert(&second, 2);
        assert_eq!(refused.status, 503);
        refused.body.contains("stands by")
    });
    drop(first);
    wait_until("the second writes", || insert(&second, 2).status == 200);
    assert_eq!(count(&second), 3);
}
