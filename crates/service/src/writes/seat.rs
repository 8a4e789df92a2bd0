//! The writer role of a server: held here or by another server, and changing while the server runs.
//!
//! ```text
//! stand-by ── takes the writer's lock ──> Here: the queue of changes, compaction in the background
//!          <── another has taken over ──  Elsewhere: why, and where changes are forwarded to
//! ```
//!
//! Requests that change data use the queue that exists when they arrive: a change that waits in the
//! queue of a writer whose turn is over fails, and says so. The turn ends as soon as the role is
//! left, even if the writer or a transaction of it is still in use: the server follows from then
//! on, and may take the role anew, while remaining work ends by itself.

use std::sync::Arc;
use std::thread;

use orrery_loader::BackgroundCompaction;
use orrery_sql::WriterPlace;
use orrery_storage::Writer;
use parking_lot::RwLock;

use crate::writes::Writes;

/// The writer role.
#[derive(Debug)]
pub struct Seat(RwLock<State>);

#[derive(Debug)]
struct State {
    taken: Taken,
    /// Whether the role can no longer be taken.
    is_closed: bool,
}

#[derive(Debug, Clone)]
enum Taken {
    Here(Arc<Here>),
    Elsewhere(Elsewhere),
}

/// The parts that run while this server writes.
#[derive(Debug)]
pub struct Here {
    /// Dropped before the queue: no client waits for a compaction.
    _compaction: Option<BackgroundCompaction>,
    writes: Arc<Writes>,
}

/// Why this server does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The reason, one sentence.
    pub reason: String,
    /// The server that writes, if known.
    pub address: Option<String>,
}

impl Here {
    /// Combines a queue and its background compaction.
    pub fn new(writes: Writes, compaction: Option<BackgroundCompaction>) -> Self {
        Self {
            _compaction: compaction,
            writes: Arc::new(writes),
        }
    }
}

impl Elsewhere {
    /// No writer is known.
    pub fn because(reason: String) -> Self {
        let address = None;
        Self { reason, address }
    }
}

impl Seat {
    /// Creates the role, held elsewhere.
    pub fn empty(reason: String) -> Self {
        let taken = Taken::Elsewhere(Elsewhere::because(reason));
        let is_closed = false;
        Self(RwLock::new(State { taken, is_closed }))
    }

    /// The queue of changes, or why there is none.
    pub fn writes(&self) -> Result<Arc<Writes>, Elsewhere> {
        match &self.0.read().taken {
            Taken::Here(here) => Ok(Arc::clone(&here.writes)),
            Taken::Elsewhere(elsewhere) => Err(elsewhere.clone()),
        }
    }

    /// The writer, for connections that begin now.
    pub fn writer(&self) -> Option<Writer> {
        self.writes().ok().map(|writes| writes.writer().clone())
    }

    /// Whether changes sent to this server are made, here or by forwarding.
    pub fn takes_changes(&self) -> bool {
        match &self.0.read().taken {
            Taken::Here(_) => true,
            Taken::Elsewhere(elsewhere) => elsewhere.address.is_some(),
        }
    }

    /// The address that changes are forwarded to.
    pub fn address(&self) -> Option<String> {
        match &self.0.read().taken {
            Taken::Here(_) => None,
            Taken::Elsewhere(elsewhere) => elsewhere.address.clone(),
        }
    }

    /// Takes the role; no effect once it is closed.
    pub fn take(&self, here: Here) {
        // Outside of the lock: if the role is closed, the drop waits.
        drop(self.set(Taken::Here(Arc::new(here))));
    }

    /// Leaves the role, or updates who has it. The turn to write ends at once; users of its writer
    /// are not waited for.
    pub fn leave(&self, elsewhere: Elsewhere) {
        let reason = elsewhere.reason.clone();
        let Taken::Here(here) = self.set(Taken::Elsewhere(elsewhere)) else {
            return;
        };
        here.writes.writer().end_turn(&reason);
        // The drop may take long: a compaction checks only now and then whether to end, and a
        // change may hang in a request to the store.
        let ending = thread::Builder::new().name("ending".to_owned());
        if let Err(error) = ending.spawn(move || drop(here)) {
            tracing::warn!("the work of the turn that is over was waited for: {error}");
        }
    }

    /// Leaves the role for good. Returns once running changes have ended.
    pub fn close(&self) {
        self.0.write().is_closed = true;
        // Outside of the lock: the drop waits.
        drop(self.set(Taken::Elsewhere(Elsewhere::because("it stops".to_owned()))));
    }

    /// Sets the holder and returns the previous one; if the role is closed, returns `taken`.
    fn set(&self, taken: Taken) -> Taken {
        let mut state = self.0.write();
        match (&taken, state.is_closed) {
            (Taken::Here(_), true) => taken,
            _ => std::mem::replace(&mut state.taken, taken),
        }
    }
}

/// The role as SQL sessions see it.
impl WriterPlace for Seat {
    fn writer(&self) -> Option<Writer> {
        Self::writer(self)
    }

    fn is_here(&self) -> bool {
        matches!(self.0.read().taken, Taken::Here(_))
    }

    fn address(&self) -> Option<String> {
        Self::address(self)
    }
}
