//! Metrics of the object store that holds the database, and of its cache on this machine. All are
//! zero if the database is in a directory.

use orrery_object_store::{ObjectCounts, ObjectFileSystem, RequestKind};

use super::text::{Page, Type};

/// A reading of the object store's counters; none without an object store.
#[derive(Debug)]
pub struct ObjectFigures(Option<ObjectCounts>);

impl ObjectFigures {
    /// Reads the current figures.
    pub fn read(files: Option<&ObjectFileSystem>) -> Self {
        Self(files.map(ObjectFileSystem::counts))
    }

    fn of(&self, figure: impl Fn(&ObjectCounts) -> u64) -> u64 {
        self.0.as_ref().map_or(0, figure)
    }

    /// Writes all figures.
    pub fn write(&self, page: &mut Page) {
        page.family(
            "orrery_object_requests_total",
            Type::Counter,
            "Requests to the object store that the database is in, by kind, each try counted.",
        );
        for (at, kind) in RequestKind::ALL.into_iter().enumerate() {
            page.sample(
                &[("kind", kind.name())],
                self.of(|counts| counts.requests[at]),
            );
        }
        for &(name, of_type, help, figure) in FIGURES {
            page.family(name, of_type, help).value(self.of(figure));
        }
        page.family(
            "orrery_object_bytes_total",
            Type::Counter,
            "Bytes of objects that were read and put.",
        )
        .sample(
            &[("direction", "received")],
            self.of(|counts| counts.bytes_received),
        )
        .sample(
            &[("direction", "sent")],
            self.of(|counts| counts.bytes_sent),
        );
    }
}

/// A metric of one sample: name, type, help text, and the figure.
type Figure = (&'static str, Type, &'static str, fn(&ObjectCounts) -> u64);

const FIGURES: &[Figure] = &[
    (
        "orrery_object_failed_total",
        Type::Counter,
        "Requests to the object store that ended with an error or without an answer.",
        |counts| counts.failed,
    ),
    (
        "orrery_object_retried_total",
        Type::Counter,
        "Requests to the object store that were made once more.",
        |counts| counts.retried,
    ),
    (
        "orrery_object_cache_bytes",
        Type::Gauge,
        "What is kept of the object store on this machine's disk.",
        |counts| counts.cache.bytes,
    ),
    (
        "orrery_object_cache_limit_bytes",
        Type::Gauge,
        "What may be kept of it: --cache-size.",
        |counts| counts.cache.limit_bytes,
    ),
    (
        "orrery_object_cache_hits_total",
        Type::Counter,
        "Pieces of files that were asked for and were there.",
        |counts| counts.cache.hits,
    ),
    (
        "orrery_object_cache_misses_total",
        Type::Counter,
        "Pieces of files that were asked for and had to be fetched.",
        |counts| counts.cache.misses,
    ),
    (
        "orrery_object_cache_evicted_bytes_total",
        Type::Counter,
        "Bytes that gave way to others.",
        |counts| counts.cache.evicted_bytes,
    ),
    (
        "orrery_object_cache_damaged_total",
        Type::Counter,
        "Pieces that were not what had been put there, and were fetched anew: the disk of the cache is damaged.",
        |counts| counts.cache.damaged_pieces,
    ),
];
