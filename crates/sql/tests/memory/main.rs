//! Memory tests: statements stay within the engine's memory, with a right answer or an error.
//!
//! A program of its own, whose tests run one after the other: what the process holds is looked at
//! from outside of the engine, every few milliseconds.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot ask has failed.
#![cfg(target_os = "linux")]

mod aggregates;
mod answers;
#[path = "../sql/common/mod.rs"]
mod common;
mod definitions;
mod grouping;
mod joins;
mod json;
mod parquet;
mod prepared;
mod sorts;
mod windows;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static ALONE: Mutex<()> = Mutex::new(());

/// What was never returned to the system, of buffers of threads and the like.
const SLACK_BYTES: usize = 96 << 20;

/// The memory of this process that is not pages of files, at its most since it was made. No other
/// is there.
struct Peak {
    _alone: MutexGuard<'static, ()>,
    before_bytes: usize,
    most_bytes: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    looks: Option<std::thread::JoinHandle<()>>,
}

fn anonymous_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.unwrap().split_whitespace().next().unwrap();
    kibibytes.parse::<usize>().unwrap() << 10
}

/// One test alone, from here on.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peak {
    fn since(alone: MutexGuard<'static, ()>) -> Self {
        let before_bytes = anonymous_bytes();
        let most_bytes = Arc::new(AtomicUsize::new(before_bytes));
        let is_over = Arc::new(AtomicBool::new(false));
        let (most, over) = (Arc::clone(&most_bytes), Arc::clone(&is_over));
        let looks = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self {
            _alone: alone,
            before_bytes,
            most_bytes,
            is_over,
            looks: Some(looks),
        }
    }

    /// It has grown by no more than so much, and a little.
    #[track_caller]
    fn require_at_most(mut self, bytes: usize) {
        self.is_over.store(true, Ordering::Relaxed);
        self.looks.take().unwrap().join().unwrap();
        let grown = self.most_bytes.load(Ordering::Relaxed) - self.before_bytes;
        assert!(
            grown <= bytes + SLACK_BYTES,
            "it has grown by {} MiB, where {} were given",
            grown >> 20,
            bytes >> 20
        );
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
