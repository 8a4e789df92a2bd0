//! A parallel loop over pieces of work on free threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_runtime::Workers;
use parking_lot::Mutex;

/// Pieces for each thread, so that none waits long for another.
pub(super) const PIECES_PER_THREAD: usize = 8;

/// Who works, and whether anybody still waits for it.
pub(super) struct Crew {
    pub(super) workers: Arc<Workers>,
    pub(super) is_stopped: Arc<AtomicBool>,
}

impl Crew {
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// How many pieces to make.
    pub(super) fn pieces(&self) -> usize {
        self.workers.threads() * PIECES_PER_THREAD
    }

    /// Does each piece once, on this thread and others that are free.
    pub(super) fn each<P: Send>(&self, pieces: Vec<P>, work: impl Fn(P) + Sync) {
        let extra: Vec<_> = (1..self.workers.threads().min(pieces.len()))
            .map_while(|_| self.workers.try_extra())
            .collect();
        let queue = Mutex::new(pieces.into_iter());
        let take = || {
            while !self.is_stopped() {
                // Named, so that the lock is not held while the piece is worked on.
                let piece = queue.lock().next();
                let Some(piece) = piece else {
                    break;
                };
                work(piece);
            }
        };
        std::thread::scope(|scope| {
            for busy in extra {
                let take = &take;
                scope.spawn(move || {
                    take();
                    drop(busy);
                });
            }
            take();
        });
    }
}
