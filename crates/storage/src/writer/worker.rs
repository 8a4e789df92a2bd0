//! The writer's background thread: checkpoints, delayed syncs of relaxed commits, reopening of
//! files.
//!
//! Without it relaxed commits would never be on the disk, and the log would grow for ever. So where
//! it panics, writing stops, as where the log cannot be written: whoever commits is told, and
//! readers go on.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::shared::Shared;
use crate::Error;

/// Works until it is told to stop.
pub(super) fn run(shared: &Arc<Shared>) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(shared))) else {
        return;
    };
    let why = format!("it has panicked: {}", message_of(&*panic));
    let error = Error::from_io(
        shared.database.directory(),
        "run the thread that syncs and makes checkpoints of",
        io::Error::other(why),
    );
    let log = Arc::clone(&shared.state.lock().log);
    // Whether somebody listens to the log or not.
    let stopped = log.stop(&error);
    tracing::error!("{stopped}");
}

/// What a panic says.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a word")
}

fn work(shared: &Arc<Shared>) {
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
        if let Err(error) = shared.reopen_files() {
            tracing::warn!(
                "the files could not be opened anew, the space for them stays short: {error}"
            );
        }
    }
}
