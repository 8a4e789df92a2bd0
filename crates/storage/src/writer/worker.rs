//! The writer's thread: checkpoints, and a sync soon after relaxed commits.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Shared;

/// A relaxed commit is on the disk after this time, give or take a sync.
const RELAXED_SYNC_AFTER: Duration = Duration::from_millis(100);

/// What the thread is asked to do.
#[derive(Debug, Default)]
pub(super) struct Worker {
    requests: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    checkpoint: bool,
    sync: bool,
    stop: bool,
}

impl Worker {
    pub(super) fn request_checkpoint(&self) {
        self.request(|requests| &mut requests.checkpoint);
    }

    pub(super) fn request_sync(&self) {
        self.request(|requests| &mut requests.sync);
    }

    pub(super) fn stop(&self) {
        self.request(|requests| &mut requests.stop);
    }

    fn request(&self, which: impl Fn(&mut Requests) -> &mut bool) {
        let mut requests = self.requests.lock();
        let which = which(&mut requests);
        if !std::mem::replace(which, true) {
            self.changed.notify_one();
        }
    }

    /// Waits for the next request. Several relaxed commits share a sync, so that waits a little.
    fn next(&self) -> Requests {
        let mut requests = self.requests.lock();
        loop {
            if requests.stop || requests.checkpoint {
                break;
            }
            if requests.sync {
                self.changed.wait_for(&mut requests, RELAXED_SYNC_AFTER);
                break;
            }
            self.changed.wait(&mut requests);
        }
        let next = *requests;
        requests.sync = false;
        requests.checkpoint = false;
        next
    }
}

/// Works until it is told to stop.
pub(super) fn run(shared: &Arc<Shared>) {
    loop {
        let next = shared.worker.next();
        if next.stop {
            return;
        }
        // Everybody who writes is told of it by the log, too.
        if next.sync
            && let Err(error) = shared.sync()
        {
            tracing::error!("relaxed commits could not be put on the disk: {error}");
        }
        if next.checkpoint
            && let Err(error) = shared.checkpoint_unless_busy()
        {
            tracing::error!("the checkpoint failed, the log goes on growing: {error}");
        }
    }
}
