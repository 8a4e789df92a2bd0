//! The server's own counters, updated as requests end; `metrics_page` prints them for Prometheus,
//! together with other components' counters.
//!
//! ```text
//! access log: each request at its end --> Metrics: relaxed atomics, by kind, outcome, listener
//!                                            ^ connections, panics
//! ```
//!
//! `Metrics` is one value, made with the server and passed down: no globals, no registry with
//! look-ups by name. Each request costs some ten relaxed additions, a hundred nanoseconds beside
//! the sixty microseconds of a point query; the counters are not sharded. Figures that other
//! components have (memory, caches, the log of commits) are not counted here, but read when a page
//! is printed.
//!
//! Written by hand rather than with `prometheus-client`: that crate writes OpenMetrics, looks each
//! counter up in a map under a lock and observes histograms under another, while nearly all of our
//! figures are known elsewhere or indexed by enums; only the text would remain for a library, and
//! that is `text.rs`.

mod divided;
mod objects;
mod process;
mod refusals;
mod text;
mod token;

pub use token::MetricsToken;

pub use divided::{write_divided, write_guests};
pub use objects::ObjectFigures;
pub use process::ProcessFigures;
pub use refusals::{Refusal, SpentLimit};
pub use text::{Page, Type};

use crate::ports::connections::Connections;
use orrery_object_store::ObjectFileSystem;
use orrery_query_log::{Kind, Outcome};
use orrery_sql::Guests;
use orrery_storage::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::stages::{STAGES, Stages};

/// Histogram bounds, from a look-up in memory to the longest query that the defaults allow.
const QUERY_BOUNDS_US: &[u64] = &[
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    600_000_000,
];

/// The listeners of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listens {
    /// HTTP, for clients.
    Http,
    /// The admin socket.
    Admin,
    /// PostgreSQL's port.
    Postgres,
    /// Flight SQL.
    Flight,
}

impl Listens {
    /// All listeners, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Http, Self::Admin, Self::Postgres, Self::Flight];
    /// The listeners that speak HTTP.
    pub const HTTP: [Self; 2] = [Self::Http, Self::Admin];

    /// The listener's label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Admin => "admin",
            Self::Postgres => "postgresql",
            Self::Flight => "flight",
        }
    }
}

/// Classes of answers: the first digit of the status, or no answer at all.
pub const STATUS_CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The counters of a server.
#[derive(Debug, Default)]
pub struct Metrics {
    kinds: [OfKind; Kind::ALL.len()],
    stage_ns: [AtomicU64; STAGES.len()],
    responses: [[AtomicU64; STATUS_CLASSES.len()]; Listens::HTTP.len()],
    refusals: [AtomicU64; Refusal::ALL.len()],
    limits: [AtomicU64; SpentLimit::ALL.len()],
    panics: AtomicU64,
    connections: [Arc<Connections>; Listens::ALL.len()],
    /// The limit of open HTTP connections.
    connections_max: AtomicU64,
    /// The object store, which has counters of its own; unset if the database is in a directory.
    objects: OnceLock<Arc<ObjectFileSystem>>,
    guests: OnceLock<Weak<Guests>>,
}

/// The counters of one kind of query.
#[derive(Debug)]
pub struct OfKind {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    /// Durations of queries.
    pub durations: Durations,
    /// Times to the first byte of the answer.
    pub first_bytes: Durations,
    rows: AtomicU64,
    bytes: AtomicU64,
    touches: AtomicU64,
}

impl Default for OfKind {
    fn default() -> Self {
        Self {
            outcomes: Default::default(),
            durations: Durations::new(QUERY_BOUNDS_US),
            first_bytes: Durations::new(QUERY_BOUNDS_US),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            touches: AtomicU64::new(0),
        }
    }
}

/// A query, an update or a request of SQL that has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedQuery {
    /// The kind of query.
    pub kind: Kind,
    /// The outcome.
    pub outcome: Outcome,
    /// The duration.
    pub took: Duration,
    /// Time to the first byte of the answer, if any was sent.
    pub first_byte: Option<Duration>,
    /// Rows of the answer.
    pub rows: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// The cost in touches; 0 where touches are not counted.
    pub touches: u64,
    /// Time spent per stage, where known.
    pub stages: Option<Stages>,
}

impl OfKind {
    /// Number of queries with this outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        get(&self.outcomes[outcome as usize])
    }

    /// Rows of all answers.
    pub fn rows(&self) -> u64 {
        get(&self.rows)
    }

    /// Bytes of all answers.
    pub fn bytes(&self) -> u64 {
        get(&self.bytes)
    }

    /// Touches of all queries.
    pub fn touches(&self) -> u64 {
        get(&self.touches)
    }
}

