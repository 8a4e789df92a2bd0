//! SERVICE between two servers of ours.

use super::client::{Answer, encode, get, post};
use super::fixture::{SUBJECTS, TestServer};
use orrery_http_client::AllowList;
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

async fn update(address: SocketAddr, text: &str) -> Answer {
    let headers = ["Content-Type: application/sparql-update"];
    post(address, "/sparql", &headers, text.as_bytes()).await
}

async fn quads(address: SocketAddr) -> String {
    let answer = ask(address, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").await;
    answer.text().lines().nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_asks_another_server() {
    let other = TestServer::start().await;
    let ours = server_that_may_ask(&["127.0.0.1".to_owned()]).await;
    let endpoint = format!("http://{}/sparql", other.address);
    let text = format!(
        "DELETE {{ ?s ?p ?o }} INSERT {{ ?s <http://example.com/was> ?number }} WHERE {{ ?s ?p ?o
           SERVICE SILENT <{endpoint}> {{ ?s <http://example.com/number> ?number FILTER(?number = 7) }} }}"
    );
    let answer = update(ours.address, &text).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let was = "SELECT ?number { ?s <http://example.com/was> ?number }";
    assert_eq!(ask(ours.address, was).await.text(), "number\r\n7\r\n");
    let own = "SELECT ?s { ?s <http://example.com/number> 7 }";
    assert_eq!(ask(ours.address, own).await.text(), "s\r\n");
    let left =
        "SELECT ?name { ?s <http://example.com/number> 8 ; <http://example.com/name> ?name }";
    let answer = ask(ours.address, left).await;
    assert_eq!(answer.text(), "name\r\nthe thing whose number is 8\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_may_not_ask_changes_nothing() {
    let nobody = TestServer::start().await;
    let elsewhere = server_that_may_ask(&["example.org".to_owned()]).await;
    for server in [&nobody, &elsewhere] {
        let before = quads(server.address).await;
        for service in ["SERVICE", "SERVICE SILENT"] {
            let text = format!(
                "DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o {service} <http://127.0.0.1:17995/> {{ ?s a <http://Old> }} }}"
            );
            let answer = update(server.address, &text).await;
            assert!(
                answer.status == 501 || answer.status == 502,
                "{}",
                answer.text()
            );
            assert_eq!(quads(server.address).await, before, "{}", answer.text());
        }
    }
}
