//! Nodes of a cluster that lose the writer role: they follow at once, whatever clients have left
//! open, and may write again.

use crate::client::{get, post};
use crate::fixture::TestServer;
use crate::users::postgres_users::{any_port, connect, refused};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use orrery_distributed::{Answer, Network, NetworkError};
use orrery_object_store::{CacheOptions, ObjectOptions};
use orrery_postgres::PostgresOptions;
use orrery_server::{Answers, Cluster, Work};
use orrery_storage::Database;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Who leads is said by the test; the nodes have nothing to say to each other.
#[derive(Debug, Default)]
struct Led {
    leads: AtomicBool,
}

#[derive(Debug)]
struct Alone;

impl Network for Alone {
    fn members(&self) -> Vec<String> {
        vec!["1".to_owned()]
    }

    fn here(&self) -> String {
        "1".to_owned()
    }

    fn call(&self, member: &str, _: Bytes) -> BoxFuture<'static, Result<Answer, NetworkError>> {
        let member = member.to_owned();
        let reason = "it is alone".to_owned();
        async { Err(NetworkError::Lost { member, reason }) }.boxed()
    }
}

impl Cluster for Led {
    fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    fn leader(&self) -> Option<String> {
        None
    }

    fn network(&self, _: Work) -> Arc<dyn Network> {
        Arc::new(Alone)
    }

    fn answer(&self, _: Work, _: Answers) -> Result<(), String> {
        Ok(())
    }

    fn current(&self) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<serde_json::Value, String>> {
        async { Err("nobody asks".to_owned()) }.boxed()
    }

    fn add<'a>(&'a self, _: u64, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async { Err("it is alone".to_owned()) }.boxed()
    }

    fn remove(&self, _: u64) -> BoxFuture<'_, Result<(), String>> {
        async { Err("it is alone".to_owned()) }.boxed()
    }
}

struct Node {
    server: TestServer,
    led: Arc<Led>,
}

impl Node {
    async fn start(home: &Path, name: &str, leads: bool) -> Self {
        let led = Arc::new(Led::default());
        led.leads.store(leads, Ordering::Relaxed);
        let cache = CacheOptions {
            directory: home.join(name),
            bytes: 64 << 20,
        };
        let address = format!("file://{}", home.join("bucket").display());
        let opening = move || {
            let (files, root) =
                orrery_object_store::open(&address, &ObjectOptions { cache }).unwrap();
            files.set_takes_over(true);
            if leads {
                Database::create_or_open_with(files.clone(), &root).unwrap();
            }
            (files, root)
        };
        let (files, root) = tokio::task::spawn_blocking(opening).await.unwrap();
        let cluster = Arc::clone(&led);
        let server = TestServer::start_with(|options| {
            options.db = root;
            options.objects = Some(files);
            options.stands_by = true;
            options.service.cluster = Some(cluster);
            options.postgres = Some(PostgresOptions::new(any_port()));
        })
        .await;
        Self { server, led }
    }

    fn lead(&self, leads: bool) {
        self.led.leads.store(leads, Ordering::Relaxed);
    }

    async fn sql(&self, text: &str) -> Option<String> {
        let headers = ["Content-Type: application/sql", "Accept: text/csv"];
        let answer = post(self.server.address, "/sql", &headers, text.as_bytes()).await;
        (answer.status == 200).then(|| answer.text().trim().replace("\r\n", "|"))
    }

    async fn is_ready(&self) -> bool {
        get(self.server.address, "/health/ready", &[]).await.status == 200
    }

    /// Changes something as soon as this node writes.
    async fn change(&self, text: &str) {
        until(text, async || self.sql(text).await.is_some()).await;
    }

    async fn shows(&self, expected: &str) {
        let asked = "select a from t order by a";
        until(expected, async || {
            self.sql(asked).await.as_deref() == Some(expected)
        })
        .await;
    }
}

/// Sooner than a block without a word is ended.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let reached = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
    assert!(reached.is_ok(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leads_no_more_follows_at_once_whatever_blocks_are_open() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("bucket")).unwrap();
    let first = Node::start(home.path(), "first", true).await;
    first.change("create table t (a int primary key)").await;
    let second = Node::start(home.path(), "second", false).await;
    let idle = connect(&first.server, "any", "none").await.unwrap();
    idle.batch_execute("begin; insert into t values (1)")
        .await
        .unwrap();
    let reading = connect(&first.server, "any", "none").await.unwrap();
    reading
        .batch_execute("begin; select a from t")
        .await
        .unwrap();

    first.lead(false);
    second.lead(true);
    second.change("insert into t values (2)").await;
    first.shows("a|2").await;
    until("it is ready", async || first.is_ready().await).await;
    let (code, message) = refused(idle.simple_query("insert into t values (3)").await);
    assert_eq!(code, "40001", "{message}");
    idle.simple_query("rollback").await.unwrap();

    // It leads again, and writes, while a block that is older than its turn is open.
    let other = connect(&second.server, "any", "none").await.unwrap();
    other
        .batch_execute("begin; insert into t values (4)")
        .await
        .unwrap();
    second.lead(false);
    first.lead(true);
    first.change("insert into t values (5)").await;
    second.shows("a|2|5").await;
    let (code, message) = refused(other.simple_query("commit").await);
    assert_eq!(code, "40001", "{message}");
    second.lead(true);
    first.lead(false);
    second.change("insert into t values (6)").await;
    first.shows("a|2|5|6").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leads_and_does_not_write_is_not_ready() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("bucket")).unwrap();
    let node = Node::start(home.path(), "first", true).await;
    until("it is ready", async || node.is_ready().await).await;
    // Nobody may put anything any more: it can neither write nor look.
    let bucket = home.path().join("bucket");
    std::fs::rename(&bucket, home.path().join("away")).unwrap();
    std::fs::write(&bucket, "in its place").unwrap();
    node.lead(false);
    until("it is not ready", async || !node.is_ready().await).await;
    node.lead(true);
    until("it is not ready", async || !node.is_ready().await).await;
    std::fs::remove_file(&bucket).unwrap();
    std::fs::rename(home.path().join("away"), &bucket).unwrap();
    until("it is ready again", async || node.is_ready().await).await;
    node.change("create table t (a int)").await;
}
