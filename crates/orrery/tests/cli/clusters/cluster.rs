//! A cluster of real processes: three nodes hold the database, one of them writes, and another
//! takes over when that one is killed.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::clusters::stand_by::{count, insert};
use crate::common::{check_failure, orrery, succeed, text};
use crate::serve::{Server, wait_until};

/// Three addresses, and where their nodes are.
pub(crate) struct Cluster {
    pub(crate) home: TempDir,
    peers: Vec<String>,
    secret: PathBuf,
}

pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("secret");
        std::fs::write(&secret, "what the nodes know each other by\n").unwrap();
        Self {
            home,
            peers: (0..3).map(|_| free_address()).collect(),
            secret,
        }
    }

    fn list(&self) -> String {
        let peers = self.peers.iter().enumerate();
        let peers: Vec<String> = peers
            .map(|(at, address)| format!("{}={address}", at + 1))
            .collect();
        peers.join(",")
    }

    /// Starts a node, and does not wait for it.
    fn start(&self, node: usize, options: &[&str]) -> Server {
        self.start_at(&free_address(), orrery(), node, options)
    }

    /// The same where clients know it, by a command that has more in its environment.
    fn start_at(
        &self,
        address: &str,
        mut program: Command,
        node: usize,
        options: &[&str],
    ) -> Server {
        let directory = self.home.path().join(format!("node-{node}"));
        std::fs::create_dir_all(&directory).unwrap();
        let process = program
            .args(["serve", "--cluster", "--listen", address])
            .args(["--memory", "512M"])
            .args(["--node", &node.to_string(), "--db", text(&directory)])
            .args(["--cluster-secret-file", text(&self.secret)])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Server {
            process,
            address: address.to_owned(),
        }
    }

    /// One of the first three.
    fn first(&self, node: usize) -> Server {
        self.first_with(node, &[])
    }

    /// The same with more options.
    pub(crate) fn first_with(&self, node: usize, options: &[&str]) -> Server {
        let list = self.list();
        self.start(node, &[&["--peers", &list], options].concat())
    }

    /// The same where clients know it, by a command that has more in its environment.
    pub(crate) fn first_at(
        &self,
        address: &str,
        program: Command,
        node: usize,
        options: &[&str],
    ) -> Server {
        let list = self.list();
        let options = [&["--peers", &list], options].concat();
        self.start_at(address, program, node, &options)
    }
}

pub(crate) fn listens(server: &Server) -> bool {
    TcpStream::connect(&server.address).is_ok()
}

fn status(server: &Server) -> String {
    let url = format!("http://{}", server.address);
    succeed(&["cluster", "status", "--server", &url])
}

/// The number of the node that leads, as one says.
pub(crate) fn leader(server: &Server) -> Option<usize> {
    let status = status(server);
    let line = status.lines().find(|line| line.contains(": leader"))?;
    line.strip_prefix("node ")?.split(':').next()?.parse().ok()
}

