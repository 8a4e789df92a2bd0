//! A flight: one running request for pieces of a file, shared by all that wait for it. Whoever
//! wants what it brings has a clone and waits for the end.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::means::Failure;
use super::pieces::Pieces;

/// A request that is under way.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    pieces: Pieces,
    end: Arc<End>,
}

/// How a flight ends.
#[derive(Debug, Default)]
struct End {
    outcome: Mutex<Option<Result<(), Failure>>>,
    ended: Condvar,
}

impl Flight {
    /// One that has not ended.
    pub(super) fn new(pieces: Pieces) -> Self {
        Self {
            pieces,
            end: Arc::default(),
        }
    }

    /// What it brings.
    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Whether it brings a piece.
    pub(super) fn brings(&self, piece: u64) -> bool {
        self.pieces.contains(&piece)
    }

    /// Whether it brings some of these pieces.
    pub(super) fn overlaps(&self, pieces: &Pieces) -> bool {
        self.pieces.start < pieces.end && pieces.start < self.pieces.end
    }

    /// Whether both are clones of one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.end, &other.end)
    }

    /// Waits for its end.
    pub(super) fn wait(&self) -> Result<(), Failure> {
        let mut outcome = self.end.outcome.lock();
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            self.end.ended.wait(&mut outcome);
        }
    }

    /// Ends it: who waits is woken.
    pub(super) fn end(&self, outcome: Result<(), Failure>) {
        *self.end.outcome.lock() = Some(outcome);
        self.end.ended.notify_all();
    }
}
