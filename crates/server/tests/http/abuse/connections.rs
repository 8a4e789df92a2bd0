//! Connections that one address keeps open: beyond a limit they are closed at once, and other
//! addresses get in.

use super::assert_unharmed;
use crate::client::get;
use crate::fixture::TestServer;
use orrery_server::TrustedProxies;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(20);
const PER_ADDRESS: usize = 4;

async fn start(proxy: &'static str) -> TestServer {
    TestServer::start_with(|options| {
        options.connections_per_address = PER_ADDRESS;
        options.counts_loopback = true;
        options.trust_proxy = TrustedProxies::new([proxy]).unwrap();
    })
    .await
}

/// Whether the server closes a connection without a word, soon.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut byte)).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opens_more_than_they_may_is_closed_and_the_place_is_free_again() {
    let server = start("192.0.2.1").await;
    let mut held = Vec::new();
    for _ in 0..PER_ADDRESS {
        held.push(TcpStream::connect(server.address).await.unwrap());
    }
    for _ in 0..3 {
        let mut more = TcpStream::connect(server.address).await.unwrap();
        assert!(is_closed(&mut more).await);
    }
    drop(held);
    // As soon as the server has seen that they are gone.
    let answered = async {
        loop {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let mut byte = [0];
            // One that is not closed says nothing, for it is asked nothing.
            let said = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut byte));
            if said.await.is_err() {
                return;
            }
        }
    };
    assert!(tokio::time::timeout(PATIENCE, answered).await.is_ok());
    assert_unharmed(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_and_this_machine_have_no_bound_of_their_own() {
    let by_proxy = start("127.0.0.1").await;
    let by_default = TestServer::start_with(|options| options.connections_per_address = 1).await;
    for server in [by_proxy, by_default] {
        let mut held = Vec::new();
        for _ in 0..3 * PER_ADDRESS {
            held.push(TcpStream::connect(server.address).await.unwrap());
        }
        assert_eq!(get(server.address, "/health", &[]).await.status, 200);
        drop(held);
    }
}
