//! Tests of clusters over sockets: the store's guarantees while nodes join, leave and fail.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Cluster, create, get, put};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion, WriteMultipart,
};
use orrery_raft_store::{Node, NodeConfig, Pace};

fn bytes(number: usize) -> Vec<u8> {
    (0..number).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_sees_what_any_node_has_put() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    for (number, size) in [0, 10, 64 << 10, (64 << 10) + 1, 9 << 20]
        .into_iter()
        .enumerate()
    {
        let (path, body) = (format!("a/{number}"), bytes(size));
        put(&cluster.store(1 + number as u64 % 3), &path, body.clone()).await;
        for id in 1..=3 {
            let store = cluster.store(id);
            assert!(
                get(&store, &path).await == body,
                "{size} bytes from node {id}"
            );
            let meta = store.head(&Path::from(path.as_str())).await.unwrap();
            assert_eq!(meta.size, size as u64);
            if size > 4 {
                let range = size as u64 / 2..size as u64 - 1;
                let part = store
                    .get_range(&Path::from(path.as_str()), range.clone())
                    .await
                    .unwrap();
                assert!(part == body[range.start as usize..range.end as usize]);
            }
        }
    }
    let store = cluster.store(2);
    let listed: Vec<String> = store
        .list(Some(&Path::from("a")))
        .map_ok(|meta| meta.location.to_string())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(listed, ["a/0", "a/1", "a/2", "a/3", "a/4"]);
    store
        .copy(&Path::from("a/4"), &Path::from("b/c/4"))
        .await
        .unwrap();
    store.delete(&Path::from("a/4")).await.unwrap();
    assert!(
        get(&cluster.store(3), "b/c/4").await == bytes(9 << 20),
        "a copy keeps the file"
    );
    let found = store.list_with_delimiter(None).await.unwrap();
    assert_eq!(found.common_prefixes, [Path::from("a"), Path::from("b")]);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_puts_and_gets_hold_across_nodes() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    let (one, two) = (cluster.store(1), cluster.store(2));
    let path = Path::from("MANIFEST");
    let first = one.put_opts(&path, "a".into(), create()).await.unwrap();
    assert!(matches!(
        two.put_opts(&path, "b".into(), create()).await,
        Err(Error::AlreadyExists { .. })
    ));
    let update = PutMode::Update(UpdateVersion::from(first.clone()));
    let second = two
        .put_opts(&path, "b".into(), update.clone().into())
        .await
        .unwrap();
    assert!(matches!(
        one.put_opts(&path, "c".into(), update.into()).await,
        Err(Error::Precondition { .. })
    ));
    let unchanged = GetOptions {
        if_none_match: second.e_tag.clone(),
        ..GetOptions::default()
    };
    assert!(matches!(
        one.get_opts(&path, unchanged).await,
        Err(Error::NotModified { .. })
    ));
    let changed = GetOptions {
        if_none_match: first.e_tag,
        ..GetOptions::default()
    };
    assert_eq!(
        one.get_opts(&path, changed)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "b"
    );
    assert!(matches!(
        one.get(&Path::from("none")).await,
        Err(Error::NotFound { .. })
    ));
    one.delete(&Path::from("none")).await.unwrap();
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_may_come_in_parts() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    let (body, path) = (bytes(11 << 20), Path::from("files/1-2"));
    let upload = cluster.store(2).put_multipart(&path).await.unwrap();
    let mut write = WriteMultipart::new(upload);
    for part in body.chunks(777_777) {
        write.write(part);
    }
    write.finish().await.unwrap();
    for id in 1..=3 {
        assert!(
            get(&cluster.store(id), "files/1-2").await == body,
            "from node {id}"
        );
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_one_needs_no_network_and_keeps_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    let config = NodeConfig {
        id: 1,
        address: None,
        listen: None,
        directory: directory.path().to_owned(),
        secret: Vec::new(),
        members: BTreeMap::from([(1, String::new())]),
        pace: Pace::default(),
    };
    let node = Node::start(config.clone()).await.unwrap();
    put(&node.store(), "a", "small").await;
    put(&node.store(), "b", bytes(100_000)).await;
    assert!(
        Node::start(config.clone()).await.is_err(),
        "a second node in the same directory"
    );
    node.stop().await;
    let node = Node::start(config).await.unwrap();
    assert_eq!(get(&node.store(), "a").await, b"small");
    assert!(get(&node.store(), "b").await == bytes(100_000));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_put_after_a_lost_leader_takes_less_than_two_seconds_and_nothing_is_lost() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    let mut shortest = Duration::MAX;
    // A machine that has much else to do may delay one of them.
    for round in 0..3 {
        put(&cluster.store(1), &format!("before/{round}"), "x").await;
        let leader = cluster.leader().await;
        let store = cluster.store(if leader == 1 { 2 } else { 1 });
        cluster.stop(leader).await;
        let started = Instant::now();
        put(&store, &format!("after/{round}"), "y").await;
        shortest = shortest.min(started.elapsed());
        println!("fail-over: {} ms", started.elapsed().as_millis());
        assert_eq!(get(&store, &format!("before/{round}")).await, b"x");
        cluster.launch(leader, BTreeMap::new()).await;
        let back = get(&cluster.store(leader), &format!("after/{round}")).await;
        assert_eq!(back, b"y", "the node that was lost is back");
    }
    assert!(shortest < Duration::from_secs(2), "{shortest:?}");
    cluster.stop_all().await;
}

/// Clients that put and read while something else happens. Gives the number of puts; each is read
/// back at the end.
struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<u64>>,
    store: orrery_raft_store::QuorumStore,
}

