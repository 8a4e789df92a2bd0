//! Tests of calls between the nodes of a cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::Cluster;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use orrery_raft_store::{
    CALL_REQUEST_BYTES_MAX, CALL_SILENCE, CallError, CallHandler, Node, NodeConfig, Pace,
};

/// Answers its number, the kind, and the request word for word.
struct Echo(u64);

impl CallHandler for Echo {
    fn answer(&self, kind: &str, request: Bytes) -> BoxStream<'static, Result<Bytes, String>> {
        if request == "fail" {
            let text = format!("node {} was asked to fail", self.0);
            return stream::iter([Ok(Bytes::new()), Err(text), Ok(Bytes::new())]).boxed();
        }
        let words = request
            .split(|&byte| byte == b' ')
            .map(|word| request.slice_ref(word));
        let first = Bytes::from(format!("{} {kind}", self.0));
        let messages: Vec<_> = [first].into_iter().chain(words).map(Ok).collect();
        stream::iter(messages).boxed()
    }
}

async fn call(
    node: &Node,
    to: u64,
    kind: &str,
    request: impl Into<Bytes>,
) -> Result<Vec<Bytes>, CallError> {
    let answer = node.call(to, kind, request.into(), CALL_SILENCE).await?;
    answer.try_collect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_member_calls_any_other_and_itself() {
    let mut cluster = Cluster::start(3, Pace::default()).await;
    cluster.leader().await;
    for (&id, node) in &cluster.nodes {
        node.answer_calls("echo", Arc::new(Echo(id))).unwrap();
        assert!(node.answer_calls("echo", Arc::new(Echo(id))).is_err());
        assert!(node.answer_calls("A/b", Arc::new(Echo(id))).is_err());
        assert_eq!(node.id(), id);
    }
    for node in cluster.nodes.values() {
        let peers: BTreeMap<u64, String> = node.peers().into_iter().collect();
        assert_eq!(peers, cluster.addresses);
        for to in peers.into_keys() {
            let heard = call(node, to, "echo", "a  b").await.unwrap();
            assert_eq!(heard, [&*format!("{to} echo"), "a", "", "b"]);
            let message = format!("node {to} was asked to fail");
            let failed = call(node, to, "echo", "fail").await;
            assert_eq!(failed, Err(CallError::Handler { node: to, message }));
            let unknown = call(node, to, "count", "").await;
            let detail = "it does not answer calls of kind `count`".to_owned();
            assert_eq!(unknown, Err(CallError::Refused { node: to, detail }));
            let large = vec![0; CALL_REQUEST_BYTES_MAX + 1];
            let refused = call(node, to, "echo", large).await;
            assert!(matches!(refused, Err(CallError::Refused { .. })));
        }
        let nobody = call(node, 9, "echo", "").await;
        assert!(matches!(
            nobody,
            Err(CallError::Unreachable { node: 9, .. })
        ));
    }
    // One that is gone is still a member.
    cluster.stop(3).await;
    let one = &cluster.nodes[&1];
    assert_eq!(one.peers().len(), 3);
    // A connection that was kept may be found closed only when it is used: then nobody can say
    // whether the handler has seen the call. There are at most as many of them as calls before.
    let mut gone = call(one, 3, "echo", "").await;
    for _ in 0..8 {
        if matches!(gone, Err(CallError::BrokenOff { .. })) {
            gone = call(one, 3, "echo", "").await;
        }
    }
    assert!(
        matches!(gone, Err(CallError::Unreachable { .. })),
        "{gone:?}"
    );
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_breaks_its_answers_off_at_once() {
    struct Endless;
    impl CallHandler for Endless {
        fn answer(&self, _: &str, _: Bytes) -> BoxStream<'static, Result<Bytes, String>> {
            stream::pending().boxed()
        }
    }
    let mut cluster = Cluster::start(3, Pace::default()).await;
    cluster.leader().await;
    cluster.nodes[&2]
        .answer_calls("endless", Arc::new(Endless))
        .unwrap();
    let one = cluster.nodes[&1].clone();
    let long = Duration::from_secs(60);
    let mut answer = one.call(2, "endless", Bytes::new(), long).await.unwrap();
    cluster.stop(2).await;
    let end = tokio::time::timeout(Duration::from_secs(20), answer.next()).await;
    assert!(matches!(
        end,
        Ok(Some(Err(CallError::BrokenOff { node: 2, .. })))
    ));
    cluster.stop_all().await;
}

#[test]
fn an_answer_is_read_on_a_thread_without_a_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut cluster = runtime.block_on(async {
        let cluster = Cluster::start(3, Pace::default()).await;
        cluster.leader().await;
        cluster
    });
    let (one, two) = (cluster.nodes[&1].clone(), cluster.nodes[&2].clone());
    two.answer_calls("echo", Arc::new(Echo(2))).unwrap();
    let heard = futures::executor::block_on(call(&one, 2, "echo", "x y"));
    assert_eq!(heard.unwrap(), ["2 echo", "x", "y"]);
    runtime.block_on(cluster.stop_all());
}

#[tokio::test]
async fn a_node_that_is_no_member_yet_and_one_alone_have_themselves() {
    let directory = tempfile::TempDir::new().unwrap();
    let address = crate::common::free_address();
    let config = |id: u64, address: Option<String>, members| NodeConfig {
        id,
        address,
        listen: None,
        directory: directory.path().join(id.to_string()),
        secret: crate::common::SECRET.to_vec(),
        members,
        pace: Pace::default(),
    };
    let waits = Node::start(config(7, Some(address.clone()), BTreeMap::new()));
    let waits = waits.await.unwrap();
    assert_eq!(waits.peers(), [(7, address)]);
    let alone = Node::start(config(8, None, [(8, String::new())].into()));
    let alone = alone.await.unwrap();
    assert_eq!(alone.peers(), [(8, String::new())]);
    alone.answer_calls("echo", Arc::new(Echo(8))).unwrap();
    assert_eq!(call(&alone, 8, "echo", "x").await.unwrap(), ["8 echo", "x"]);
    waits.stop().await;
    alone.stop().await;
    assert!(matches!(
        call(&alone, 8, "echo", "x").await,
        Err(CallError::Refused { .. })
    ));
}