impl Metrics {
    /// Counts a query at its end.
    pub fn ended(&self, query: &EndedQuery) {
        let of_kind = &self.kinds[query.kind as usize];
        add(&of_kind.outcomes[query.outcome as usize], 1);
        of_kind.durations.add(query.took);
        if let Some(first_byte) = query.first_byte {
            of_kind.first_bytes.add(first_byte);
        }
        for (counter, value) in [
            (&of_kind.rows, query.rows),
            (&of_kind.bytes, query.bytes),
            (&of_kind.touches, query.touches),
        ] {
            if value > 0 {
                add(counter, value);
            }
        }
        for (counter, spent) in self
            .stage_ns
            .iter()
            .zip(query.stages.iter().flat_map(Stages::spent))
        {
            if !spent.is_zero() {
                add(counter, u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }

    /// Counts the answer to a request; no status means that the client had left.
    pub fn answered(&self, listens: Listens, status: Option<u16>) {
        let class = status.map_or(0, |status| usize::from(status / 100));
        if let Some(counter) = self
            .responses
            .get(listens as usize)
            .and_then(|classes| classes.get(class))
        {
            add(counter, 1);
        }
    }

    /// Counts a request that was refused.
    pub fn refused(&self, refusal: Refusal) {
        add(&self.refusals[refusal as usize], 1);
    }

    /// Counts a request that reached a limit of its sender.
    pub fn spent(&self, limit: SpentLimit) {
        add(&self.limits[limit as usize], 1);
    }

    /// Counts a panic that was caught.
    pub fn note_panic(&self) {
        add(&self.panics, 1);
    }

    /// A guard that counts a panic if it is dropped while unwinding.
    pub fn watch_panics(&self) -> PanicWatch<'_> {
        PanicWatch(self)
    }

    /// The connection counters of a listener.
    pub fn connections(&self, listens: Listens) -> &Arc<Connections> {
        &self.connections[listens as usize]
    }

    /// Sets the limit of open HTTP connections.
    pub fn set_connections_max(&self, max: usize) {
        self.connections_max.store(max as u64, Ordering::Relaxed);
    }

    /// The limit of open HTTP connections.
    pub fn connections_max(&self) -> u64 {
        get(&self.connections_max)
    }

    /// Sets the object store that holds the database.
    pub fn set_objects(&self, objects: Arc<ObjectFileSystem>) {
        // Called once, as there is one database.
        let _ = self.objects.set(objects);
    }

    /// The object store that holds the database, if any.
    pub fn objects(&self) -> Option<&ObjectFileSystem> {
        self.objects.get().map(|objects| &**objects)
    }

    /// Sets the handler of other nodes' clients.
    pub fn set_guests(&self, guests: &Arc<Guests>) {
        // Called once, too.
        let _ = self.guests.set(Arc::downgrade(guests));
    }

    /// The handler of other nodes' clients, if there is one.
    pub fn guests(&self) -> Option<Arc<Guests>> {
        self.guests.get()?.upgrade()
    }

    /// The counters of one kind of query.
    pub fn of_kind(&self, kind: Kind) -> &OfKind {
        &self.kinds[kind as usize]
    }

    /// Seconds spent in each stage.
    pub fn stage_seconds(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let seconds = self.stage_ns.iter().map(|ns| get(ns) as f64 / 1e9);
        STAGES.into_iter().zip(seconds)
    }

    /// Number of answers by class of status.
    pub fn responses(&self, listens: Listens) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.responses.get(listens as usize).into_iter().flatten();
        STATUS_CLASSES.into_iter().zip(counts.map(get))
    }

    /// Number of requests refused for this reason.
    pub fn refusals(&self, refusal: Refusal) -> u64 {
        get(&self.refusals[refusal as usize])
    }

    /// Number of requests that reached this limit.
    pub fn limits(&self, limit: SpentLimit) -> u64 {
        get(&self.limits[limit as usize])
    }

    /// Number of panics caught.
    pub fn panics(&self) -> u64 {
        get(&self.panics)
    }
}

/// See [`Metrics::watch_panics`].
#[derive(Debug)]
pub struct PanicWatch<'m>(&'m Metrics);

impl Drop for PanicWatch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.note_panic();
        }
    }
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_indexed_by_an_enum_stands_in_its_order() {
        assert!(
            Kind::ALL
                .iter()
                .enumerate()
                .all(|(at, kind)| at == *kind as usize)
        );
        assert!(
            Outcome::ALL
                .iter()
                .enumerate()
                .all(|(at, outcome)| at == *outcome as usize)
        );
        assert!(
            Refusal::ALL
                .iter()
                .enumerate()
                .all(|(at, refusal)| at == *refusal as usize)
        );
        assert!(
            SpentLimit::ALL
                .iter()
                .enumerate()
                .all(|(at, limit)| at == *limit as usize)
        );
        assert!(
            Listens::ALL
                .iter()
                .enumerate()
                .all(|(at, listens)| at == *listens as usize)
        );
    }

    #[test]
    fn a_panic_is_counted_where_it_unwinds_and_nowhere_else() {
        let metrics = Metrics::default();
        drop(metrics.watch_panics());
        assert_eq!(metrics.panics(), 0);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _watch = metrics.watch_panics();
            panic!("meant to");
        }));
        assert!(caught.is_err());
        assert_eq!(metrics.panics(), 1);
    }
}
