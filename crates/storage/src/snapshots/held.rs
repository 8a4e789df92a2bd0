//! A register of old states that queries, answers or backups still hold.
//!
//! A state that is held keeps its memory, and the files that it has mapped. Each commit leaves a
//! weak pointer here; those that lead nowhere go as the list is walked through, each time that it
//! has doubled.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::snapshots::snapshot::Snapshot;

/// Shorter lists are not walked through.
const LOOK_MIN: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct HeldStates(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// With when they were replaced, the oldest first.
    replaced: VecDeque<(Weak<Snapshot>, Instant)>,
    look_at: usize,
}

impl HeldStates {
    /// A newer state takes the place of this one.
    pub(crate) fn add(&self, state: &Arc<Snapshot>) {
        let mut held = self.0.lock();
        if held.replaced.len() >= held.look_at.max(LOOK_MIN) {
            held.replaced.retain(|(state, _)| state.strong_count() > 0);
            held.look_at = 2 * held.replaced.len();
        }
        held.replaced
            .push_back((Arc::downgrade(state), Instant::now()));
    }

    /// For how long the oldest one that is held has not been the newest.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let mut held = self.0.lock();
        while let Some((state, replaced)) = held.replaced.front() {
            if state.strong_count() > 0 {
                return Some(replaced.elapsed());
            }
            held.replaced.pop_front();
        }
        None
    }
}
