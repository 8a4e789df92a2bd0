//! Tests of traces sent to a collector on loopback.

use super::export::Tracer;
use super::messages::{ExportTraceServiceRequest, FAILED, INTERNAL, KeyValue, SERVER, Span, Value};
use super::options::OtlpOptions;
use super::record::{EndedRequest, TraceHead, TraceRecord};
use crate::metrics::EndedQuery;
use crate::stages::Stages;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::post};
use orrery_query_log::{Kind, Outcome};
use prost::Message as _;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT_SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// A collector that forwards what it receives, and answers with a status; returns its address.
async fn collector(
    status: StatusCode,
) -> (String, mpsc::UnboundedReceiver<ExportTraceServiceRequest>) {
    let (sender, received) = mpsc::unbounded_channel();
    let take = move |State(sender): State<mpsc::UnboundedSender<ExportTraceServiceRequest>>,
                     headers: HeaderMap,
                     body: Bytes| async move {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let _ = sender.send(ExportTraceServiceRequest::decode(body).unwrap());
        status
    };
    let router = Router::new()
        .route("/v1/traces", post(take))
        .with_state(sender);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (endpoint, received)
}

fn head<'a>(path: &'a str, parent: Option<&'a str>) -> TraceHead<'a> {
    TraceHead {
        method: "GET",
        path,
        route: Some(path).filter(|path| !path.contains("no/such")),
        parent,
        is_secure: false,
    }
}

fn query(outcome: Outcome, started: Instant) -> EndedQuery {
    let spent = [1, 2, 3, 4, 0].map(Duration::from_millis);
    EndedQuery {
        kind: Kind::Select,
        outcome,
        took: Duration::from_millis(12),
        first_byte: None,
        rows: 7,
        bytes: 100,
        touches: 20,
        stages: Some(Stages::new(started + Duration::from_millis(1), spent)),
    }
}

fn text<'s>(attributes: &'s [KeyValue], key: &str) -> Option<&'s str> {
    match &attributes
        .iter()
        .find(|it| it.key == key)?
        .value
        .as_ref()?
        .value
    {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn number(attributes: &[KeyValue], key: &str) -> Option<i64> {
    match attributes
        .iter()
        .find(|it| it.key == key)?
        .value
        .as_ref()?
        .value
    {
        Some(Value::Int(number)) => Some(number),
        _ => None,
    }
}

/// The end of a request without a query.
fn without_query(status: u16) -> EndedRequest<'static> {
    EndedRequest {
        status,
        took: Duration::ZERO,
        query: None,
    }
}

#[tokio::test]
async fn a_request_is_a_span_below_its_clients_with_its_stages_below_it() {
    let (endpoint, mut received) = collector(StatusCode::OK).await;
    let options = OtlpOptions {
        service: "test".to_owned(),
        ..OtlpOptions::new(endpoint)
    };
    let tracer = Tracer::start(&options, &Handle::current()).unwrap();
    let started = Instant::now();
    let asked = head("/sparql", Some(PARENT));
    let record = tracer
        .begin(
            asked,
            started,
            "203.0.113.9".parse().ok(),
            Some("tests/1.0"),
        )
        .unwrap();
    record.set_user("ann".to_owned());
    let query = query(Outcome::Timeout, started);
    let ended = EndedRequest {
        status: 503,
        took: query.took,
        query: Some(&query),
    };
    tracer.ended(&record, ended);
    tracer.finish().await;
    let sent = received.recv().await.unwrap();
    let [of_resource] = &sent.resource_spans[..] else {
        panic!("{sent:?}")
    };
    let resource = &of_resource.resource.as_ref().unwrap().attributes;
    assert_eq!(text(resource, "service.name"), Some("test"));
    let [root, stages @ ..] = &of_resource.scope_spans[0].spans[..] else {
        panic!("{sent:?}")
    };
    assert_eq!(root.trace_id[..2], [0x4b, 0xf9]);
    assert_eq!(
        root.parent_span_id,
        [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]
    );
    assert_eq!((root.name.as_str(), root.kind), ("GET /sparql", SERVER));
    assert_eq!(
        root.end_time_unix_nano - root.start_time_unix_nano,
        12_000_000
    );
    assert_eq!(root.status.as_ref().unwrap().code, FAILED);
    let of_root = &root.attributes;
    for (key, expected) in [
        ("http.request.method", "GET"),
        ("http.route", "/sparql"),
        ("url.path", "/sparql"),
        ("url.scheme", "http"),
        ("client.address", "203.0.113.9"),
        ("user_agent.original", "tests/1.0"),
        ("user.name", "ann"),
        ("db.system.name", "orrery"),
        ("db.operation.name", "SELECT"),
        ("error.type", "timeout"),
        ("orrery.outcome", "timeout"),
    ] {
        assert_eq!(text(of_root, key), Some(expected), "{key}");
    }
    for (key, expected) in [
        ("http.response.status_code", 503),
        ("db.response.returned_rows", 7),
        ("orrery.touches", 20),
    ] {
        assert_eq!(number(of_root, key), Some(expected), "{key}");
    }
    let names: Vec<&str> = stages.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["wait", "parse", "plan", "run"]);
    let mut at = root.start_time_unix_nano + 1_000_000;
    let within = |span: &Span| {
        span.kind == INTERNAL
            && span.trace_id == root.trace_id
            && span.parent_span_id == root.span_id
    };
    for (span, ms) in stages.iter().zip(1..) {
        assert!(within(span));
        assert_eq!(span.start_time_unix_nano, at);
        at += ms * 1_000_000;
        assert_eq!(span.end_time_unix_nano, at);
    }
    assert_eq!(
        (tracer.sent(), tracer.dropped(), tracer.failures()),
        (1, 0, 0)
    );
}

