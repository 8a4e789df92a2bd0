//! The shared state of all cached files: origin, request limit, space and counters.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use orrery_storage::Error;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::directory::Home;
use super::origin::Origin;

/// Requests at once for those who wait.
const REQUESTS_AT_ONCE: usize = 16;
/// Long requests at once for what was asked for ahead.
const REQUESTS_AHEAD_AT_ONCE: usize = 8;
/// Short ones: who opens a database asks for two parts of each of its files, and who reads terms
/// for the page of each, and waits for all of them.
const SHORT_AHEAD_AT_ONCE: usize = 64;
/// Into how many ticks the time is divided in which as many bytes are fetched as the cache holds.
const TICKS_PER_TURNOVER: u64 = 64;

/// What all files of a cache share. It outlives the cache as long as a file is mapped, and with it
/// the lock of the directory.
#[derive(Debug)]
pub(super) struct Means {
    pub(super) origin: Arc<dyn Origin>,
    pub(super) runtime: Handle,
    pub(super) home: Home,
    /// For those who wait.
    pub(super) wanted: Arc<Semaphore>,
    /// For what was asked for ahead, in long requests ...
    pub(super) ahead: Arc<Semaphore>,
    /// ... and in short ones.
    pub(super) short_ahead: Arc<Semaphore>,
    /// How much the files may take up together.
    pub(super) limit: u64,
    /// How much they take up.
    pub(super) held_bytes: AtomicU64,
    /// How much of that is of files that have no name any more.
    pub(super) unnamed_bytes: AtomicU64,
    /// The time, counted in bytes fetched: what ages the uses is what comes in.
    tick: AtomicU32,
    pub(super) counters: Counters,
    /// Who makes room; gone when the cache is closed.
    room: OnceLock<Weak<dyn MakesRoom>>,
}

/// Who can make room, as the files of a cache see it.
pub(super) trait MakesRoom: Debug + Send + Sync {
    /// Makes room for bytes that come, as far as there is something that can go.
    fn make(&self, incoming: u64);

    /// Frees bytes, whatever the limit is.
    fn free(&self, bytes: u64);

    /// There may be something that can go which could not before.
    fn note_change(&self);
}

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) asked: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) fetched_bytes: AtomicU64,
    pub(super) evicted_bytes: AtomicU64,
    pub(super) damaged: AtomicU64,
}

/// Why bytes did not come, for all who wait for them.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The object store did not give them.
    Origin(Arc<Error>),
    /// What came is not what was asked for, or does not stay.
    Wrong(Arc<str>),
    /// They could not be put into the cache.
    Local {
        path: Arc<Path>,
        kind: io::ErrorKind,
        what: Arc<str>,
    },
    /// The request ended without an answer: it panicked, or the program ends.
    GivenUp,
}

impl Means {
    pub(super) fn new(origin: Arc<dyn Origin>, runtime: Handle, home: Home, limit: u64) -> Self {
        Self {
            origin,
            runtime,
            home,
            wanted: Arc::new(Semaphore::new(REQUESTS_AT_ONCE)),
            ahead: Arc::new(Semaphore::new(REQUESTS_AHEAD_AT_ONCE)),
            short_ahead: Arc::new(Semaphore::new(SHORT_AHEAD_AT_ONCE)),
            limit,
            held_bytes: AtomicU64::new(0),
            unnamed_bytes: AtomicU64::new(0),
            tick: AtomicU32::new(1),
            counters: Counters::default(),
            room: OnceLock::new(),
        }
    }

    /// Names who makes room.
    pub(super) fn set_room<R: MakesRoom + 'static>(&self, room: &Arc<R>) {
        let room: Weak<R> = Arc::downgrade(room);
        let _already_set = self.room.set(room);
    }

    /// Who makes room, unless the cache is closed.
    fn room(&self) -> Option<Arc<dyn MakesRoom>> {
        self.room.get().and_then(Weak::upgrade)
    }

    #[inline]
    pub(super) fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }

    /// How much the files take up.
    pub(super) fn held(&self) -> u64 {
        self.held_bytes.load(Ordering::SeqCst)
    }

    /// What is held against the limit: all files that have a name. Those without one are about to
    /// go, and to evict what is hot for them would be wrong, unless they come to more than the
    /// limit once more, and a quarter.
    pub(super) fn pressure(&self) -> u64 {
        let held = self.held();
        let named = held.saturating_sub(self.unnamed_bytes.load(Ordering::SeqCst));
        named.max(held.saturating_sub(self.limit + self.limit / 4))
    }

    /// Notes bytes that came in, which is what makes time pass.
    pub(super) fn note_fetched(&self, bytes: u64) {
        let before = self
            .counters
            .fetched_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        let tick = 1 + (before + bytes) / (self.limit / TICKS_PER_TURNOVER).max(1);
        self.tick.fetch_max(tick as u32, Ordering::Relaxed);
    }

    /// Whether room has to be made before so many bytes can come in.
    pub(super) fn is_short(&self, incoming: u64) -> bool {
        self.pressure().saturating_add(incoming) > self.limit
    }

    /// Makes room for bytes, as far as there is something that can go.
    pub(super) fn make_room(&self, incoming: u64) {
        if self.is_short(incoming)
            && let Some(room) = self.room()
        {
            room.make(incoming);
        }
    }

    /// Frees so many bytes on the disk, which is full before the limit is reached.
    pub(super) fn free(&self, bytes: u64) {
        if let Some(room) = self.room() {
            room.free(bytes);
        }
    }

    /// Nobody has a file mapped any more: there may be something that can go.
    pub(super) fn note_unmapped(&self) {
        if let Some(room) = self.room() {
            room.note_change();
        }
    }
}

impl Failure {
    pub(super) fn local(path: &Path, error: &io::Error) -> Self {
        Self::Local {
            path: path.into(),
            kind: error.kind(),
            what: error.to_string().into(),
        }
    }

    /// As the storage's error about an object. Of the store's answer everybody who waits gets a
    /// copy.
    pub(super) fn into_error(self, key: &str) -> Error {
        let of_object = |what: &str| {
            let what = io::Error::other(what.to_owned());
            Error::from_io(Path::new(key), "fetch", what)
        };
        match self {
            Self::Origin(error) => match &*error {
                Error::NotFound { path, operation } => Error::NotFound {
                    path: path.clone(),
                    operation,
                },
                Error::Corrupt { path, offset, what } => Error::corrupt(path, *offset, what),
                Error::Io {
                    path,
                    operation,
                    source,
                } => Error::Io {
                    path: path.clone(),
                    operation,
                    source: io::Error::new(source.kind(), source.to_string()),
                },
                other => of_object(&other.to_string()),
            },
            Self::Wrong(what) => of_object(&what),
            Self::Local { path, kind, what } => {
                Error::from_io(&path, "write", io::Error::new(kind, &*what))
            }
            Self::GivenUp => of_object("the request was given up; try again"),
        }
    }
}
