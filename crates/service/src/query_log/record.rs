//! The query log's record of one request. It becomes an entry when the request ends, if the request
//! was a query, an update or SQL.

use crate::metrics::EndedQuery;
use crate::query_log::QueryLog;
use orrery_query_log::{AGENT_BYTES_MAX, Entry, Shape, TEXT_BYTES_MAX, Time, cut};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The commit that a change made; in the extensions of the answer.
#[derive(Debug, Clone, Copy)]
pub struct AtCommit(pub u64);

/// The data that the query log collects about a request.
#[derive(Debug)]
pub struct QueryRecord {
    log: Arc<QueryLog>,
    time: Time,
    started: Instant,
    client: Option<IpAddr>,
    agent: Option<String>,
    /// Unset if the user is unknown.
    user: OnceLock<String>,
    /// Unset in requests without a query.
    asked: OnceLock<Asked>,
    commit: OnceLock<u64>,
    plan: OnceLock<String>,
}

#[derive(Debug)]
struct Asked {
    text: String,
    /// Length of the whole text, if the text was cut.
    text_bytes: Option<u64>,
}

impl QueryRecord {
    /// Creates the record of a request, from a client that names its program `agent`.
    pub fn new(
        log: &Arc<QueryLog>,
        client: Option<IpAddr>,
        agent: Option<&str>,
        started: Instant,
    ) -> Self {
        log.counts.open.fetch_add(1, Ordering::Relaxed);
        let agent = agent.map(|agent| cut(agent, AGENT_BYTES_MAX).to_owned());
        Self {
            log: Arc::clone(log),
            time: Time::now(),
            started,
            client,
            agent,
            user: OnceLock::new(),
            asked: OnceLock::new(),
            commit: OnceLock::new(),
            plan: OnceLock::new(),
        }
    }

    /// Sets the user.
    pub fn set_user(&self, user: String) {
        // A request has one user; the first is retained.
        let _ = self.user.set(user);
    }

    /// Sets the text of the query.
    pub fn set_asked(&self, text: &str) {
        let kept = cut(text, TEXT_BYTES_MAX);
        let is_cut = kept.len() < text.len();
        // A request has one text; the first is retained.
        let _ = self.asked.set(Asked {
            text: kept.to_owned(),
            text_bytes: is_cut.then_some(text.len() as u64),
        });
    }

    /// Sets the commit of the state that was read or made.
    pub fn set_commit(&self, commit: u64) {
        // A second try may read a newer state; the first is close enough.
        let _ = self.commit.set(commit);
    }

    /// Records the plan if the query was slow; only then is it made.
    pub fn note_plan(&self, plan: impl FnOnce() -> String) {
        if self
            .log
            .slow
            .is_some_and(|slow| self.started.elapsed() > slow)
        {
            let _ = self.plan.set(cut(&plan(), TEXT_BYTES_MAX).to_owned());
        }
    }

    /// Makes the entry of a request; `status` is 0 if there was no answer.
    pub fn finish(&mut self, status: u16, ended: &EndedQuery) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let is_slow = |slow| ended.took > slow;
        let plan = match self.log.slow {
            // An empty plan still marks a slow query; the writer leaves it out.
            Some(slow) if is_slow(slow) => Some(self.plan.take().unwrap_or_default()),
            _ => None,
        };
        self.log.add(Box::new(Entry {
            time: self.time,
            kind: ended.kind,
            text: asked.text,
            text_bytes: asked.text_bytes,
            // The writing thread computes it, so that no request waits.
            shape: Shape::default(),
            user: self.user.take(),
            client: self.client,
            agent: self.agent.take(),
            status: (status != 0).then_some(status),
            outcome: ended.outcome,
            ms: milliseconds(ended.took),
            first_byte_ms: ended.first_byte.map(milliseconds),
            rows: ended.rows,
            bytes: ended.bytes,
            commit: self.commit.take(),
            touches: (ended.touches > 0).then_some(ended.touches),
            plan,
        }));
    }
}

impl Drop for QueryRecord {
    fn drop(&mut self) {
        self.log.counts.open.fetch_sub(1, Ordering::Release);
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
