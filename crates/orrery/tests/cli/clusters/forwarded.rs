//! Clients of PostgreSQL and Flight SQL at a node that does not write: the same results as at a
//! single server.

use std::net::TcpStream;
use std::process::Command;

use crate::access::free_address;
use crate::clusters::cluster::{Cluster, leader, listens};
use crate::clusters::stand_by::insert;
use crate::ports::flight::has_adbc;
use crate::ports::postgres::{client, good, has, python};
use crate::serve::{Server, wait_until};

/// Three nodes, and the ports of one that does not write.
struct Follower {
    postgres: String,
    flight: String,
    _servers: Vec<Server>,
    _cluster: Cluster,
}

impl Follower {
    fn start() -> Self {
        let cluster = Cluster::new();
        let ports: Vec<[String; 2]> = (0..3).map(|_| [free_address(), free_address()]).collect();
        let nodes = ports.iter().zip(1..);
        let servers: Vec<Server> = nodes
            .map(|([postgres, flight], node)| {
                cluster.first_with(node, &["--pg", postgres, "--flight", flight])
            })
            .collect();
        wait_until("all serve", || servers.iter().all(listens));
        wait_until("all take changes", || {
            servers.iter().all(|server| insert(server, 0).status == 200)
        });
        let led = leader(&servers[0]).unwrap();
        let [postgres, flight] = ports[led % 3].clone();
        TcpStream::connect(&postgres).unwrap();
        Self {
            postgres,
            flight,
            _servers: servers,
            _cluster: cluster,
        }
    }
}

#[test]
fn psycopg_and_adbc_change_what_another_node_writes() {
    let python = python();
    let run = |arguments: &[&str]| Command::new(&python).args(arguments).output().unwrap();
    if has(&python, &["-c", "import psycopg"]) {
        let follower = Follower::start();
        let steps = good(&run(&[&client("with_psycopg.py"), &follower.postgres]));
        assert!(steps.contains("cancel: "), "{steps}");
    }
    if has_adbc(&python) {
        let follower = Follower::start();
        let uri = format!("grpc://{}", follower.flight);
        let steps = good(&run(&[&client("with_adbc.py"), &uri]));
        assert!(steps.contains("cancel: done"), "{steps}");
    }
}
