//! A term of the writer role: its begin, and the operations only its holder may do.
//!
//! ```text
//! lease      LOCK is ours; refused while another writer lives                      (lease)
//! fence      a catalog with the next epoch: catalogs of earlier turns are refused  (catalog)
//! fences     behind the objects of each log that it names: so are their syncs      (log)
//! ```
//!
//! After that nobody but the holder changes what is in the store, whatever a writer believes that
//! was taken for dead. The number of the turn, its epoch, is in the name of each object that is put
//! in it, so no name is given twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::coordination::catalog::{Catalog, Known, NotPut};
use crate::error::{Asked, ObjectError};
use crate::random;
use crate::stores::store::Store;

/// Writers that publish while another takes over: it begins anew so often.
const FENCE_TRIES_MAX: u32 = 20;

/// A turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) epoch: u64,
    pub(crate) begun: Instant,
    /// Keeps names apart from those of another database that was in the same place before: caches
    /// know objects by their names.
    mark: u32,
    next_name: AtomicU64,
    /// Why no catalog can be put any more.
    failure: Mutex<Option<String>>,
}

impl Turn {
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            begun: Instant::now(),
            mark: random::word() as u32,
            next_name: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    /// A name for the objects of a file, or of a log.
    pub(crate) fn next_name(&self) -> String {
        let number = self.next_name.fetch_add(1, Ordering::Relaxed);
        format!("{:08}-{:08x}-{number:06}", self.epoch, self.mark)
    }

    /// Why nothing can be published, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Nothing can be published from now on.
    pub(crate) fn fail(&self, what: &str) {
        self.failure.lock().get_or_insert(what.to_owned());
    }
}

/// The turn in which an object was put, by its name.
pub(crate) fn epoch_of(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

/// Puts the catalog of the next turn.
pub(crate) async fn fence(store: &Arc<Store>, holder: &str) -> Asked<Known> {
    let mut tries = 0;
    loop {
        let before = Catalog::read(store, None).await?;
        let next = Catalog::of_turn(before.as_ref().map(|known| &*known.catalog), holder);
        tries += 1;
        match next.put(store, before).await {
            Ok(known) => return Ok(known),
            // The writer before has published at this moment: what it published is where this turn
            // begins.
            Err(NotPut::Lost) if tries < FENCE_TRIES_MAX => store.pause(0).await,
            Err(NotPut::Lost) => {
                return Err(ObjectError::Task {
                    what: "other writers publish again and again".to_owned(),
                });
            }
            Err(NotPut::Refused(error) | NotPut::Unknown(error)) => return Err(error),
        }
    }
}
