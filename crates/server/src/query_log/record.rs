//! What is known of one request so far; it becomes an entry at its end, if it was a query, an update or SQL.

use crate::query_log::{Peer, QueryLog};
use axum::extract::Request;
use axum::http::header;
use orrery_usage::{AGENT_BYTES_MAX, Entry, Kind, Outcome, Shape, TEXT_BYTES_MAX, Time, cut};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The commit that a change has made; in the extensions of the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AtCommit(pub(crate) u64);

/// What the query log will have of a request.
#[derive(Debug)]
pub(crate) struct QueryRecord {
    log: Arc<QueryLog>,
    time: Time,
    started: Instant,
    client: Option<IpAddr>,
    agent: Option<String>,
    /// None where nobody is known.
    user: OnceLock<String>,
    /// None in requests that ask nothing.
    asked: OnceLock<Asked>,
    /// Of a query, as soon as it is known.
    form: OnceLock<Kind>,
    outcome: OnceLock<Outcome>,
    commit: OnceLock<u64>,
    plan: OnceLock<String>,
    touches: AtomicU64,
    bytes: AtomicU64,
    /// Microseconds after the start; 0 until then.
    first_byte_us: AtomicU64,
    ended_us: AtomicU64,
}

#[derive(Debug)]
struct Asked {
    kind: Kind,
    text: String,
    /// Where the text is cut.
    text_bytes: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// 0 where there was no answer.
    pub(crate) status: u16,
    pub(crate) rows: u64,
    /// The answer went out to its end.
    pub(crate) is_complete: bool,
}

impl QueryRecord {
    /// Of a request over HTTP.
    pub(crate) fn of(log: &Arc<QueryLog>, request: &Request) -> Self {
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let client = request.extensions().get().map(|&Peer(address)| address);
        Self::new(log, client, agent.as_deref())
    }

    /// Of a client that calls its program so.
    pub(crate) fn new(log: &Arc<QueryLog>, client: Option<IpAddr>, agent: Option<&str>) -> Self {
        log.counts.open.fetch_add(1, Ordering::Relaxed);
        let agent = agent.map(|agent| cut(agent, AGENT_BYTES_MAX).to_owned());
        Self {
            log: Arc::clone(log),
            time: Time::now(),
            started: Instant::now(),
            client,
            agent,
            user: OnceLock::new(),
            asked: OnceLock::new(),
            form: OnceLock::new(),
            outcome: OnceLock::new(),
            commit: OnceLock::new(),
            plan: OnceLock::new(),
            touches: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(0),
            ended_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_user(&self, user: String) {
        // A request has one; the first would stay.
        let _ = self.user.set(user);
    }

    /// The request asks this.
    pub(crate) fn set_asked(&self, kind: Kind, text: &str) {
        let kept = cut(text, TEXT_BYTES_MAX);
        let is_cut = kept.len() < text.len();
        // A request asks once; the first would stay.
        let _ = self.asked.set(Asked {
            kind,
            text: kept.to_owned(),
            text_bytes: is_cut.then_some(text.len() as u64),
        });
    }

    /// The form of the query, and the commit of the snapshot that it reads.
    pub(crate) fn set_prepared(&self, form: Kind, commit: u64) {
        let _ = self.form.set(form);
        self.set_commit(commit);
    }

    pub(crate) fn set_commit(&self, commit: u64) {
        // A second try reads a state that may be newer; the first is near enough.
        let _ = self.commit.set(commit);
    }

    /// Why there is no answer, or none to its end; the first reason counts.
    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
    }

    /// Notes the plan if the query was slow; it is made by then only.
    pub(crate) fn note_plan(&self, plan: impl FnOnce() -> String) {
        if self
            .log
            .slow
            .is_some_and(|slow| self.started.elapsed() > slow)
        {
            let _ = self.plan.set(cut(&plan(), TEXT_BYTES_MAX).to_owned());
        }
    }

    /// The query touched so many rows more.
    pub(crate) fn add_touches(&self, touches: u64) {
        self.touches.fetch_add(touches, Ordering::Relaxed);
    }

    /// Bytes of the answer went out.
    pub(crate) fn sent(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) == 0 && bytes > 0 {
            let us = self.elapsed_us();
            self.first_byte_us.store(us, Ordering::Relaxed);
        }
    }

    /// No more of the answer goes out.
    pub(crate) fn end(&self) {
        self.ended_us.store(self.elapsed_us(), Ordering::Relaxed);
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Makes the entry.
    pub(crate) fn finish(&mut self, ended: Ended) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let us = match *self.ended_us.get_mut() {
            0 => self.elapsed_us(),
            us => us,
        };
        let first_byte_us = *self.first_byte_us.get_mut();
        let outcome = self.outcome.take().unwrap_or(match ended.status {
            100..400 if ended.is_complete => Outcome::Ok,
            400.. => Outcome::Error,
            _ => Outcome::Cancelled,
        });
        let is_slow = |slow| Duration::from_micros(us) > slow;
        let plan = match self.log.slow {
            // An empty plan says that it was slow, too; the writer leaves it out.
            Some(slow) if is_slow(slow) => Some(self.plan.take().unwrap_or_default()),
            _ => None,
        };
        self.log.add(Box::new(Entry {
            time: self.time,
            kind: self.form.take().unwrap_or(asked.kind),
            text: asked.text,
            text_bytes: asked.text_bytes,
            // For the thread that writes: nobody waits for that.
            shape: Shape::default(),
            user: self.user.take(),
            client: self.client,
            agent: self.agent.take(),
            status: (ended.status != 0).then_some(ended.status),
            outcome,
            ms: milliseconds(us),
            first_byte_ms: (first_byte_us != 0).then(|| milliseconds(first_byte_us)),
            rows: ended.rows,
            bytes: *self.bytes.get_mut(),
            commit: self.commit.take(),
            touches: match *self.touches.get_mut() {
                0 => None,
                touches => Some(touches),
            },
            plan,
        }));
    }
}

impl Drop for QueryRecord {
    fn drop(&mut self) {
        self.log.counts.open.fetch_sub(1, Ordering::Release);
    }
}

fn milliseconds(us: u64) -> f64 {
    us as f64 / 1000.0
}
