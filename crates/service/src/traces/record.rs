//! The trace record of one request, which becomes a span when the request ends.

use super::context::{SpanId, TraceId};
use super::messages::{
    FAILED, HAS_IS_REMOTE, INTERNAL, IS_REMOTE, KeyValue, SAMPLED, SERVER, Span, Status, attribute,
};
use crate::metrics::EndedQuery;
use crate::stages::STAGES;
use orrery_query_log::{AGENT_BYTES_MAX, Outcome, cut};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Size limit of a path in a trace.
const PATH_BYTES_MAX: usize = 512;

/// The head of a request that may be traced.
#[derive(Debug, Clone, Copy)]
pub struct TraceHead<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The path of the URL.
    pub path: &'a str,
    /// The path without its variable parts; none if no route matched.
    pub route: Option<&'a str>,
    /// The client's `traceparent`, if sent.
    pub parent: Option<&'a str>,
    /// Whether the request came over TLS.
    pub is_secure: bool,
}

/// The data about one traced request.
#[derive(Debug)]
pub struct TraceRecord {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    /// The client's span, if there is one.
    pub(super) parent: Option<SpanId>,
    begun: SystemTime,
    started: Instant,
    method: String,
    path: String,
    route: Option<String>,
    scheme: &'static str,
    client: Option<IpAddr>,
    agent: Option<String>,
    user: OnceLock<String>,
}

/// The end of a request.
#[derive(Debug, Clone, Copy)]
pub struct EndedRequest<'r> {
    /// 0 if there was no answer.
    pub status: u16,
    /// The duration.
    pub took: Duration,
    /// The query of the request, if it had one.
    pub query: Option<&'r EndedQuery>,
}

/// The position of a span: its trace, its id, its parent.
pub(super) struct Place {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) parent: Option<SpanId>,
}

impl TraceRecord {
    pub(super) fn new(
        place: Place,
        head: TraceHead<'_>,
        (started, client, agent): (Instant, Option<IpAddr>, Option<&str>),
    ) -> Self {
        Self {
            trace: place.trace,
            span: place.span,
            parent: place.parent,
            begun: SystemTime::now(),
            started,
            method: head.method.to_owned(),
            path: cut(head.path, PATH_BYTES_MAX).to_owned(),
            route: head.route.map(str::to_owned),
            scheme: if head.is_secure { "https" } else { "http" },
            client,
            agent: agent.map(|agent| cut(agent, AGENT_BYTES_MAX).to_owned()),
            user: OnceLock::new(),
        }
    }

    /// Sets the user.
    pub fn set_user(&self, user: String) {
        // A request has one user.
        let _ = self.user.set(user);
    }

    /// The spans of the request and of its stages. `ids`: new ids for the stages.
    pub(super) fn spans(
        &self,
        ended: EndedRequest<'_>,
        ids: impl Fn() -> Option<SpanId>,
    ) -> Vec<Span> {
        let begun_ns = nanoseconds(self.begun.duration_since(UNIX_EPOCH).unwrap_or_default());
        let mut spans = vec![Span {
            trace_id: self.trace.to_vec(),
            span_id: self.span.to_vec(),
            parent_span_id: self.parent.map(Vec::from).unwrap_or_default(),
            name: match &self.route {
                Some(route) => format!("{} {route}", self.method),
                None => self.method.clone(),
            },
            kind: SERVER,
            start_time_unix_nano: begun_ns,
            end_time_unix_nano: begun_ns + nanoseconds(ended.took),
            attributes: self.attributes(&ended),
            status: failure(&ended).map(|message| Status {
                message: message.to_owned(),
                code: FAILED,
            }),
            flags: match self.parent {
                Some(_) => SAMPLED | HAS_IS_REMOTE | IS_REMOTE,
                None => SAMPLED,
            },
        }];
        let Some(stages) = ended.query.and_then(|query| query.stages) else {
            return spans;
        };
        let before = stages.begun.saturating_duration_since(self.started);
        let mut start_ns = begun_ns + nanoseconds(before);
        for (name, spent) in STAGES.into_iter().zip(stages.spent()) {
            if spent.is_zero() {
                continue;
            }
            let end_ns = start_ns + nanoseconds(spent);
            spans.extend(ids().map(|id| Span {
                trace_id: self.trace.to_vec(),
                span_id: id.to_vec(),
                parent_span_id: self.span.to_vec(),
                name: name.to_owned(),
                kind: INTERNAL,
                start_time_unix_nano: start_ns,
                end_time_unix_nano: end_ns,
                flags: SAMPLED | HAS_IS_REMOTE,
                ..Span::default()
            }));
            start_ns = end_ns;
        }
        spans
    }

    /// The attributes, named by OpenTelemetry's semantic conventions for HTTP and databases where
    /// these have a name.
    fn attributes(&self, ended: &EndedRequest<'_>) -> Vec<KeyValue> {
        let mut attributes = vec![
            attribute("http.request.method", self.method.as_str()),
            attribute("url.path", self.path.as_str()),
            attribute("url.scheme", self.scheme),
        ];
        attributes.extend(self.route.as_deref().map(|it| attribute("http.route", it)));
        attributes.extend(
            self.client
                .map(|it| attribute("client.address", it.to_string().as_str())),
        );
        attributes.extend(
            self.agent
                .as_deref()
                .map(|it| attribute("user_agent.original", it)),
        );
        attributes.extend(
            self.user
                .get()
                .map(|it| attribute("user.name", it.as_str())),
        );
        if ended.status != 0 {
            attributes.push(attribute(
                "http.response.status_code",
                u64::from(ended.status),
            ));
        }
        attributes.extend(failure(ended).map(|it| attribute("error.type", it)));
        if let Some(query) = ended.query {
            attributes.extend([
                attribute("db.system.name", "orrery"),
                attribute(
                    "db.operation.name",
                    query.kind.name().to_uppercase().as_str(),
                ),
                attribute("db.response.returned_rows", query.rows),
                attribute("http.response.body.size", query.bytes),
                attribute("orrery.outcome", query.outcome.name()),
            ]);
            if query.touches > 0 {
                attributes.push(attribute("orrery.touches", query.touches));
            }
        }
        attributes
    }
}

/// The failure, if the server is responsible for it.
fn failure(ended: &EndedRequest<'_>) -> Option<&'static str> {
    let outcome = ended.query.map(|query| query.outcome);
    match (ended.status, outcome) {
        (_, Some(outcome @ (Outcome::Timeout | Outcome::Memory | Outcome::Error))) => {
            Some(outcome.name())
        }
        (500.., _) => Some("server"),
        _ => None,
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
