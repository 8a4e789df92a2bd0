//! The requests to the writer's thread.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A relaxed commit is on the disk after this time, give or take a sync.
const RELAXED_SYNC_AFTER: Duration = Duration::from_millis(100);

/// How often the thread looks whether the file system wants its files opened anew.
const REOPENING_EVERY: Duration = Duration::from_secs(5);

/// What the thread is asked to do.
#[derive(Debug, Default)]
pub(super) struct Worker {
    requests: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requests {
    pub(super) checkpoint: bool,
    pub(super) sync: bool,
    pub(super) stop: bool,
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

    /// Waits for the next request, or for a while; then there is none. Several relaxed commits
    /// share a sync, so that waits a little.
    pub(super) fn next(&self) -> Requests {
        let mut requests = self.requests.lock();
        loop {
            if requests.stop || requests.checkpoint {
                break;
            }
            if requests.sync {
                self.changed.wait_for(&mut requests, RELAXED_SYNC_AFTER);
                break;
            }
            if self
                .changed
                .wait_for(&mut requests, REOPENING_EVERY)
                .timed_out()
            {
                break;
            }
        }
        let next = *requests;
        requests.sync = false;
        requests.checkpoint = false;
        next
    }
}
