//! Tests of `/metrics`: what is counted, who may read it, that Prometheus' own programs read it,
//! and that the dashboard, the alerts and the docs name existing metrics.

use crate::client::{ask, get, post, send};
use crate::fixture::{ENDLESS_WORK, TestServer};
use crate::users::access::{PASSWORD, add_user, basic, grant, some_users, start_with};
use orrery_server::{MetricsToken, QueryLogOptions};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const UPDATE: &str = "Content-Type: application/sparql-update";
const SQL: &str = "Content-Type: application/sql";
const TOKEN: &str = "a-token-of-24-characters";

/// Samples by their name with labels, as they are printed.
type Samples = BTreeMap<String, f64>;

fn samples(text: &str) -> Samples {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}

async fn page(server: &TestServer) -> String {
    let answer = get(server.address, "/metrics", &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("Content-Type"), Some(content_type));
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    answer.text().to_owned()
}

/// The samples, as soon as they are as expected. A request is counted when its last holder is
/// dropped, which may be after its client has the answer.
async fn samples_when(server: &TestServer, expected: &[(&str, f64)]) -> Samples {
    let started = Instant::now();
    loop {
        let samples = samples(&page(server).await);
        let wrong = expected
            .iter()
            .find(|(name, value)| samples.get(*name) != Some(value));
        let Some((name, value)) = wrong else {
            return samples;
        };
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{name} is {:?}, and not {value}",
            samples.get(*name)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_counted_by_kind_and_outcome_with_their_times_and_rows() {
    let server = TestServer::start().await;
    let select = "SELECT ?s { ?s <http://example.com/number> 7 }";
    for (query, status) in [
        (select, 200),
        (select, 200),
        ("ASK { ?s ?p 8 }", 200),
        ("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o } LIMIT 5", 200),
        ("SELECT ?s { ?s }", 400),
    ] {
        assert_eq!(ask(server.address, query, &[]).await.status, status);
    }
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    let updated = post(server.address, "/sparql", &[UPDATE], insert).await;
    assert_eq!(updated.status, 200);
    let answered = post(server.address, "/sql", &[SQL], b"select 1 + 1 as two").await;
    assert_eq!(answered.status, 200);
    let samples = samples_when(
        &server,
        &[
            (r#"orrery_queries_total{kind="select",outcome="ok"}"#, 2.0),
            (r#"orrery_queries_total{kind="ask",outcome="ok"}"#, 1.0),
            (
                r#"orrery_queries_total{kind="construct",outcome="ok"}"#,
                1.0,
            ),
            (r#"orrery_queries_total{kind="describe",outcome="ok"}"#, 0.0),
            (
                r#"orrery_queries_total{kind="query",outcome="syntax"}"#,
                1.0,
            ),
            (r#"orrery_queries_total{kind="update",outcome="ok"}"#, 1.0),
            (r#"orrery_queries_total{kind="sql",outcome="ok"}"#, 1.0),
            (r#"orrery_query_rows_total{kind="select"}"#, 2.0),
            (r#"orrery_query_rows_total{kind="construct"}"#, 5.0),
            (r#"orrery_query_duration_seconds_count{kind="select"}"#, 2.0),
            (
                r#"orrery_query_duration_seconds_bucket{kind="select",le="+Inf"}"#,
                2.0,
            ),
            (
                r#"orrery_query_first_byte_seconds_count{kind="select"}"#,
                2.0,
            ),
            ("orrery_queries_running", 0.0),
            ("orrery_queries_waiting", 0.0),
            ("orrery_log_commits_total", 1.0),
            // The first is the load.
            ("orrery_commit_number", 2.0),
            ("orrery_changes_uncompacted", 1.0),
            ("orrery_oldest_snapshot_age_seconds", 0.0),
            ("orrery_writable", 1.0),
            ("orrery_panics_total", 0.0),
            (r#"orrery_connections_open{listener="http"}"#, 1.0),
        ],
    )
    .await;
    for name in [
        r#"orrery_query_duration_seconds_sum{kind="update"}"#,
        r#"orrery_query_stage_seconds_total{stage="plan"}"#,
        r#"orrery_query_stage_seconds_total{stage="run"}"#,
        r#"orrery_query_response_bytes_total{kind="select"}"#,
        r#"orrery_cache_misses_total{cache="shapes"}"#,
        r#"orrery_http_responses_total{listener="http",class="2xx"}"#,
        r#"orrery_http_responses_total{listener="http",class="4xx"}"#,
        r#"orrery_memory_limit_bytes{pool="process"}"#,
        r#"orrery_memory_limit_bytes{pool="operators"}"#,
        r#"orrery_connections_total{listener="http"}"#,
        "orrery_log_sync_duration_seconds_count",
        "orrery_log_bytes_total",
        "orrery_last_commit_timestamp_seconds",
        "orrery_quads",
        "orrery_connections_max",
        "orrery_queries_running_max",
    ] {
        assert!(samples[name] > 0.0, "{name}");
    }
    assert!(samples["orrery_log_sync_duration_seconds_count"] >= 1.0);
    // Buckets are cumulative.
    let buckets = samples.iter().filter(|(name, _)| {
        name.starts_with("orrery_query_duration_seconds_bucket{kind=\"select\"")
    });
    assert!(buckets.clone().count() > 10);
    assert!(buckets.into_iter().all(|(_, count)| *count <= 2.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_and_ended_is_counted_with_its_reason() {
    let limits = json!({"do": "set_limits", "of": {"user": "ann"}, "limits": {"rows": 5}});
    let commands = [
        add_user("root", true),
        add_user("ann", false),
        grant(json!({"user": "ann"}), "read", json!("all_graphs")),
        limits,
    ];
    let server = start_with(&commands, |options| {
        options.service.timeout_default = Duration::from_millis(50);
        options.http.metrics_token = MetricsToken::new(TOKEN);
    })
    .await;
    let (ann, root) = (basic("ann", PASSWORD), basic("root", PASSWORD));
    let many = "SELECT * { ?s <http://example.com/number> ?o }";
    let address = server.address;
    assert_eq!(ask(address, many, &[&ann]).await.status, 429);
    assert_eq!(ask(address, many, &[]).await.status, 401);
    assert_eq!(ask(address, ENDLESS_WORK, &[&root]).await.status, 503);
    assert_eq!(post(address, "/checkpoint", &[&ann], b"").await.status, 403);
    let started = Instant::now();
    let bearer = format!("Authorization: Bearer {TOKEN}");
    loop {
        let page = get(address, "/metrics", &[&bearer]).await;
        let samples = samples(page.text());
        let expected = [
            r#"orrery_requests_refused_total{code="429",reason="limit"}"#,
            r#"orrery_limits_exceeded_total{limit="rows"}"#,
            r#"orrery_requests_refused_total{code="401",reason="unknown"}"#,
            r#"orrery_requests_refused_total{code="403",reason="forbidden"}"#,
            r#"orrery_requests_refused_total{code="503",reason="timeout"}"#,
            r#"orrery_queries_total{kind="select",outcome="exceeded"}"#,
            r#"orrery_queries_total{kind="select",outcome="timeout"}"#,
        ];
        let touches = samples[r#"orrery_query_touches_total{kind="select"}"#];
        if touches > 0.0 && expected.iter().all(|name| samples[*name] == 1.0) {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{}",
            page.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_read_on_after_it_was_replaced_has_an_age() {
    let server = TestServer::start().await;
    let endless = crate::client::query_path(crate::fixture::ENDLESS_ROWS);
    let request = crate::client::request("GET", &endless, &[]);
    let mut reader = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut reader, &request)
        .await
        .unwrap();
    // The answer has begun, and waits for its client.
    let mut byte = [0];
    tokio::io::AsyncReadExt::read_exact(&mut reader, &mut byte)
        .await
        .unwrap();
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    let updated = post(server.address, "/sparql", &[UPDATE], insert).await;
    assert_eq!(updated.status, 200);
    let samples = samples(&page(&server).await);
    assert!(samples["orrery_oldest_snapshot_age_seconds"] > 0.0);
    assert_eq!(samples["orrery_queries_running"], 1.0);
    drop(reader);
    let gone = [
        ("orrery_oldest_snapshot_age_seconds", 0.0),
        ("orrery_queries_running", 0.0),
    ];
    samples_when(&server, &gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_and_compactions_are_counted() {
    let server = TestServer::start().await;
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    for path in ["/checkpoint", "/compact"] {
        assert_eq!(
            post(server.address, "/sparql", &[UPDATE], insert)
                .await
                .status,
            200
        );
        let done = post(server.address, path, &[], b"").await;
        assert_eq!(done.status, 200, "{}", done.text());
    }
    let samples = samples(&page(&server).await);
    for work in ["checkpoint", "compaction"] {
        let runs = format!("orrery_maintenance_runs_total{{work=\"{work}\",outcome=\"done\"}}");
        assert_eq!(samples[&runs], 1.0, "{work}");
        let last = format!("orrery_maintenance_last_end_timestamp_seconds{{work=\"{work}\"}}");
        assert!(samples[&last] > 1.6e9, "{work}");
        assert!(samples[&format!("orrery_maintenance_seconds_total{{work=\"{work}\"}}")] > 0.0);
        assert_eq!(
            samples[&format!("orrery_maintenance_running{{work=\"{work}\"}}")],
            0.0
        );
    }
    assert_eq!(samples["orrery_changes_uncompacted"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_are_users_administrators_read_it_and_who_has_the_token() {
    let status = async |address: SocketAddr, path: &str, headers: &[&str]| {
        get(address, path, headers).await.status
    };
    let [root, ann] = ["root", "ann"].map(|name| basic(name, PASSWORD));
    let token = format!("Authorization: Bearer {TOKEN}");
    let wrong = "Authorization: Bearer a-token-of-24-characterz";
    for has_token in [false, true] {
        let server = start_with(&some_users(), |options| {
            options.http.metrics_token = MetricsToken::new(TOKEN).filter(|_| has_token);
        })
        .await;
        for address in [server.address, server.admin.unwrap()] {
            assert_eq!(status(address, "/metrics", &[]).await, 401);
            assert_eq!(status(address, "/metrics", &[&ann]).await, 403);
            assert_eq!(status(address, "/metrics", &[&root]).await, 200);
            let expected = if has_token { 200 } else { 401 };
            assert_eq!(status(address, "/metrics", &[&token]).await, expected);
            assert_eq!(status(address, "/metrics", &[wrong]).await, 401);
        }
        // It is good for nothing else.
        assert_eq!(status(server.address, "/sparql", &[&token]).await, 401);
        assert_eq!(status(server.address, "/health", &[]).await, 200);
        let admin = server.admin.unwrap();
        assert_eq!(status(admin, "/queries", &[&token]).await, 401);
    }
    // Without users everybody reads it, unless there is a token.
    let open = TestServer::start().await;
    assert_eq!(status(open.address, "/metrics", &[]).await, 200);
    let put = send(open.address, "PUT", "/metrics", &[], b"").await;
    assert_eq!(
        (put.status, put.header("Allow")),
        (405, Some("GET, HEAD, OPTIONS"))
    );
    let closed = TestServer::start_with(|options| {
        options.http.metrics_token = MetricsToken::new(TOKEN);
    })
    .await;
    assert_eq!(status(closed.address, "/metrics", &[]).await, 401);
    assert_eq!(status(closed.address, "/metrics", &[&token]).await, 200);
    assert_eq!(status(closed.address, "/sparql", &[]).await, 200);
}

/// Families by their names, with all that can be there.
async fn families() -> (String, BTreeSet<String>) {
    let log = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(|options| {
        options.admin = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        options.service.query_log = Some(QueryLogOptions::new(log.path().join("log")));
    })
    .await;
    let text = page(&server).await;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.map(|line| line.split(' ').next().unwrap().to_owned());
    (text.clone(), names.collect())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names of metrics in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_of_name(character));
    let is_name = |word: &&str| {
        let named = word
            .strip_prefix("orrery_")
            .or(word.strip_prefix("process_"));
        named.is_some_and(|rest| rest.len() > 2)
    };
    words.filter(is_name).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_figure_is_explained_in_the_docs_and_what_docs_and_dashboards_name_is_there() {
    let (text, families) = families().await;
    for family in &families {
        let help = format!("# HELP {family} ");
        assert_eq!(text.matches(&help).count(), 1, "{family}");
    }
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    let docs = read("docs/operations.md");
    let documented = names_in(&docs);
    let in_docs: BTreeSet<&String> = families.difference(&documented).collect();
    assert!(in_docs.is_empty(), "not in docs/operations.md: {in_docs:?}");
    for path in [
        "docs/operations.md",
        "deploy/prometheus/alerts.yml",
        "deploy/grafana/orrery.json",
    ] {
        let named = names_in(&read(path));
        assert!(named.len() > 10, "{path}: {named:?}");
        let is_there = |name: &&String| {
            let of_histogram = ["_bucket", "_sum", "_count"].iter();
            families.contains(*name)
                || of_histogram
                    .filter_map(|suffix| name.strip_suffix(suffix))
                    .any(|family| families.contains(family))
        };
        let unknown: Vec<&String> = named.iter().filter(|name| !is_there(name)).collect();
        assert!(
            unknown.is_empty(),
            "{path} names what is not there: {unknown:?}"
        );
    }
}

#[test]
fn the_dashboard_is_json_and_each_alert_is_explained() {
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/orrery.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let is_row = panel["type"] == "row";
        assert!(
            is_row || !panel["targets"].as_array().unwrap().is_empty(),
            "{panel}"
        );
    }
    let docs = read("docs/operations.md");
    let alerts = read("deploy/prometheus/alerts.yml");
    let names = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 8);
    for name in names {
        assert!(
            docs.contains(&format!("`{name}`")),
            "{name} is not in docs/operations.md"
        );
    }
}

fn client(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("HOME")?);
    let path = path.join(".cache/orrery/clients/bin").join(name);
    path.exists().then_some(path)
}

/// Runs a program of others over a text; what it says where it does not take it.
fn refused_by(program: &Path, arguments: &[&str], input: &str) -> Option<String> {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_takes_the_figures_and_the_alerts() {
    let Some(promtool) = client("promtool") else {
        eprintln!("skipped: no promtool in ~/.cache/orrery/clients/bin (make setup)");
        return;
    };
    let (text, _) = families().await;
    assert_eq!(refused_by(&promtool, &["check", "metrics"], &text), None);
    let broken = text.replace(
        "# TYPE orrery_build_info gauge",
        "# TYPE orrery_build_info gouge",
    );
    assert!(refused_by(&promtool, &["check", "metrics"], &broken).is_some());
    let alerts = repository().join("deploy/prometheus/alerts.yml");
    let alerts = alerts.to_str().unwrap();
    assert_eq!(refused_by(&promtool, &["check", "rules", alerts], ""), None);
}

const PYTHON: &str = r"
import sys
from prometheus_client.parser import text_string_to_metric_families
families = {family.name: family for family in text_string_to_metric_families(sys.stdin.read())}
kinds = [sample for sample in families['orrery_queries'].samples if sample.name == 'orrery_queries_total']
assert len(kinds) == 56, len(kinds)
assert families['orrery_queries'].type == 'counter' and families['orrery_queries'].documentation
assert families['orrery_query_duration_seconds'].type == 'histogram'
assert families['orrery_build_info'].samples[0].labels['version']
assert not [name for name, family in families.items() if family.type == 'unknown' or not family.documentation]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_parser_of_prometheus_python_client_reads_them() {
    let python = client("python");
    let has_parser = python.as_ref().is_some_and(|python| {
        refused_by(python, &["-c", "import prometheus_client"], "").is_none()
    });
    let (Some(python), true) = (python, has_parser) else {
        eprintln!("skipped: no prometheus-client in ~/.cache/orrery/clients (make setup)");
        return;
    };
    let (text, _) = families().await;
    assert_eq!(refused_by(&python, &["-c", PYTHON], &text), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_an_older_base_go_with_the_first_over_a_new_one() {
    let server = TestServer::start().await;
    let plans = "orrery_cache_entries{cache=\"plans\"}";
    let ask_for = async |predicate: &str| {
        for thing in 1..6 {
            let query = format!(
                "SELECT ?{predicate} {{ <http://example.com/s{thing}> <http://example.com/number> ?{predicate} }}"
            );
            assert_eq!(ask(server.address, &query, &[]).await.status, 200);
        }
    };
    for name in ["a", "b", "c"] {
        ask_for(name).await;
    }
    samples_when(&server, &[(plans, 3.0)]).await;
    let insert = b"INSERT DATA { <http://e/s> <http://e/p> 1 }";
    assert_eq!(
        post(server.address, "/sparql", &[UPDATE], insert)
            .await
            .status,
        200
    );
    // Over the same base all of them stay.
    ask_for("d").await;
    samples_when(&server, &[(plans, 4.0)]).await;
    assert_eq!(post(server.address, "/compact", &[], b"").await.status, 200);
    ask_for("e").await;
    samples_when(&server, &[(plans, 1.0)]).await;
}
