//! How far a server has come in its life.

use tokio::sync::watch;

/// What is left of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Statements that run may end.
    Stopping,
    /// Nobody is waited for.
    Over,
}

/// Completes when the server's life has come so far. If nobody is there to say so, it has.
pub(crate) async fn reached(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}
