//! The state shared by all clients: server, data, outcomes, end of the run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::changes;
use super::lock::lock;
use super::model::Journal;
use super::options::SoakOptions;
use super::places::{CREATE_TABLE, Role};
use super::questions::Statics;
use super::setup::PASSWORD;
use super::verdict::{Ended, Kind};
use crate::drivers::BenchError;
use crate::http_client::{HttpClient, HttpError, Request};
use orrery_bsbm::Catalog;
use orrery_bsbm::parameters::ParameterPool;

/// The base is compacted so often: in a short run as well, and in a long one seldom enough for
/// changes to come together.
const COMPACTIONS: u32 = 4;
const COMPACT_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// What all clients share.
pub(super) struct Soak {
    pub(super) endpoint: String,
    pub(super) key: String,
    pub(super) clients: usize,
    pub(super) heavy: usize,
    pub(super) statics: Statics,
    /// Of the rings of all clients in graphs, then of those in the table.
    pub(super) journal: Journal,
    pub(super) has_metrics: bool,
    compact_interval: Duration,
    /// When somebody who administers asks for the next one.
    next_compaction: Mutex<Instant>,
    pub(super) is_over: AtomicBool,
    pub(super) checked: AtomicU64,
    pub(super) counts: Mutex<BTreeMap<(Kind, Ended), Vec<Duration>>>,
    pub(super) failure: Mutex<Option<String>>,
    pub(super) failed: Condvar,
}

impl Soak {
    /// Makes the table, and asks for the first answers.
    pub(super) fn prepare(
        endpoint: &str,
        key: String,
        options: &SoakOptions,
    ) -> Result<Self, BenchError> {
        let mut root =
            HttpClient::new(endpoint)?.with_password(Role::Administrator.user(), PASSWORD);
        let created = root.send(&changes::sql(CREATE_TABLE.to_owned()))?;
        if created.status != 200 {
            return Err(BenchError::Output {
                command: CREATE_TABLE.to_owned(),
                what: String::from_utf8_lossy(&created.body).into_owned(),
            });
        }
        let metrics = root.send(&Request {
            method: "GET",
            path: "/metrics".to_owned(),
            ..Request::default()
        })?;
        let compact_interval =
            (Duration::from_secs(options.seconds) / COMPACTIONS).min(COMPACT_INTERVAL_MAX);
        let pool = ParameterPool::from_catalog(&Catalog::new(&options.data))?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            key,
            clients: options.clients,
            heavy: options.heavy,
            statics: Statics::ask(&mut root, &pool)?,
            journal: Journal::new(2 * options.clients),
            has_metrics: metrics.status == 200,
            compact_interval,
            next_compaction: Mutex::new(Instant::now() + compact_interval),
            is_over: AtomicBool::new(false),
            checked: AtomicU64::new(0),
            counts: Mutex::default(),
            failure: Mutex::new(None),
            failed: Condvar::new(),
        })
    }

    pub(super) fn connect(&self, role: Role) -> Result<HttpClient, HttpError> {
        let client = HttpClient::new(&self.endpoint)?;
        Ok(match role {
            Role::Anonymous => client,
            Role::KeyEditor => client.with_key(&self.key),
            _ => client.with_password(role.user(), PASSWORD),
        })
    }

    /// Whether there is somebody who administers, and asks for compactions.
    pub(super) fn compacts(&self) -> bool {
        (self.heavy..self.clients).any(|number| Role::of(number) == Role::Administrator)
    }

    /// Whether it is time for a compaction; to one client alone.
    pub(super) fn takes_compaction(&self) -> bool {
        let (mut next, now) = (lock(&self.next_compaction), Instant::now());
        let is_due = now >= *next;
        if is_due {
            *next = now + self.compact_interval;
        }
        is_due
    }

    /// How often something was done.
    pub(super) fn done(&self, kind: Kind) -> usize {
        let counts = lock(&self.counts);
        counts.get(&(kind, Ended::Done)).map_or(0, Vec::len)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// The first fault ends the run; those that come of the kill are none.
    pub(super) fn fail(&self, what: String) {
        let mut failure = lock(&self.failure);
        if failure.is_none() && !self.is_over.swap(true, Ordering::SeqCst) {
            *failure = Some(what);
        }
        self.failed.notify_all();
    }

    pub(super) fn count(&self, kind: Kind, ended: Ended, time: Duration) {
        if !self.is_over() {
            lock(&self.counts)
                .entry((kind, ended))
                .or_default()
                .push(time);
        }
    }

    pub(super) fn checked(&self) {
        self.checked.fetch_add(1, Ordering::Relaxed);
    }
}
