//! Measures puts and reads of three nodes on loopback:
//! `rates DIRECTORY CLIENTS SECONDS VALUE_BYTES`.
//!
//! The nodes run in this process, each in its own directory below DIRECTORY, over sockets. Clients
//! are spread over the nodes. Also prints how long the next put takes when the leader is lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use orrery_raft_store::{Node, NodeConfig, Pace, QuorumStore};

const NODES: u64 = 3;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, clients, seconds, value_bytes] = &arguments[..] else {
        eprintln!("rates DIRECTORY CLIENTS SECONDS VALUE_BYTES");
        std::process::exit(2);
    };
    let clients: u64 = clients.parse().expect("a number of clients");
    let time = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let value_bytes: usize = value_bytes.parse().expect("a number of bytes");

    let directory = PathBuf::from(directory);
    let addresses = free_addresses();
    let mut nodes = BTreeMap::new();
    for id in 1..=NODES {
        nodes.insert(
            id,
            Node::start(config(&directory, &addresses, id))
                .await
                .expect("a node"),
        );
    }
    let stores: Vec<QuorumStore> = nodes.values().map(Node::store).collect();
    stores[0]
        .put(&Path::from("first"), "x".into())
        .await
        .expect("the first put");
    for (what, is_put) in [("puts", true), ("reads", false)] {
        let (rate, median, slow) = measure(&stores, clients, time, value_bytes, is_put).await;
        println!(
            "{what}: {rate:.0}/s, {clients} clients, {value_bytes} bytes; median {median:.1} ms, 99 % within {slow:.1} ms"
        );
    }
    for round in 0..5 {
        let leader = nodes
            .values()
            .next()
            .unwrap()
            .status()
            .await
            .unwrap()
            .leader
            .unwrap();
        let lost = nodes.remove(&leader).unwrap();
        let store = nodes.values().next().unwrap().store();
        lost.stop().await;
        drop(lost);
        let started = Instant::now();
        store
            .put(&Path::from("next"), "x".into())
            .await
            .expect("a put after the leader was lost");
        println!(
            "leader lost, round {round}: the next put took {} ms",
            started.elapsed().as_millis()
        );
        nodes.insert(
            leader,
            Node::start(config(&directory, &addresses, leader))
                .await
                .expect("the node is back"),
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for node in nodes.into_values() {
        node.stop().await;
    }
}

fn config(directory: &std::path::Path, addresses: &BTreeMap<u64, String>, id: u64) -> NodeConfig {
    NodeConfig {
        id,
        address: Some(addresses[&id].clone()),
        listen: None,
        directory: directory.join(id.to_string()),
        secret: b"a secret for a measurement".to_vec(),
        members: addresses.clone(),
        pace: Pace::default(),
    }
}

/// Ports that are free now.
fn free_addresses() -> BTreeMap<u64, String> {
    let listeners: Vec<TcpListener> = (0..NODES)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    (1..)
        .zip(&listeners)
        .map(|(id, listener)| (id, listener.local_addr().expect("an address").to_string()))
        .collect()
}

/// The rate, the median time and the 99th percentile, in milliseconds.
async fn measure(
    stores: &[QuorumStore],
    clients: u64,
    time: Duration,
    value_bytes: usize,
    is_put: bool,
) -> (f64, f64, f64) {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for client in 0..clients {
        let store = stores[client as usize % stores.len()].clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while started.elapsed() < time {
                let at = times.len();
                let path = Path::from(format!("log/{client}/{at:010}"));
                let began = Instant::now();
                if is_put {
                    store
                        .put_opts(
                            &path,
                            vec![at as u8; value_bytes].into(),
                            PutMode::Create.into(),
                        )
                        .await
                        .expect("a put");
                } else {
                    store
                        .get(&Path::from("first"))
                        .await
                        .expect("a read")
                        .bytes()
                        .await
                        .expect("bytes");
                }
                times.push(began.elapsed().as_secs_f64() * 1_000.0);
            }
            times
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a client"));
    }
    let elapsed = started.elapsed().as_secs_f64();
    times.sort_unstable_by(f64::total_cmp);
    (
        times.len() as f64 / elapsed,
        times[times.len() / 2],
        times[times.len() * 99 / 100],
    )
}
