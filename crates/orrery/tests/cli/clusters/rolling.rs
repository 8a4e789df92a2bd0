//! A cluster as deploy/ runs it: with users and forwarding within TLS, restarted node by node while
//! clients go on.

use std::array;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::clusters::cluster::{Cluster, free_address, leader, listens, numbers, signal};
use crate::clusters::stand_by::{insert, try_count, try_insert, try_send};
use crate::common::orrery;
use crate::ports::tls::certificate;
use crate::serve::{Server, wait_until};

/// How long a change may be tried.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(30);

/// What clients do all the time, and what they know of the nodes.
struct Clients {
    addresses: [String; 3],
    /// How often a node has stopped and come back: odd while it is away.
    turns: [AtomicUsize; 3],
    changes: AtomicUsize,
    reads: AtomicUsize,
    is_over: AtomicBool,
}

/// Ends the clients, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Clients {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Changes again and again, each change at one node after the other until one accepts it; all
    /// acknowledged changes.
    fn change(&self) -> BTreeSet<usize> {
        let mut acknowledged = BTreeSet::new();
        let mut longest = Duration::ZERO;
        while !self.is_over() {
            let number = acknowledged.len() + 1;
            let begun = Instant::now();
            for at in (0..3).cycle().skip(number % 3) {
                let answer = try_insert(&self.addresses[at], number);
                if answer.is_ok_and(|answer| answer.status == 200) {
                    break;
                }
                assert!(begun.elapsed() < CHANGE_WAIT_MAX, "nobody writes");
                std::thread::sleep(Duration::from_millis(5));
            }
            longest = longest.max(begun.elapsed());
            acknowledged.insert(number);
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        println!(
            "{} changes, the longest took {longest:?}",
            acknowledged.len()
        );
        acknowledged
    }

    /// Reads from one node after the other that is there. None may refuse, and none may go back.
    fn read(&self) {
        let mut known = [0; 3];
        for at in (0..3).cycle().take_while(|_| !self.is_over()) {
            let turn = self.turns[at].load(Ordering::SeqCst);
            if turn % 2 == 1 {
                continue;
            }
            match try_count(&self.addresses[at]) {
                Ok(found) => {
                    assert!(found >= known[at], "node {} went back", at + 1);
                    known[at] = found;
                    self.reads.fetch_add(1, Ordering::SeqCst);
                    // Each read is a connection, of which a machine has some ten thousand a minute.
                    std::thread::sleep(Duration::from_millis(2));
                }
                // It may have been stopped meanwhile.
                Err(error) => assert_ne!(
                    self.turns[at].load(Ordering::SeqCst),
                    turn,
                    "node {} did not answer: {error}",
                    at + 1
                ),
            }
        }
    }

    /// Waits until there is news of both.
    fn see_some_more(&self) {
        for counter in [&self.changes, &self.reads] {
            let before = counter.load(Ordering::SeqCst);
            wait_until("clients go on", || {
                counter.load(Ordering::SeqCst) > before + 5
            });
        }
    }
}

fn is_ready(address: &str) -> bool {
    let answer = try_send(address, "GET", "/health/ready", "text/plain", "");
    answer.is_ok_and(|answer| answer.status == 200)
}

#[test]
fn nodes_are_restarted_one_after_the_other_and_clients_notice_nothing_but_a_pause() {
    let cluster = Cluster::new();
    let clients = Clients {
        addresses: array::from_fn(|_| free_address()),
        turns: Default::default(),
        changes: AtomicUsize::new(0),
        reads: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let start = |at: usize| cluster.first_at(&clients.addresses[at], orrery(), at + 1, &[]);
    let mut servers: [Server; 3] = array::from_fn(start);
    wait_until("all serve", || servers.iter().all(listens));
    wait_until("all take changes", || {
        servers.iter().all(|server| insert(server, 0).status == 200)
    });
    let acknowledged = std::thread::scope(|scope| {
        let over = Over(&clients.is_over);
        let changing = scope.spawn(|| clients.change());
        let reading = scope.spawn(|| clients.read());
        clients.see_some_more();
        let mut left = BTreeSet::from([0, 1, 2]);
        while !left.is_empty() {
            // The one that leads last.
            let led = leader(&servers[*left.first().unwrap()]).map(|node| node - 1);
            let next = left.iter().find(|&&at| Some(at) != led);
            let at = *next.or(left.first()).unwrap();
            left.remove(&at);

            clients.turns[at].fetch_add(1, Ordering::SeqCst);
            signal(&servers[at], "-TERM");
            assert!(servers[at].process.wait().unwrap().success());
            servers[at] = start(at);
            wait_until("it has all that the others have", || {
                is_ready(&clients.addresses[at])
            });
            clients.turns[at].fetch_add(1, Ordering::SeqCst);
            clients.see_some_more();
        }
        drop(over);
        reading.join().unwrap();
        changing.join().unwrap()
    });
    let expected = &acknowledged | &BTreeSet::from([0]);
    assert!(expected.len() > 20, "{} changes", expected.len());
    for server in &servers {
        wait_until("it has all that was acknowledged", || {
            numbers(server).is_superset(&expected)
        });
    }
    // Without a majority nobody is ready, and all go on answering what they know.
    let [first, others @ ..] = &mut servers;
    for other in others {
        other.process.kill().unwrap();
        other.process.wait().unwrap();
    }
    wait_until("it is not ready", || !is_ready(&first.address));
    assert!(numbers(first).is_superset(&expected));
}

#[test]
fn of_new_nodes_with_auth_one_creates_the_administrator_and_all_start() {
    let cluster = Cluster::new();
    let servers: Vec<Server> = (1..=3)
        .map(|node| cluster.first_with(node, &["--auth"]))
        .collect();
    wait_until("all serve", || servers.iter().all(listens));
    for server in &servers {
        assert_eq!(insert(server, 1).status, 401);
        wait_until("it is ready", || is_ready(&server.address));
    }
}

#[test]
fn nodes_with_tls_forward_changes_to_a_writer_that_an_authority_file_vouches_for() {
    let cluster = Cluster::new();
    let [certificate, key] = certificate(cluster.home.path());
    let options = ["--tls-certificate", &certificate, "--tls-key", &key];
    let knowing = || {
        let mut program = orrery();
        program.env("ORRERY_CA_FILE", &certificate);
        program
    };
    let servers: Vec<Server> = (1..=3)
        .map(|node| cluster.first_at(&free_address(), knowing(), node, &options))
        .collect();
    for server in &servers {
        let url = format!("https://{}", server.address);
        wait_until("it takes changes", || {
            let update = "INSERT DATA { <http://e/s> <http://e/p> 1 }";
            let mut program = knowing();
            let done = program.args(["update", "--server", &url, update]).output();
            done.unwrap().status.success()
        });
    }
}
