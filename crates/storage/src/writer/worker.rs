//! The writer's thread: checkpoints, a sync soon after relaxed commits, and files opened anew where the file system asks for that.

use std::sync::Arc;

use super::shared::Shared;

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
        if let Err(error) = shared.reopen_files() {
            tracing::warn!(
                "the files could not be opened anew, the space for them stays short: {error}"
            );
        }
    }
}
