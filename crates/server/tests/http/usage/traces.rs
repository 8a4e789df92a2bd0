//! Traces of requests as a collector gets them; OpenTelemetry's own messages for Python read them,
//! where installed.

use crate::client::{Answer, ask, get, post};
use crate::users::access::{PASSWORD, basic, some_users, start_with};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post as route;
use orrery_server::OtlpOptions;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tokio::sync::mpsc;

const TRACEPARENT: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UPDATE: &str = "Content-Type: application/sparql-update";

/// A collector; its address, and what it gets.
async fn collector() -> (String, mpsc::UnboundedReceiver<Bytes>) {
    let (sender, received) = mpsc::unbounded_channel();
    let take = async move |body: Bytes| {
        let _ = sender.send(body);
    };
    let router = Router::new().route("/v1/traces", route(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // By its name, too, which leads to an address that is not public.
    let endpoint = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (endpoint, received)
}

/// What the server sends for a query that belongs to a trace, an update, and a request that asks
/// nothing; the server has stopped then.
async fn sent() -> Vec<Bytes> {
    let (endpoint, mut received) = collector().await;
    let mut server = start_with(&some_users(), |options| {
        options.service.otlp = Some(OtlpOptions::new(endpoint));
    })
    .await;
    let (root, address) = (basic("root", PASSWORD), server.address);
    let status = |answer: Answer| answer.status;
    let query = "SELECT ?s { ?s <http://example.com/number> 7 }";
    assert_eq!(
        status(ask(address, query, &[&root, TRACEPARENT]).await),
        200
    );
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 'hidden words' }";
    assert_eq!(
        status(post(address, "/sparql", &[&root, UPDATE], insert).await),
        200
    );
    assert_eq!(status(get(address, "/no-such-path", &[&root]).await), 404);
    server.ask_to_stop();
    server.stopped().await;
    let mut all = Vec::new();
    while let Ok(body) = received.try_recv() {
        all.push(body);
    }
    all
}

fn has(bodies: &[Bytes], part: &[u8]) -> bool {
    bodies
        .iter()
        .any(|body| body.windows(part.len()).any(|window| window == part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_has_sent_its_traces_without_texts() {
    let sent = sent().await;
    for part in [
        "GET /sparql",
        "POST /sparql",
        "parse",
        "plan",
        "run",
        "write",
        "db.operation.name",
        "SELECT",
        "UPDATE",
        "root",
        "service.name",
    ] {
        assert!(has(&sent, part.as_bytes()), "{part}");
    }
    // The client's trace and span.
    assert!(has(
        &sent,
        &[
            0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e,
            0x47, 0x36
        ]
    ));
    assert!(has(
        &sent,
        &[0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]
    ));
    for secret in ["hidden words", "example.com/number", PASSWORD] {
        assert!(!has(&sent, secret.as_bytes()), "{secret}");
    }
}

const PYTHON: &str = r"
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = ExportTraceServiceRequest()
request.ParseFromString(sys.stdin.buffer.read())
print(MessageToJson(request))
";

/// A body as OpenTelemetry's messages for Python read it; none where these are not there.
fn read_by_python(body: &[u8]) -> Option<Value> {
    use std::io::Write as _;
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let python = home.join(".cache/orrery/clients/bin/python");
    let mut child = Command::new(python)
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    // It may have ended already.
    let _ = child.stdin.take().unwrap().write_all(body);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ModuleNotFoundError") {
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn opentelemetrys_own_messages_read_them() {
    let mut spans = Vec::new();
    for body in sent().await {
        let Some(request) = read_by_python(&body) else {
            eprintln!("skipped: no opentelemetry-proto in ~/.cache/orrery/clients (make setup)");
            return;
        };
        let resource = &request["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["key"], "service.name");
        let scope = &resource["scopeSpans"][0];
        assert_eq!(scope["scope"]["name"], "orrery");
        spans.extend(scope["spans"].as_array().unwrap().clone());
    }
    let attribute = |span: &Value, key: &str| {
        let attributes = span["attributes"].as_array().cloned().unwrap_or_default();
        let found = attributes.into_iter().find(|it| it["key"] == key);
        found.map_or(Value::Null, |it| it["value"].clone())
    };
    let roots: Vec<&Value> = spans
        .iter()
        .filter(|it| it["kind"] == "SPAN_KIND_SERVER")
        .collect();
    assert_eq!(roots.len(), 3, "{spans:?}");
    let select = roots
        .iter()
        .find(|it| attribute(it, "db.operation.name")["stringValue"] == "SELECT");
    let select = *select.unwrap();
    // Of bytes, JSON has base64.
    assert_eq!(select["traceId"], "S/kvNXezTaajzpKdDg5HNg==");
    assert_eq!(select["parentSpanId"], "APBnqgupArc=");
    assert_eq!(select["name"], "GET /sparql");
    assert_eq!(
        attribute(select, "http.response.status_code")["intValue"],
        "200"
    );
    assert_eq!(
        attribute(select, "db.response.returned_rows")["intValue"],
        "1"
    );
    assert_eq!(attribute(select, "db.system.name")["stringValue"], "orrery");
    assert_eq!(attribute(select, "user.name")["stringValue"], "root");
    assert!(
        attribute(select, "orrery.touches")["intValue"].is_string(),
        "{select}"
    );
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    let stages: Vec<&Value> = spans
        .iter()
        .filter(|it| it["parentSpanId"] == select["spanId"])
        .collect();
    assert!(stages.len() >= 4, "{stages:?}");
    for stage in stages {
        assert_eq!(stage["traceId"], select["traceId"]);
        assert!(
            time(stage, "startTimeUnixNano") >= time(select, "startTimeUnixNano"),
            "{stage}"
        );
        assert!(
            time(stage, "endTimeUnixNano") >= time(stage, "startTimeUnixNano"),
            "{stage}"
        );
    }
    let update = roots
        .iter()
        .find(|it| attribute(it, "db.operation.name")["stringValue"] == "UPDATE");
    let update = *update.unwrap();
    let of_update = spans
        .iter()
        .filter(|it| it["parentSpanId"] == update["spanId"]);
    let names: Vec<&str> = of_update.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["parse", "write"]);
    assert!(update["parentSpanId"].is_null(), "{update}");
    let lost = roots.iter().find(|it| it["name"] == "GET").unwrap();
    assert_eq!(
        attribute(lost, "http.response.status_code")["intValue"],
        "404"
    );
    assert!(attribute(lost, "db.operation.name").is_null());
}
