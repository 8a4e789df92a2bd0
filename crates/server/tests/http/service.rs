//! SERVICE between two servers of ours.

use super::client::{Answer, encode, get};
use super::fixture::{SUBJECTS, TestServer};
use orrery_remote::AllowList;
use std::net::SocketAddr;
use std::time::Duration;

async fn server_that_may_ask(entries: &[String]) -> TestServer {
    TestServer::start_with(|options| {
        options.endpoints.allow = AllowList::parse(entries).unwrap();
        options.endpoints.timeout = Duration::from_secs(20);
    })
    .await
}

async fn ask(address: SocketAddr, query: &str) -> Answer {
    let path = format!("/sparql?format=csv&query={}", encode(query));
    get(address, &path, &[]).await
}

#[tokio::test]
async fn one_server_asks_another() {
    let other = TestServer::start().await;
    let ours = server_that_may_ask(&["127.0.0.1".to_owned()]).await;
    let endpoint = format!("http://{}/sparql", other.address);
    let all = format!(
        "SELECT (COUNT(*) AS ?n) {{ ?s <http://example.com/number> ?number .
           SERVICE <{endpoint}> {{ ?s <http://example.com/next> ?next }} }}"
    );
    let answer = ask(ours.address, &all).await;
    assert_eq!(answer.text(), format!("n\r\n{SUBJECTS}\r\n"));
    let some = format!(
        "SELECT ?name {{ ?s <http://example.com/number> 7 .
           OPTIONAL {{ SERVICE SILENT <{endpoint}> {{ ?s <http://example.com/name> ?name }} }} }}"
    );
    let answer = ask(ours.address, &some).await;
    assert_eq!(answer.text(), "name\r\nthe thing whose number is 7\r\n");
    let both = format!(
        "SELECT (COUNT(*) AS ?n) {{ SERVICE <{endpoint}> {{ ?s <http://example.com/number> ?a FILTER(?a < 10) }}
           SERVICE <{endpoint}?timeout=20> {{ ?s <http://example.com/next> ?next }} }}"
    );
    let answer = ask(ours.address, &both).await;
    assert_eq!(answer.text(), "n\r\n10\r\n");
}

#[tokio::test]
async fn only_what_is_allowed_is_asked() {
    let other = TestServer::start().await;
    let endpoint = format!("http://{}/sparql", other.address);
    let query = format!("SELECT * {{ SERVICE <{endpoint}> {{ ?s ?p ?o }} }}");
    let silent = format!("SELECT * {{ SERVICE SILENT <{endpoint}> {{ ?s ?p ?o }} }}");
    let nobody = TestServer::start().await;
    let answer = ask(nobody.address, &query).await;
    assert_eq!(answer.status, 501);
    assert!(
        answer.text().contains("--service-allow"),
        "{}",
        answer.text()
    );
    assert_eq!(ask(nobody.address, &silent).await.text(), "s,p,o\r\n,,\r\n");
    let elsewhere = format!("http://{}/other", other.address);
    for entry in ["example.org", "*", &elsewhere] {
        let allow = AllowList::parse([entry]).unwrap();
        let ours = TestServer::start_with(|options| options.endpoints.allow = allow).await;
        let answer = ask(ours.address, &query).await;
        assert_eq!(answer.status, 502, "{entry}");
        assert!(
            answer.text().contains("is not allowed"),
            "{}",
            answer.text()
        );
        assert_eq!(ask(ours.address, &silent).await.text(), "s,p,o\r\n,,\r\n");
    }
}

#[tokio::test]
async fn failures_and_limits_of_the_other_side_are_told() {
    let other = TestServer::start().await;
    let ours = TestServer::start_with(|options| {
        options.endpoints.allow = AllowList::parse(["127.0.0.1"]).unwrap();
        options.endpoints.answer_bytes_max = 10_000;
    })
    .await;
    let endpoint = format!("http://{}", other.address);
    for (path, message) in [
        ("/sparql", "larger than the limit of 10000 bytes"),
        ("/health", "status 405"),
        ("/nothing", "status 404"),
    ] {
        // Counted, so that the failure comes before the answer begins.
        let query =
            format!("SELECT (COUNT(*) AS ?n) {{ SERVICE <{endpoint}{path}> {{ ?s ?p ?o }} }}");
        let answer = ask(ours.address, &query).await;
        assert_eq!(answer.status, 502, "{}", answer.text());
        assert!(answer.text().contains(message), "{}", answer.text());
    }
}
