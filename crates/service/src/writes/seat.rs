//! Who writes the database: this server, or another. It may change while the server runs.
//!
//! ```text
//! stand-by ── takes the writer's lock ──> Here: the queue of changes, compaction in the background
//!          <── another has taken over ──  Elsewhere: why, and where changes are forwarded to
//! ```
//!
//! Requests that change something take what is there when they come: a change that waits in the queue of a writer whose turn is over
//! fails, and says so. The turn ends as soon as the place is left, whoever still works with the writer or holds a transaction of it: the server follows from then on, and may
//! take the place anew, while what is left of that work ends by itself.

use std::sync::Arc;
use std::thread;

use orrery_loader::BackgroundCompaction;
use orrery_sql::WriterPlace;
use orrery_storage::Writer;
use parking_lot::RwLock;

use crate::writes::Writes;

/// The place of the writer.
#[derive(Debug)]
pub struct Seat(RwLock<State>);

#[derive(Debug)]
struct State {
    taken: Taken,
    /// Whether nobody takes it any more.
    is_closed: bool,
}

#[derive(Debug, Clone)]
enum Taken {
    Here(Arc<Here>),
    Elsewhere(Elsewhere),
}

/// What goes with the writer.
#[derive(Debug)]
pub struct Here {
    /// Ended before the queue: it is no change that anybody waits for.
    _compaction: Option<BackgroundCompaction>,
    writes: Arc<Writes>,
}

/// Why this server does not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// One sentence.
    pub reason: String,
    /// The server that does, where that is known.
    pub address: Option<String>,
}

impl Here {
    /// A queue, and what compacts meanwhile.
    pub fn new(writes: Writes, compaction: Option<BackgroundCompaction>) -> Self {
        Self {
            _compaction: compaction,
            writes: Arc::new(writes),
        }
    }
}

impl Elsewhere {
    /// Nobody is known who writes.
    pub fn because(reason: String) -> Self {
        let address = None;
        Self { reason, address }
    }
}

impl Seat {
    /// Not taken.
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

    /// Whether changes are made for those who ask here, by whomever.
    pub fn takes_changes(&self) -> bool {
        match &self.0.read().taken {
            Taken::Here(_) => true,
            Taken::Elsewhere(elsewhere) => elsewhere.address.is_some(),
        }
    }

    /// Where changes are forwarded to.
    pub fn address(&self) -> Option<String> {
        match &self.0.read().taken {
            Taken::Here(_) => None,
            Taken::Elsewhere(elsewhere) => elsewhere.address.clone(),
        }
    }

    /// Takes it; nothing comes of that once it is closed.
    pub fn take(&self, here: Here) {
        // Outside of the lock: where it is closed, this waits.
        drop(self.set(Taken::Here(Arc::new(here))));
    }

    /// Leaves it, or says anew who has it. The turn to write is over then; what works with its writer is not waited for.
    pub fn leave(&self, elsewhere: Elsewhere) {
        let reason = elsewhere.reason.clone();
        let Taken::Here(here) = self.set(Taken::Elsewhere(elsewhere)) else {
            return;
        };
        here.writes.writer().end_turn(&reason);
        // A compaction looks now and then whether it is to end, and a change may hang in a request to the store.
        let ending = thread::Builder::new().name("ending".to_owned());
        if let Err(error) = ending.spawn(move || drop(here)) {
            tracing::warn!("the work of the turn that is over was waited for: {error}");
        }
    }

    /// Leaves it for good. Returns once changes that are under way have ended.
    pub fn close(&self) {
        self.0.write().is_closed = true;
        // Outside of the lock: it waits.
        drop(self.set(Taken::Elsewhere(Elsewhere::because("it stops".to_owned()))));
    }

    /// What it was before; or what it is not any more, as nobody takes it.
    fn set(&self, taken: Taken) -> Taken {
        let mut state = self.0.write();
        match (&taken, state.is_closed) {
            (Taken::Here(_), true) => taken,
            _ => std::mem::replace(&mut state.taken, taken),
        }
    }
}

/// As sessions of SQL see it.
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