impl Load {
    fn start(cluster: &Cluster, nodes: &[u64]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for client in 0..8_u64 {
            let (store, stop) = (
                cluster.store(nodes[client as usize % nodes.len()]),
                stop.clone(),
            );
            tasks.push(tokio::spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let path = Path::from(format!("load/{client}/{number}"));
                    store
                        .put_opts(&path, number.to_string().into(), create())
                        .await
                        .unwrap();
                    let read = store.get(&path).await.unwrap().bytes().await.unwrap();
                    assert_eq!(read, number.to_string());
                    number += 1;
                }
                number
            }));
        }
        Self {
            stop,
            tasks,
            store: cluster.store(nodes[0]),
        }
    }

    /// Waits until there is more than one snapshot's worth of entries.
    async fn has_begun(&self) {
        while self.listed().await < 100 {
            tokio::task::yield_now().await;
        }
    }

    async fn listed(&self) -> u64 {
        let listed: Vec<_> = self
            .store
            .list(Some(&Path::from("load")))
            .try_collect()
            .await
            .unwrap();
        listed.len() as u64
    }

    async fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut total = 0;
        for task in std::mem::take(&mut self.tasks) {
            total += task.await.unwrap();
        }
        assert_eq!(self.listed().await, total);
        assert!(total > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_added_and_another_removed_under_load() {
    // Small snapshots, so that the new node gets one.
    let pace = Pace {
        snapshot_entries: 50,
        ..Pace::default()
    };
    let mut cluster = Cluster::start(3, pace).await;
    put(&cluster.store(1), "files/large", bytes(5 << 20)).await;
    let leader = cluster.leader().await;
    let stays: Vec<u64> = (1..=3).filter(|&id| id != leader).collect();
    let load = Load::start(&cluster, &stays);
    load.has_begun().await;
    cluster.join(4).await;
    cluster.nodes[&stays[0]]
        .add(4, &cluster.addresses[&4].clone())
        .await
        .unwrap();
    let status = cluster.nodes[&stays[0]].status_of(4).await.unwrap();
    assert_eq!(status.missing_files, 0);
    assert!(status.voters.contains(&4), "{status:?}");
    // The leader goes: the others elect one.
    cluster.nodes[&4].remove(leader).await.unwrap();
    cluster.stop(leader).await;
    let store = cluster.store(4);
    put(&store, "after", "z").await;
    load.finish().await;
    let status = cluster.nodes[&4].status().await.unwrap();
    assert!(!status.voters.contains(&leader), "{status:?}");
    assert!(get(&store, "files/large").await == bytes(5 << 20));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_down_fetches_the_files_that_it_lacks() {
    let mut cluster = Cluster::start(
        3,
        Pace {
            snapshot_entries: 20,
            ..Pace::default()
        },
    )
    .await;
    let leader = cluster.leader().await;
    let down = (1..=3).find(|&id| id != leader).unwrap();
    cluster.stop(down).await;
    let store = cluster.store(leader);
    put(&store, "files/a", bytes(3 << 20)).await;
    for number in 0..60 {
        put(&store, &format!("small/{number}"), "x").await;
    }
    cluster.launch(down, BTreeMap::new()).await;
    let back = &cluster.nodes[&down];
    let started = Instant::now();
    while let Err(error) = back.current(Duration::from_secs(2)).await {
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, led) = (back.status().await.unwrap(), back.status_of(leader).await);
    assert_eq!(status.missing_files, 0, "nothing is missing by then");
    assert_eq!(status.applied, led.unwrap().applied);
    assert!(
        get(&cluster.store(down), "files/a").await == bytes(3 << 20),
        "from its own disk, or another node's"
    );
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lacks_a_file_says_that_it_is_behind() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    let leader = cluster.leader().await;
    let lacks = (1..=3).find(|&id| id != leader).unwrap();
    put(&cluster.store(leader), "files/a", bytes(100_000)).await;
    let node = &cluster.nodes[&lacks];
    let started = Instant::now();
    while let Err(error) = node.current(Duration::from_secs(2)).await {
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
    }
    // What another machine would have lost.
    let files = cluster
        .directories
        .path()
        .join(lacks.to_string())
        .join("files");
    for file in std::fs::read_dir(files).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let behind = node.current(Duration::from_secs(2)).await.unwrap_err();
    assert!(behind.to_string().contains("1 files"), "{behind}");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_find_each_other_by_names_and_listen_where_they_are_told() {
    let mut cluster = Cluster::start(0, Pace::default()).await;
    let ports = (1..=3).map(|id| {
        let address = crate::common::free_address();
        (id, address.rsplit_once(':').unwrap().1.to_owned())
    });
    let ports: BTreeMap<u64, String> = ports.collect();
    let named = ports.iter();
    cluster.addresses = named
        .map(|(&id, port)| (id, format!("localhost:{port}")))
        .collect();
    for (&id, port) in &ports {
        let config = NodeConfig {
            listen: Some(format!("127.0.0.1:{port}")),
            ..cluster.config(id, cluster.addresses.clone())
        };
        let node = Node::start(config).await.unwrap();
        cluster.nodes.insert(id, Arc::new(node));
    }
    put(&cluster.store(1), "a", "x").await;
    assert_eq!(get(&cluster.store(2), "a").await, b"x");
    assert_eq!(get(&cluster.store(3), "a").await, b"x");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_about_to_stop_does_not_wait_long_for_others_that_have_stopped() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    put(&cluster.store(1), "a", "x").await;
    cluster.nodes[&1].hurry();
    put(&cluster.store(1), "b", "x").await;
    cluster.stop(2).await;
    cluster.stop(3).await;
    let started = Instant::now();
    let path = Path::from("a");
    assert!(cluster.store(1).put(&path, "y".into()).await.is_err());
    assert!(started.elapsed() < Pace::default().request / 2);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_answered_but_stale_reads() {
    let pace = Pace {
        request: Duration::from_millis(1_500),
        attempt: Duration::from_millis(500),
        ..Pace::default()
    };
    let mut cluster = Cluster::start(3, pace).await;
    put(&cluster.store(1), "a", "x").await;
    get(&cluster.store(1), "a").await;
    cluster.stop(2).await;
    cluster.stop(3).await;
    let store = cluster.store(1);
    let path = Path::from("a");
    let put = store.put(&path, "y".into()).await.unwrap_err().to_string();
    assert!(
        put.contains("unknown") || put.contains("no leader"),
        "{put}"
    );
    let read = store.get(&path).await.unwrap_err().to_string();
    assert!(read.contains("no leader"), "{read}");
    let alone = cluster.nodes[&1].current(Duration::from_millis(300)).await;
    let behind = alone.unwrap_err().to_string();
    assert!(behind.contains("lacks writes"), "{behind}");
    assert_eq!(
        store
            .stale()
            .get(&path)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "x"
    );
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_another_secret_is_refused() {
    let mut cluster = Cluster::start(1, Pace::default()).await;
    put(&cluster.store(1), "a", "x").await;
    cluster.addresses.insert(2, crate::common::free_address());
    let config = NodeConfig {
        secret: b"another secret of others".to_vec(),
        ..cluster.config(2, BTreeMap::new())
    };
    let stranger = Node::start(config).await.unwrap();

    let refused = cluster.nodes[&1]
        .add(2, &cluster.addresses[&2].clone())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("secret"), "{refused}");
    cluster.nodes[&1].remove(2).await.unwrap();
    let address = &cluster.addresses[&1];
    for headers in [
        vec![],
        vec![
            ("x-orrery-node", "1"),
            ("x-orrery-time", "1"),
            ("x-orrery-nonce", "n"),
            ("x-orrery-signature", "00"),
        ],
    ] {
        let mut request = reqwest::Client::new().post(format!("http://{address}/status"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401);
    }
    stranger.stop().await;
    cluster.stop_all().await;
}

/// The head of a request that says that this much of a body comes, of which nothing comes; what is
/// answered until the node closes or has said all.
async fn answer_to_a_head(address: &str, headers: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /raft/append HTTP/1.1\r\nHost: {address}\r\nContent-Length: 30000000\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("\r\n\r\n") {
        if stream.read_buf(&mut answer).await.unwrap_or(0) == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&answer).to_lowercase()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stranger_sends_is_refused_by_its_head_and_without_a_signature() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    cluster.leader().await;
    let address = cluster.addresses[&1].clone();
    let forged =
        "x-orrery-node: 1\r\nx-orrery-time: 1\r\nx-orrery-nonce: n\r\nx-orrery-signature: 00\r\n";
    let announced = format!("{forged}x-orrery-body: {}\r\n", "0".repeat(64));
    for headers in [announced.as_str(), "x-orrery-body: 00\r\n"] {
        // At once: longer than that it would wait for the body.
        let answer = answer_to_a_head(&address, headers);
        let answer = tokio::time::timeout(Duration::from_secs(4), answer).await;
        let answer = answer.expect("it waits for the body");
        assert!(answer.starts_with("http/1.1 401"), "{answer}");
        assert!(!answer.contains("x-orrery-signature"), "{answer}");
    }
    // Those of earlier versions, which do not say what was signed, wait a moment, and few of them.
    let waiting = (0..6).map(|_| answer_to_a_head(&address, forged));
    let answers = tokio::time::timeout(Duration::from_secs(30), futures::future::join_all(waiting));
    for answer in answers.await.expect("they wait for ever") {
        assert!(answer.starts_with("http/1.1 401"), "{answer}");
        assert!(!answer.contains("x-orrery-signature"), "{answer}");
    }
    cluster.stop_all().await;
}
