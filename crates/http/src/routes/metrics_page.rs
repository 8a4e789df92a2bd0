//! GET `/metrics`: the server's metrics in Prometheus' text format, at the public address and on
//! the admin socket.
//!
//! ```text
//! Metrics (queries, refusals, connections) ---------.
//! engine (memory, caches), database (state, log) ---+--> Page --> text/plain; version=0.0.4
//! admission, writes, query log, /proc --------------|
//! object store and its cache, if there is one ------'
//! ```
//!
//! Each metric family is there from the start, with zeros, so that rates and alerts have a first
//! value; `docs/operations.md` has the table. Where the database has users, only administrators may
//! read the page, and holders of the token of `--metrics-token-file`. Nothing here waits for a
//! query.

use crate::route_table::HttpRequest;
use crate::state::HttpState;
use Type::{Counter, Gauge, Histogram};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use orrery_loader::changes_of;
use orrery_query_log::{Kind, Outcome};
use orrery_service::errors::ServiceError;
use orrery_service::metrics::{
    Listens, Metrics, ObjectFigures, Page, ProcessFigures, Refusal, SpentLimit, Type,
    write_divided, write_guests,
};
use orrery_service::traces::Tracer;
use orrery_storage::Work;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers GET `/metrics`.
pub(crate) async fn metrics(request: HttpRequest) -> Result<Response, ServiceError> {
    let state = request.state;
    // Reads some files of the system.
    let text = tokio::task::spawn_blocking(move || page(&state)).await;
    match text {
        Ok(text) => {
            let headers = [
                (header::CONTENT_TYPE, CONTENT_TYPE),
                (header::CACHE_CONTROL, "no-store"),
            ];
            Ok((headers, text).into_response())
        }
        Err(error) => Err(ServiceError::Internal {
            message: format!("the figures could not be put together: {error}"),
        }),
    }
}

/// Writes the page.
fn page(state: &HttpState) -> String {
    let mut page = Page::default();
    queries(&mut page, state);
    clients(&mut page, &state.metrics);
    caches(&mut page, state);
    data(&mut page, state);
    log(&mut page, state);
    maintenance(&mut page, state);
    memory(&mut page, state);
    let version = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("arch", std::env::consts::ARCH),
    ];
    page.family(
        "orrery_build_info",
        Gauge,
        "The version that runs; always 1.",
    )
    .sample(&version, 1);
    ObjectFigures::read(state.metrics.objects()).write(&mut page);
    let processes = state.engine.runtime().processes();
    let divided = processes.map(|processes| processes.figures());
    let load_shares = state.load_help.answered();
    write_divided(&divided.unwrap_or_default(), load_shares, &mut page);
    write_guests(state.metrics.guests().as_deref(), &mut page);
    ProcessFigures::read().write(&mut page);
    page.into_text()
}

fn queries(page: &mut Page, state: &HttpState) {
    let metrics = &*state.metrics;
    page.family(
        "orrery_queries_total",
        Counter,
        "Queries, updates and statements of SQL that have ended, at all ports, by kind and outcome.",
    );
    for kind in Kind::ALL {
        for outcome in Outcome::ALL {
            let labels = [("kind", kind.name()), ("outcome", outcome.name())];
            page.sample(&labels, metrics.of_kind(kind).outcome(outcome));
        }
    }
    page.family("orrery_query_duration_seconds", Histogram, "From the head of a request to the end of its answer, with the time that the client took to read it.");
    for kind in Kind::ALL {
        page.durations(
            &[("kind", kind.name())],
            &metrics.of_kind(kind).durations.counts(),
        );
    }
    page.family(
        "orrery_query_first_byte_seconds",
        Histogram,
        "From the head of a request to the first bytes of its answer's body.",
    );
    for kind in Kind::ALL {
        page.durations(
            &[("kind", kind.name())],
            &metrics.of_kind(kind).first_bytes.counts(),
        );
    }
    page.family(
        "orrery_query_stage_seconds_total",
        Counter,
        "Time that queries and updates have spent in each stage.",
    );
    for (stage, seconds) in metrics.stage_seconds() {
        page.sample(&[("stage", stage)], seconds);
    }
    let mut sums = |name, help: &str, of: fn(&orrery_service::metrics::OfKind) -> u64| {
        page.family(name, Counter, help);
        for kind in Kind::ALL {
            page.sample(&[("kind", kind.name())], of(metrics.of_kind(kind)));
        }
    };
    sums(
        "orrery_query_rows_total",
        "Rows, or triples, of answers.",
        |it| it.rows(),
    );
    sums(
        "orrery_query_response_bytes_total",
        "Bytes of answers' bodies as they were sent.",
        |it| it.bytes(),
    );
    sums(
        "orrery_query_touches_total",
        "Cost in touches of rows, where it is counted: the database has users, or there is a query log.",
        |it| it.touches(),
    );
    let admission = &state.admission;
    page.family(
        "orrery_queries_running",
        Gauge,
        "Queries that run now, by all protocols.",
    )
    .value(admission.running());
    page.family(
        "orrery_queries_running_max",
        Gauge,
        "Queries that may run at the same time.",
    )
    .value(admission.running_max());
    page.family(
        "orrery_queries_waiting",
        Gauge,
        "Queries that wait for their turn.",
    )
    .value(admission.waiting());
    let changes = state.seat.writes().map_or(0, |writes| writes.waiting());
    page.family(
        "orrery_changes_waiting",
        Gauge,
        "Changes over HTTP that wait for their turn.",
    )
    .value(changes);
    let feeds = state.feeds.open();
    page.family(
        "orrery_feeds_open",
        Gauge,
        "Clients that follow the changes.",
    )
    .value(feeds);
    let lost = state.query_log.as_ref().map_or(0, |log| log.lost());
    let of_tracer = |of: fn(&Tracer) -> u64| state.tracer.as_ref().map_or(0, |tracer| of(tracer));
    page.family(
        "orrery_traces_sent_total",
        Counter,
        "Traces of requests that the collector took.",
    )
    .value(of_tracer(Tracer::sent));
    page.family(
        "orrery_traces_dropped_total",
        Counter,
        "Traces that found no room, or that the collector did not take.",
    )
    .value(of_tracer(Tracer::dropped));
    page.family(
        "orrery_trace_export_failures_total",
        Counter,
        "Requests to the collector that failed; each is tried three times.",
    )
    .value(of_tracer(Tracer::failures));
    page.family(
        "orrery_query_log_lost_total",
        Counter,
        "Entries that found no room before the query log's thread.",
    )
    .value(lost);
}

