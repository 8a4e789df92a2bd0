//! A server that is killed while clients write: every acknowledged change is there after its
//! restart.
//!
//! `ORRERY_SERVER_KILLS` sets how often it is killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use rand::{RngExt, SeedableRng};

use crate::common::{succeed, text};
use crate::serve::Server;

const CLIENTS: usize = 4;
/// The server is killed after up to so many more acknowledged updates.
const UPDATES_MAX: usize = 80;

/// One update that inserts two quads for a number; whether the server said that it is done.
fn update(stream: &mut BufReader<TcpStream>, address: &str, client: usize, number: usize) -> bool {
    let body = format!(
        "INSERT DATA {{ <http://x/{client}> <http://x/first> {number} . \
         GRAPH <http://x/g> {{ <http://x/{client}> <http://x/second> {number} }} }}"
    );
    let request = format!(
        "POST /sparql HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/sparql-update\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let sent = stream.get_mut().write_all(request.as_bytes());
    sent.is_ok() && acknowledged(stream).unwrap_or(false)
}

/// Reads an answer to its end; whether it is a good one.
fn acknowledged(stream: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
    let mut status = String::new();
    stream.read_line(&mut status)?;
    let mut bytes = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            bytes = length.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; bytes];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    assert!(status.starts_with("HTTP/1.1 20"), "{status} {body}");
    Ok(true)
}

/// The numbers that a client's quads have, by predicate.
fn found(server: &Server, predicate: &str, client: usize) -> BTreeSet<usize> {
    let pattern =
        format!("%3Chttp%3A%2F%2Fx%2F{client}%3E%20%3Chttp%3A%2F%2Fx%2F{predicate}%3E%20%3Fn");
    let pattern = match predicate {
        "second" => format!("GRAPH%20%3Chttp%3A%2F%2Fx%2Fg%3E%20%7B{pattern}%7D"),
        _ => pattern,
    };
    let answer = server.get(&format!("/sparql?query=SELECT%20%3Fn%20%7B{pattern}%7D"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let lines = answer.lines().map(str::trim);
    lines.filter_map(|line| line.parse().ok()).collect()
}

/// Lets clients write until so many updates were acknowledged, then kills the server. `counts` has
/// the updates acknowledged before, for each client, and is increased.
fn write_and_kill(mut server: Server, updates: usize, counts: &mut [usize; CLIENTS]) {
    let left = AtomicUsize::new(updates);
    let (enough, is_enough) = mpsc::channel();
    let address = server.address.clone();
    // All connect before any writes: the first few updates may be enough.
    let connect = |_| BufReader::new(TcpStream::connect(&address).unwrap());
    let streams: Vec<_> = (0..CLIENTS).map(connect).collect();
    std::thread::scope(|scope| {
        for ((client, count), mut stream) in counts.iter_mut().enumerate().zip(streams) {
            let (left, address, enough) = (&left, &address, enough.clone());
            scope.spawn(move || {
                while update(&mut stream, address, client, *count) {
                    *count += 1;
                    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                        left.checked_sub(1)
                    });
                    match before {
                        Ok(1) => enough.send(()).unwrap(),
                        Ok(_) => {}
                        // Others may still be on their way.
                        Err(_) => break,
                    }
                }
            });
        }
        drop(enough);
        is_enough.recv().unwrap();
        server.process.kill().unwrap();
        server.process.wait().unwrap();
    });
}

/// How often a server is killed.
pub(crate) fn kills(unless_said: usize) -> usize {
    std::env::var("ORRERY_SERVER_KILLS").map_or(unless_said, |kills| {
        kills.parse().expect("ORRERY_SERVER_KILLS is a number")
    })
}

/// Has clients write to a server that is killed again and again; after each restart all
/// acknowledged changes must be there.
pub(crate) fn kill_again_and_again(kills: usize, start: impl Fn() -> Server) {
    let seed = rand::rng().random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut counts = [0; CLIENTS];
    let mut unacknowledged = 0;
    for round in 0..kills {
        write_and_kill(start(), random.random_range(1..UPDATES_MAX), &mut counts);
        let server = start();
        for (client, count) in counts.iter_mut().enumerate() {
            let first = found(&server, "first", client);
            assert_eq!(first, found(&server, "second", client), "half an update");
            // An update that was not acknowledged may be there or not.
            assert!(
                first == (0..*count).collect() || first == (0..=*count).collect(),
                "round {round}, client {client}: {count} acknowledged, found {first:?}"
            );
            unacknowledged += first.len() - *count;
            *count = first.len();
        }
    }
    let total: usize = counts.iter().sum();
    println!(
        "{kills} kills, {total} updates, {unacknowledged} of them there without being acknowledged"
    );
}

#[test]
fn every_acknowledged_update_is_there_after_the_server_was_killed() {
    let home = tempfile::tempdir().unwrap();
    let [file, database] = ["data.nt", "db"].map(|name| home.path().join(name));
    std::fs::write(&file, "<http://x/s> <http://x/p> \"loaded\" .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&file)]);
    kill_again_and_again(kills(10), || Server::start(text(&database)));
    succeed(&["verify", "--db", text(&database)]);
}
