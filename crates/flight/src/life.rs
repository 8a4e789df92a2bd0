//! The stages of a server's life: serving, stopping, over.

use tokio::sync::watch;

/// The stages of a server's life, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Running statements may end.
    Stopping,
    /// Nothing is waited for any more.
    Over,
}

/// Completes when the server has reached a stage, or its sender is gone.
pub(crate) async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}