fn clients(page: &mut Page, metrics: &Metrics) {
    page.family("orrery_http_responses_total", Counter, "Answers of HTTP by listener and class of status; none: the client left before there was one.");
    for listens in Listens::HTTP {
        for (class, count) in metrics.responses(listens) {
            page.sample(&[("listener", listens.name()), ("class", class)], count);
        }
    }
    page.family(
        "orrery_requests_refused_total",
        Counter,
        "Requests of HTTP that were refused, by status and reason.",
    );
    for refusal in Refusal::ALL {
        let labels = [("code", refusal.code()), ("reason", refusal.name())];
        page.sample(&labels, metrics.refusals(refusal));
    }
    page.family(
        "orrery_limits_exceeded_total",
        Counter,
        "Requests that came to a limit of who sent them, before or while they ran.",
    );
    for limit in SpentLimit::ALL {
        page.sample(&[("limit", limit.name())], metrics.limits(limit));
    }
    let mut connections =
        |name,
         of_type,
         help: &str,
         of: fn(&orrery_service::ports::connections::Connections) -> u64| {
            page.family(name, of_type, help);
            for listens in Listens::ALL {
                page.sample(
                    &[("listener", listens.name())],
                    of(metrics.connections(listens)),
                );
            }
        };
    connections(
        "orrery_connections_open",
        Gauge,
        "Connections that are open, by listener.",
        |it| it.open(),
    );
    connections(
        "orrery_connections_total",
        Counter,
        "Connections that were accepted.",
        |it| it.accepted(),
    );
    connections(
        "orrery_connections_refused_total",
        Counter,
        "Connections that could not be accepted, failed in TLS, or were turned away.",
        |it| it.refused(),
    );
    page.family(
        "orrery_connections_max",
        Gauge,
        "Connections to the HTTP address that may be open at the same time; more wait.",
    )
    .value(metrics.connections_max());
    page.family(
        "orrery_panics_total",
        Counter,
        "Panics that ended a query, a change or a connection. Each is a bug.",
    )
    .value(metrics.panics());
}

fn caches(page: &mut Page, state: &HttpState) {
    let engine = &state.engine;
    let (shapes, plans, orders) = (
        engine.shape_counts(),
        engine.plan_counts(),
        engine.order_counts(),
    );
    let adjacencies = engine.adjacency_counts();
    let [of_shapes, of_plans, of_orders, of_adjacencies] =
        ["shapes", "plans", "join_orders", "adjacencies"].map(|name| [("cache", name)]);
    page.family(
        "orrery_cache_hits_total",
        Counter,
        "What a cache had: shapes of queries that need no parser, plans, orders of joins.",
    )
    .sample(&of_shapes, shapes.hits)
    .sample(&of_plans, plans.hits)
    .sample(&of_orders, orders.hits);
    page.family(
        "orrery_cache_misses_total",
        Counter,
        "What a cache did not have.",
    )
    .sample(&of_shapes, shapes.misses)
    .sample(&of_plans, plans.misses)
    .sample(&of_orders, orders.misses);
    page.family(
        "orrery_cache_entries",
        Gauge,
        "What is in a cache; adjacencies: predicates whose values are in memory.",
    )
    .sample(&of_shapes, shapes.kept)
    .sample(&of_plans, plans.kept)
    .sample(&of_orders, orders.kept)
    .sample(&of_adjacencies, adjacencies.adjacencies);
}