/// Inserts at one of the servers until it is done.
fn insert_somehow(servers: &[Server], number: usize) -> Duration {
    let begun = Instant::now();
    loop {
        for server in servers {
            if listens(server) && insert(server, number).status == 200 {
                return begun.elapsed();
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody writes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn three_nodes_hold_a_database_and_go_on_without_the_one_that_leads() {
    let cluster = Cluster::new();
    let mut servers: Vec<Server> = (1..=3).map(|node| cluster.first(node)).collect();
    wait_until("all serve", || servers.iter().all(listens));
    insert_somehow(&servers, 0);
    wait_until("all take changes", || {
        servers.iter().all(|server| insert(server, 0).status == 200)
    });
    for number in 1..=9 {
        let server = &servers[number % 3];
        assert_eq!(insert(server, number).status, 200);
        assert_eq!(count(server), number + 1);
    }
    // Killed: the one that leads, and so writes.
    let led = leader(&servers[0]).unwrap();
    let mut killed = servers.remove(led - 1);
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let waited = insert_somehow(&servers, 10);
    println!("a change after the leader was killed: {waited:?}");
    wait_until("both take changes", || {
        servers
            .iter()
            .all(|server| insert(server, 10).status == 200)
    });
    for server in &servers {
        assert_eq!(count(server), 11);
    }
    // It comes back, and has what it missed.
    let back = cluster.first(led);
    wait_until("it serves again", || listens(&back));
    wait_until("it takes changes", || insert(&back, 11).status == 200);
    assert_eq!(count(&back), 12);
    servers.push(back);

    // One more, and one less.
    let address = free_address();
    let fourth = cluster.start(4, &["--cluster-address", &address]);
    let url = format!("http://{}", servers[0].address);
    wait_until("it is added", || {
        let added = orrery()
            .args(["cluster", "add", &format!("4={address}"), "--server", &url])
            .output();
        added.unwrap().status.success()
    });
    wait_until("the fourth serves", || listens(&fourth));
    wait_until("the fourth takes changes", || {
        insert(&fourth, 12).status == 200
    });
    assert_eq!(count(&fourth), 13);
    let gone = leader(&fourth).filter(|&node| node != 4).unwrap_or(led);
    succeed(&[
        "cluster",
        "remove",
        &gone.to_string(),
        "--server",
        &format!("http://{}", fourth.address),
    ]);
    let left: BTreeSet<String> = status(&fourth).lines().map(str::to_owned).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        !left
            .iter()
            .any(|line| line.starts_with(&format!("node {gone}:")))
    );
}

/// Sends a change, and does not wait for the answer.
fn begin_update(server: &Server, update: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let request = format!(
        "POST /sparql HTTP/1.1\r\nHost: {}\r\nContent-Type: application/sparql-update\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{update}",
        server.address,
        update.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Whether the change was acknowledged.
fn is_acknowledged(mut stream: TcpStream) -> bool {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.starts_with("HTTP/1.1 200")
}

pub(crate) fn signal(server: &Server, name: &str) {
    let id = server.process.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(sent.success());
}

pub(crate) fn numbers(server: &Server) -> BTreeSet<usize> {
    let answer = server.get(
        "/sparql?query=SELECT%20%3Fo%20%7B%3Chttp%3A%2F%2Fe%2Fs%3E%20%3Chttp%3A%2F%2Fe%2Fp%3E%20%3Fo%7D",
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

#[test]
fn a_leader_that_was_stopped_for_a_while_acknowledges_nothing_that_the_others_do_not_have() {
    let cluster = Cluster::new();
    let servers: Vec<Server> = (1..=3).map(|node| cluster.first(node)).collect();
    wait_until("all serve", || servers.iter().all(listens));
    insert_somehow(&servers, 0);
    wait_until("all take changes", || {
        servers.iter().all(|server| insert(server, 0).status == 200)
    });
    let led = leader(&servers[0]).unwrap() - 1;
    let others: Vec<&Server> = (0..3)
        .filter(|&at| at != led)
        .map(|at| &servers[at])
        .collect();

    // Stopped, it answers nobody, but its connections stay. Another takes its place, which knows 7.
    signal(&servers[led], "-STOP");
    wait_until("another leads", || {
        leader(others[0]).is_some_and(|node| node != led + 1)
    });
    // This inserts what is there already: messages that still reach the stopped node must not wait
    // in its log, or the deletion below would wait behind them.
    wait_until("another writes", || {
        others.iter().all(|server| insert(server, 0).status == 200)
    });
    assert_eq!(insert(others[0], 7).status, 200);
    // The first request that the node handles when it goes on: there was no 7 when it was stopped,
    // so its own state has nothing to delete.
    let deletion = begin_update(&servers[led], "DELETE DATA { <http://e/s> <http://e/p> 7 }");
    signal(&servers[led], "-CONT");
    let is_deleted = is_acknowledged(deletion);
    let insertion = begin_update(&servers[led], "INSERT DATA { <http://e/s> <http://e/p> 8 }");
    let is_inserted = is_acknowledged(insertion);

    wait_until("all take changes again", || {
        servers.iter().all(|server| insert(server, 9).status == 200)
    });
    for server in &servers {
        let found = numbers(server);
        assert!(found.is_superset(&BTreeSet::from([0, 9])), "{found:?}");
        assert!(!is_deleted || !found.contains(&7), "{found:?}");
        assert!(!is_inserted || found.contains(&8), "{found:?}");
        assert_eq!(found, numbers(&servers[0]));
    }
}

#[test]
fn what_is_wrong_with_a_node_is_said_in_one_line() {
    let cluster = Cluster::new();
    let directory = text(cluster.home.path()).to_owned();
    let secret = text(&cluster.secret).to_owned();
    let serve = |options: &[&str], parts: &[&str]| {
        let output = orrery()
            .args(["serve", "--cluster", "--db", &directory])
            .args(["--cluster-secret-file", &secret])
            .args(options)
            .output();
        check_failure(&output.unwrap(), parts);
    };
    serve(
        &["--node", "4", "--peers", &cluster.list()],
        &["node 4 is not in --peers"],
    );
    serve(&["--node", "4"], &["--cluster-address"]);
    // A node that is to be added may have the list, though the list does not name it. This one ends
    // because it cannot listen.
    let added = ["--node", "4", "--cluster-address", "127.0.0.1:7979"];
    let added = [&added[..], &["--cluster-listen", "192.0.2.1:7979"]].concat();
    serve(
        &[&added[..], &["--peers", &cluster.list()]].concat(),
        &["cannot listen at 192.0.2.1:7979"],
    );
    std::fs::write(&cluster.secret, "short\n").unwrap();
    serve(&["--node", "1", "--peers", &cluster.list()], &["16"]);
    let database = cluster.home.path().join("db");
    let data = cluster.home.path().join("data.nt");
    std::fs::write(&data, "<http://e/s> <http://e/p> <http://e/0> .\n").unwrap();
    succeed(&["load", "--db", text(&database), text(&data)]);
    let plain = Server::start(text(&database));
    let url = format!("http://{}", plain.address);
    let output = orrery()
        .args(["cluster", "status", "--server", &url])
        .output();
    check_failure(&output.unwrap(), &["no node of a cluster"]);
}