#[tokio::test]
async fn the_client_says_whether_its_trace_is_sampled_and_the_ratio_those_that_begin_here() {
    let (endpoint, _received) = collector(StatusCode::OK).await;
    let begins = |ratio: f64, parent: Option<&str>| {
        let options = OtlpOptions {
            ratio,
            ..OtlpOptions::new(&endpoint)
        };
        let tracer = Tracer::start(&options, &Handle::current()).unwrap();
        let request = head("/sparql", parent);
        tracer.begin(request, Instant::now(), None, None).is_some()
    };
    assert!(begins(0.0, Some(PARENT)));
    assert!(!begins(1.0, Some(NOT_SAMPLED)));
    assert!(begins(1.0, None));
    assert!(!begins(0.0, None));
    assert!(begins(1.0, Some("what is this")));
}

#[tokio::test]
async fn traces_that_find_no_room_are_counted_and_nobody_waits() {
    // The task does not run before this test yields.
    let tracer =
        Tracer::start(&OtlpOptions::new("http://127.0.0.1:1"), &Handle::current()).unwrap();
    let request = head("/no/such/path", None);
    let record = tracer.begin(request, Instant::now(), None, None).unwrap();
    let ended = without_query(404);
    for _ in 0..3_000 {
        tracer.ended(&record, ended);
    }
    assert_eq!(tracer.dropped(), 3_000 - 2_048);
    let spans = record.spans(ended, || None);
    assert_eq!((spans.len(), spans[0].name.as_str()), (1, "GET"));
    assert_eq!(spans[0].status, None);
}

/// Traces a request for a collector that answers with a status; returns the tracer, the record, and
/// the number of attempts.
async fn refused(status: StatusCode, pause: Duration) -> (Tracer, TraceRecord, usize) {
    let (endpoint, mut received) = collector(status).await;
    let options = OtlpOptions::new(endpoint);
    let tracer = Tracer::start_retrying(&options, &Handle::current(), pause).unwrap();
    let request = head("/health", None);
    let record = tracer.begin(request, Instant::now(), None, None).unwrap();
    tracer.ended(&record, without_query(200));
    tracer.finish().await;
    let mut attempts = 0;
    while received.try_recv().is_ok() {
        attempts += 1;
    }
    (tracer, record, attempts)
}

#[tokio::test]
async fn what_the_collector_does_not_take_is_tried_again_and_then_counted() {
    let pause = Duration::from_millis(1);
    let (tracer, record, attempts) = refused(StatusCode::SERVICE_UNAVAILABLE, pause).await;
    assert_eq!(attempts, 3);
    assert_eq!(
        (tracer.sent(), tracer.dropped(), tracer.failures()),
        (0, 1, 3)
    );
    // A trace after the end is dropped.
    tracer.ended(&record, without_query(200));
    assert_eq!(tracer.dropped(), 2);
}

#[tokio::test]
async fn what_the_collector_will_never_take_is_sent_once() {
    for status in [400, 401, 404, 413, 500] {
        // The test would time out if a second attempt were made.
        let pause = Duration::from_secs(1_000);
        let (tracer, _, attempts) = refused(StatusCode::from_u16(status).unwrap(), pause).await;
        assert_eq!(attempts, 1, "{status}");
        assert_eq!(
            (tracer.sent(), tracer.dropped(), tracer.failures()),
            (0, 1, 1),
            "{status}"
        );
    }
}