fn data(page: &mut Page, state: &HttpState) {
    let database = state.engine.database();
    let view = database.view_of_process();
    let snapshot = view.snapshot();
    page.family("orrery_commit_number", Gauge, "The commit that is served.")
        .value(snapshot.commit());
    page.family(
        "orrery_last_commit_timestamp_seconds",
        Gauge,
        "When that commit was made, in seconds since 1970.",
    )
    .value(snapshot.commit_time_us() as f64 / 1e6);
    let oldest = database.oldest_held().unwrap_or_default();
    page.family("orrery_oldest_snapshot_age_seconds", Gauge, "For how long the oldest state that somebody still reads has not been the newest; 0: nobody reads an older one.").value(oldest.as_secs_f64());
    page.family("orrery_quads", Gauge, "Quads.")
        .value(view.quad_count());
    page.family(
        "orrery_database_file_bytes",
        Gauge,
        "Files of the served state, without the log.",
    )
    .value(snapshot.file_bytes());
    page.family(
        "orrery_changes_uncompacted",
        Gauge,
        "Changes of quads that are not part of the base yet.",
    )
    .value(changes_of(&view));
}

fn log(page: &mut Page, state: &HttpState) {
    let log = &state.engine.database().activity().log;
    page.family(
        "orrery_log_commits_total",
        Counter,
        "Commits that were appended to the log.",
    )
    .value(log.records());
    page.family("orrery_log_bytes_total", Counter, "Bytes of those.")
        .value(log.bytes());
    page.family(
        "orrery_log_sync_duration_seconds",
        Histogram,
        "What the fdatasyncs took that commits waited for.",
    )
    .durations(&[], &log.syncs().counts());
    page.family("orrery_log_sync_failures_total", Counter, "Those of them that failed; after one, nothing is written until the server is started again.").value(log.failed_syncs());
    let is_writable = state
        .seat
        .writes()
        .is_ok_and(|writes| writes.writer().check().is_ok());
    page.family(
        "orrery_writable",
        Gauge,
        "1 if the server takes changes; 0 if it only reads, or writing has ended.",
    )
    .value(u8::from(is_writable));
}

fn maintenance(page: &mut Page, state: &HttpState) {
    let activity = state.engine.database().activity();
    let work: [(&str, &Work); 4] = [
        ("checkpoint", &activity.checkpoints),
        ("compaction", &activity.compactions),
        ("table_compaction", &activity.table_compactions),
        ("load", &activity.loads),
    ];
    page.family(
        "orrery_maintenance_running",
        Gauge,
        "Checkpoints, compactions and loads under way, with those that wait for one another.",
    );
    for (name, work) in work {
        page.sample(&[("work", name)], work.running());
    }
    page.family(
        "orrery_maintenance_runs_total",
        Counter,
        "Those that came to their end, and those that failed.",
    );
    for (name, work) in work {
        page.sample(&[("work", name), ("outcome", "done")], work.done());
        page.sample(&[("work", name), ("outcome", "failed")], work.failed());
    }
    page.family(
        "orrery_maintenance_seconds_total",
        Counter,
        "Time of those that came to their end.",
    );
    for (name, work) in work {
        page.sample(&[("work", name)], work.seconds());
    }
    page.family(
        "orrery_maintenance_last_end_timestamp_seconds",
        Gauge,
        "When the last one came to its end, in seconds since 1970; 0: none since the start.",
    );
    for (name, work) in work {
        page.sample(&[("work", name)], work.last_end_s().unwrap_or(0));
    }
}

fn memory(page: &mut Page, state: &HttpState) {
    let runtime = state.engine.runtime();
    let figures = runtime.memory().figures();
    let (bodies, bodies_max) = state
        .seat
        .writes()
        .map_or((0, 0), |writes| writes.body_bytes());
    let pools = [
        (
            "process",
            figures.process_bytes.unwrap_or(0) as u64,
            runtime.memory_bytes(),
        ),
        (
            "operators",
            figures.operators.used_bytes as u64,
            figures.operators.max_bytes as u64,
        ),
        (
            "on_the_way",
            figures.on_the_way.used_bytes as u64,
            figures.on_the_way.max_bytes as u64,
        ),
        (
            "adjacencies",
            state.engine.adjacency_counts().bytes,
            figures.adjacencies_max_bytes,
        ),
        ("bodies", bodies, bodies_max),
    ];
    page.family("orrery_memory_used_bytes", Gauge, "Memory that is held, by pool: of the process as a whole without pages of files, and of its parts.");
    for (pool, used, _) in pools {
        page.sample(&[("pool", pool)], used);
    }
    page.sample(&[("pool", "plans")], state.engine.plan_counts().bytes);
    page.family(
        "orrery_memory_limit_bytes",
        Gauge,
        "What each pool may hold; of the process: --memory.",
    );
    for (pool, _, limit) in pools {
        page.sample(&[("pool", pool)], limit);
    }
    page.family(
        "orrery_spilled_bytes",
        Gauge,
        "Runs of operators that are on the disk for want of memory.",
    )
    .value(runtime.spilled_bytes());
}
